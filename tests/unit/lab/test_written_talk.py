"""Talk that is labelled by hand is read as what was said before each line, and what it is."""

import pytest

from lab.corpora.talk import rows_of_talk
from tests.support.rows import every_row

TALK = """\
# en
Ann> @Memo what is the wifi code?
Memo< It is 44-lantern.
7 Ann+ and for the workshop
Memo< I know no other.
15 Bo- on the fridge
20 Ann+ make a sign
25 Bo- I have one

# zh held
安> @Memo 几点开会
Memo< 三点。
5 波- 又改了？
"""


def test_a_line_for_the_bot_stands_before_later_ones_when_the_bot_answered_it():
    first, second, third, fourth, last = rows_of_talk(TALK)

    assert [row["expect"] for row in (first, second, third, fourth, last)] == [
        "respond",
        "silent",
        "respond",
        "silent",
        "silent",
    ]
    assert [said["text"] for said in second["context"]] == [
        "@Memo what is the wifi code?",
        "It is 44-lantern.",
        "and for the workshop",
        "I know no other.",
    ]
    assert [said["text"] for said in fourth["context"]][-1] == "on the fridge"
    assert (first["seconds_since_bot"], second["seconds_since_bot"]) == (7, 5)
    assert (first["split"], last["split"], last["lang"]) == ("tune", "held", "zh")
    assert first["id"] == "line 4"


@every_row(
    ("text", "said"),
    [
        ("Ann> hello", "line 1: a conversation begins"),
        ("# en\nAnn> hello\n7 Ann+ you there", "line 3: the bot has not spoken"),
        ("# en\nAnn says hello", "line 2: neither"),
    ],
)
def test_what_has_no_such_form_is_refused_with_its_line(text, said):
    with pytest.raises(ValueError, match=said):
        list(rows_of_talk(text))
