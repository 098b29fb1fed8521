"""From an answer to its cards: what every card must hold, whatever the model wrote."""

from __future__ import annotations

import re
import time

from hypothesis import given
from hypothesis import strategies as st

from bot.agents.running_turns import Progress
from bot.answering.reply import Voice, cards_of
from bot.answering.texts import say
from bot.feishu import cards, markup
from bot.feishu.drawable_markdown import MAX_MARKDOWN_BYTES, encoded_size
from bot.mentions import ALL_NAMES, MentionTemplate, Person, Roster, from_card
from bot.outbox.streaming import showable_text
from sandbox.cards.card_check import at_ids, check_card, table_count
from tests.support.cards import card_bytes
from tests.support.rows import every_row

ALICE = Person("ou_alice", "Alice")
BOB = Person("ou_bob", "Bob")
MEMO = Person("ou_memo", "Memo", is_bot=True)
VOICE = Voice(MEMO, BOB, Roster((ALICE, BOB)))
P2P = Voice(MEMO, BOB, chat_type="p2p")
NOTHING = say("nothing-to-say", "en")
TAG = "<at id=ou_bob></at>"
TAGS = r"<\s*/?(at|font|text_tag|link|button|person|number_tag|audio|video|raw|local_datetime)\b"


def sent(text: str, voice: Voice = VOICE) -> list[str]:
    """The cards' markdown; each is a card that the platform takes."""
    pieces = cards_of(text, voice, nothing=NOTHING)
    for piece in pieces:
        card = cards.answer_card(piece)
        check_card(card, knows_person=lambda one: one in ("ou_alice", "ou_bob"),
                   knows_image=lambda _: False)  # fmt: skip
        assert card_bytes(card) < cards.MAX_CARD_BYTES
    return pieces


def one(text: str, voice: Voice = VOICE) -> str:
    (piece,) = sent(text, voice)
    return piece


@every_row("text", ["", " \n", "@Memo", "@Memo, \n", "\u200b", "\ufeff \u2060", "@Memo \u200b"])
def test_a_card_is_never_empty(text: str):
    assert one(text) == f"{TAG} {NOTHING}"
    assert one(text, P2P) == NOTHING


@every_row(
    ("written", "shown"),
    [
        ("[a](https://x.y/z?q=1)", "[a](https://x.y/z?q=1)"),
        ("[a](HTTP://x.y)", "[a](HTTP://x.y)"),
        ("[a](mailto:a@b.c)", "a (mailto:a@b.c)"),
        ("[a](javascript:alert(1))", "[a]&#40;javascript:alert(1))"),
        ("[a](javascript:x)", "a (javascript:x)"),
        ("[a](JaVaScRiPt:x)", "a (JaVaScRiPt:x)"),
        ("[a](lark://x)", "a (lark://x)"),
        ("[a](tel://110)", "a (tel://110)"),
        ("[a](/etc/passwd)", "a (/etc/passwd)"),
        ("[a](#top)", "a (#top)"),
        ("[a](<javascript:x>)", "a (&#60;javascript:x>)"),
        ("[a]( javascript:x )", "[a]&#40; javascript:x )"),
        ("[a\n](javascript:x)", "[a\n]&#40;javascript:x)"),
        ("[[a]](data:x)", "[[a]]&#40;data:x)"),
        ("[a][1]\n\n[1]: javascript:x", "[a][1]\n\n[1]&#58; javascript:x"),
        ("[a][1]\n\n[1]: https://x", "[a][1]\n\n[1]: https://x"),
        ("<a href='javascript:x'>a</a>", "&#60;a href='javascript:x'>a&#60;/a>"),
        ("`f[0](x)` and [a](x:y)", "`f[0](x)` and a (x:y)"),
        ("```js\nf[0](x)\n```", "```js\nf[0](x)\n```"),
        ("` [a](x:y)", "` a (x:y)"),
        ("![a](https://x/y.png)", "[a](https://x/y.png)"),
        ("![a](javascript:x)", "a"),
        ("`![a](x)` shows a", "`![a](x)` shows a"),
    ],
)
def test_links_lead_to_the_web_and_to_mail_and_nowhere_else(written: str, shown: str):
    assert one(written, P2P) == shown


INERT = [
    *("<at id=all></at>", "< at id=all>", "<AT ID='all'/>", "<at\tid=all>", "<at\nid=all></at>"),
    *("&lt;at id=all&gt;", "&#60;at id=all>", "&#x3C;at id=all>", "&#0000060;at id=all>"),
    *(
        "&ltat id=all>",
        "&#60at id=all>",
        "&LT;at id=all>",
        "\\<at id=all></at>",
        "<\u200bat id=all>",
    ),
    *("<font color='red'>x</font>", "<text_tag color='red'>x</text_tag>", "<hr>", "<raw>x</raw>"),
    *("<link url='https://x'>x</link>", "<button>x</button>", "<person id='ou_alice'></person>"),
    *("<number_tag>1</number_tag>", "<local_datetime></local_datetime>", "<audio file_key='x'>"),
]


AROUND = ["{}", "- {}", "> {}", "# {}", "`{}`", "**{}**", "[{}](https://x)"]
AROUND += ["| {} |\n|---|\n| {} |"]


@every_row("tag", INERT)
@every_row("around", AROUND)
def test_card_tags_that_a_model_writes_are_text(tag: str, around: str):
    (piece,) = sent(around.replace("{}", tag))
    body = piece.replace(TAG, "")
    assert not re.search(TAGS, body, re.IGNORECASE)
    assert at_ids(piece) == ["ou_bob"]
    once = body.replace("&#38;", "")
    assert "&lt" not in once.lower(), "an entity could become a tag"


@every_row(
    "text",
    [
        "> quote\n> ```py\n> @Alice\n> ```\n> end",
        "- a\n  - b\n    ```\n@Alice\n    ```\n- c",
    ],
)
def test_code_within_quotes_and_lists_calls_nobody(text: str):
    assert at_ids(one(text)) == ["ou_bob"]


def test_a_card_reads_back_as_what_was_said():
    text = "# Plan\n\n- a < b\n    - c & d\n\n@Alice 看\n\n```py\nif a < b: pass\n```"
    assert from_card(one(text), VOICE.roster, unescape=markup.unescape) == f"@Bob\n\n{text}"


def test_the_template_of_the_settings_is_in_the_card():
    voice = Voice(MEMO, BOB, VOICE.roster, template=MentionTemplate.parse("Hi {at}! "))
    assert one("hello", voice) == f"Hi {TAG}! hello"
    assert one("# T", voice) == f"Hi {TAG}!\n\n# T"


STREAMED = [
    "# Plan\n\n- a\n  - b\n\n@Alice look",
    "```py\n@Alice\n```\n@Alice look",
    "see `a\n@Alice b` and ``c ` d\n@Alice``\n\n@Alice",
    "1. x\n   ```\n@Alice\n   ```\n2. y [a](https://x) [b](x:y) ![c](d)",
    "> q\n> ```\n@Alice\n> ```\n\n| a |\n|---|\n| @Alice |",
    "    @Alice\n    x\n\n~~~\n@Alice\n~~~\n@Alice",
    "@Memo @Alice, done. &lt;at id=all> <font>x</font>",
]


@every_row("text", STREAMED)
def test_no_frame_calls_anybody_whom_the_finished_card_does_not(text: str):
    (final,) = sent(text)
    names = ["Alice", "Bob", "Memo", *ALL_NAMES]
    for end in range(1, len(text) + 1):
        frame = one(showable_text(Progress(text[:end]), names, "en"))
        assert set(at_ids(frame)) <= set(at_ids(final)), text[:end]
    # A name at the very end waits for its other half until the answer is finished.
    assert one(showable_text(Progress(f"{text}\n"), names, "en")) == final


# More than a card takes

ROW = "| {0} | " + "x" * 90 + " |\n"


def test_a_table_longer_than_a_card_is_split_by_rows_with_its_header():
    rows = "".join(ROW.format(number) for number in range(900))
    pieces = sent(f"| n | v |\n|---|---|\n{rows}")
    assert len(pieces) > 4
    assert pieces[0].startswith(f"{TAG}\n\n| n | v |\n|---|---|\n| 0 |")
    assert all("| n | v |\n|---|---|\n| " in piece for piece in pieces)
    assert [int(n) for piece in pieces for n in re.findall(r"^\| (\d+) \|", piece, re.M)] == [
        *range(900)
    ]


def test_a_fence_longer_than_a_card_is_closed_and_opened_again_with_its_language():
    code = "".join(f"print({number}) # {'x' * 60}\n" for number in range(900))
    pieces = sent(f"Here:\n\n```python\n{code}```\nDone.")
    assert len(pieces) > 3
    assert all("```python\n" in piece and piece.count("```") == 2 for piece in pieces)
    assert [int(n) for n in re.findall(r"print\((\d+)\)", "".join(pieces))] == [*range(900)]


def test_a_quoted_fence_longer_than_a_card_stays_quoted_code():
    code = "".join(f"> print({number}) # {'x' * 60}\n" for number in range(600))
    pieces = sent(f"> said\n> ```python\n{code}> ```\n\nDone.")
    assert len(pieces) > 3
    for piece in pieces[1:-1]:
        assert piece.startswith("> ```python\n")
        assert piece.endswith("> ```")
    assert [int(n) for n in re.findall(r"print\((\d+)\)", "".join(pieces))] == [*range(600)]


def test_more_tables_than_a_card_takes_go_to_the_next_card_with_their_headings():
    tables = "\n\n".join(f"## Table {n}\n\n| a |\n|---|\n| {n} |" for n in range(8))
    pieces = sent(tables)
    assert [table_count(piece) for piece in pieces] == [3, 3, 2]
    assert [re.findall(r"## Table (\d)", piece) for piece in pieces] == [
        ["0", "1", "2"],
        ["3", "4", "5"],
        ["6", "7"],
    ]


def test_a_block_that_fits_is_never_cut():
    blocks = [f"{'word ' * 1500}{n}." for n in range(9)]
    pieces = sent("\n\n".join(blocks))
    assert [block for piece in pieces for block in piece.removeprefix(f"{TAG} ").split("\n\n")] == (
        blocks
    )


HOSTILE = ["a", "字", "a b ", "`", "```\n", "| a |\n", "|-\n", "[a](", "![", "<at ", "&#60;"]
HOSTILE += ["\n", "\u200b", "- a\n", "  - a\n", "> ", ">", "# T\n\n", "\r\n", "~~~\n", "1. "]
HOSTILE += [
    "@Alice ",
    "👩\u200d👩\u200d👧",
    "[a]: ",
    "    x\n",
    "|",
    "&",
    "-",
    "\t",
    "]: ",
    "[a](x:",
]
HOSTILE += ["> [a", '![](x "', "` ``\n", "> ```\n", "@Alice\n    ", "\n \n"]


@every_row("unit", HOSTILE)
def test_as_much_as_a_model_may_write_takes_linear_time(unit: str):
    start = time.process_time()
    pieces = cards_of(unit * (100_000 // len(unit)), VOICE, nothing="-")
    assert time.process_time() - start < 1.5
    assert all(encoded_size(piece) <= MAX_MARKDOWN_BYTES for piece in pieces)


pieces_of_text = st.lists(
    st.sampled_from([*INERT, "@Alice", "@Bob", "@Memo", "```\n", "~~~\n", "`", "- ", "  - ", "1. ",
                     "> ", "# ", "---\n", "| a |\n|---|\n| b |\n", "[a](x:y)", "![a](b)", "[a]: x",
                     "\n", "\n\n", "\r\n", "    ", " ", "word", "字", "\u200b", "\x00"]),
    max_size=25,
).map("".join)  # fmt: skip


@given(pieces_of_text)
def test_whatever_is_written_the_card_is_taken_and_calls_only_who_is_addressed(text: str):
    pieces = sent(text)
    called = [at_id for piece in pieces for at_id in at_ids(piece)]
    assert pieces[0].strip()
    assert "ou_bob" in called
    assert set(called) <= {"ou_alice", "ou_bob"}
