"""What is quoted with a question does not stand in the conversation again."""

from __future__ import annotations

from bot.answering.window import QUOTED_BELOW, Quoted, without_quoted
from memory.context import PromptMessage
from memory.models import StoredMessage

ASKED = StoredMessage(1, "user", "when is the launch?", "ou_a", "Alice", "om_1")
ANSWER = StoredMessage(
    2, "assistant", "<at id=ou_a></at> On 3 March.\n\nIn the &#60;hall>.", message_id="om_2"
)
TOLD = [
    PromptMessage("user", "Alice: when is the launch?", author="Alice"),
    PromptMessage("assistant", "@Alice On 3 March.\n\nIn the <hall>."),
]


def test_a_quoted_message_of_the_history_is_a_remark_there() -> None:
    asked, answer = without_quoted(TOLD, (ASKED, ANSWER), Quoted("om_1", "when is the launch?"))

    assert asked.content == f"Alice: {QUOTED_BELOW}"
    assert answer == TOLD[1]


def test_of_a_quoted_card_among_several_the_others_stay() -> None:
    _, answer = without_quoted(TOLD, (ASKED, ANSWER), Quoted("om_9", "In the <hall>."))

    assert answer.content == f"@Alice On 3 March.\n\n{QUOTED_BELOW}"


def test_without_a_quotation_all_stays() -> None:
    assert without_quoted(TOLD, (ASKED, ANSWER), None) == TOLD
