"""What of a message tells something."""

from __future__ import annotations

from bot.features.private_answers.questions import (
    PART_CHARS,
    questions_in,
    statements_in,
    text_parts,
)
from tests.support.rows import every_row


@every_row(
    "message",
    [
        "The door code is 2580",
        "门禁密码是2580",
        "Can you remember that the door code is 2580?",
        "能帮我记一下：门禁密码2580吗？",
        "Do not tell the door code 2580 to anybody",
        "When the lift is stuck call the porter",
    ],
)
def test_a_statement_tells_all_of_itself(message: str) -> None:
    assert statements_in(message) == message


@every_row(
    "message",
    [
        "What is the door code?",
        "门禁密码是多少？",
        "/memory",
        "/help",
        "在吗？",
        "when is the launch",
        "",
    ],
)
def test_questions_and_commands_tell_nothing(message: str) -> None:
    assert statements_in(message) == ""


def test_of_both_the_statement_is_told_and_the_question_asked() -> None:
    assert statements_in("The code is 2580. Is that right?") == "The code is 2580."
    assert (
        questions_in("We are ordering lunch. What is Tom allergic to?")
        == "What is Tom allergic to?"
    )
    assert questions_in("the wifi password") == "the wifi password"


def test_a_long_text_comes_in_parts_that_overlap() -> None:
    sentences = [f"Sentence number {n} says something of its own. " for n in range(60)]
    found = list(text_parts("".join(sentences)))

    assert len(found) > 3
    assert all(len(one) <= PART_CHARS + len(sentences[-1]) for one in found)
    assert all(any(one.strip() in part for part in found) for one in sentences)
    assert found[0].endswith(found[1].split(". ")[0] + ".")
    assert list(text_parts("  \n ")) == []
