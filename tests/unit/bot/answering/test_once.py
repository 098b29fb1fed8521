"""Nothing stands twice in a prompt."""

from __future__ import annotations

from dataclasses import replace

from bot.answering.deduplication import (
    QUOTED_BELOW,
    Quoted,
    untold,
    without_commands,
    without_quoted,
)
from bot.listening.transcript import MessageRecord
from memory.context import Message
from memory.models import StoredMessage

NAMES = {"ou_a": "Alice"}
ASKED = StoredMessage(1, "user", "when is the launch?", "ou_a", "Alice", "om_1")
ANSWER = StoredMessage(
    2, "assistant", "<at id=ou_a></at> On 3 March.\n\nIn the &#60;hall>.", message_id="om_2"
)
TOLD = [
    Message("user", "Alice: when is the launch?", author="Alice"),
    Message("assistant", "@Alice On 3 March.\n\nIn the <hall>."),
]


def record(content: str, message_id: str, author_id: str = "ou_a", **more: bool) -> MessageRecord:
    return MessageRecord("X", author_id, content, 1, more.get("ours", False), message_id, **more)


def left(*records: MessageRecord, quoted: Quoted | None = None) -> list[str]:
    found = untold(records, (ASKED, ANSWER), NAMES, bot_name="Memo", quoted=quoted)
    return [one.message_id for one in found]


def test_what_the_history_has_leaves_the_transcript_by_its_id() -> None:
    as_listed = record("<card>", "om_2", ours=True)

    assert left(record("another text", "om_1"), as_listed, record("new", "om_3")) == ["om_3"]


def test_what_the_history_has_leaves_the_transcript_by_its_text() -> None:
    second_card = record("In the <hall>.", "om_9", ours=True)
    pressed = record("@Memo when is  the launch?", "om_8")

    assert left(second_card, pressed) == []


def test_somebody_elses_same_words_and_a_part_of_an_answer_stay() -> None:
    same = record("when is the launch?", "om_7", "ou_b")
    part = record("On 3", "om_6", ours=True)

    assert left(same, part) == ["om_7", "om_6"]


def test_what_is_quoted_leaves_the_transcript() -> None:
    assert left(record("a plan", "om_5", "ou_b"), quoted=Quoted("om_5", "a plan")) == []


def test_a_quoted_message_of_the_history_is_a_remark_there() -> None:
    asked, answer = without_quoted(TOLD, (ASKED, ANSWER), Quoted("om_1", "when is the launch?"))

    assert asked.content == f"Alice: {QUOTED_BELOW}"
    assert answer == TOLD[1]


def test_of_a_quoted_card_among_several_the_others_stay() -> None:
    _, answer = without_quoted(TOLD, (ASKED, ANSWER), Quoted("om_9", "In the <hall>."))

    assert answer.content == f"@Alice On 3 March.\n\n{QUOTED_BELOW}"


def test_without_a_quotation_all_stays() -> None:
    assert without_quoted(TOLD, (ASKED, ANSWER), None) == TOLD


def test_commands_and_their_answers_are_left_out_of_the_talk() -> None:
    help_asked = record("@Bot /help", "om_help")
    card = record("what I can do", "om_1", ours=True)
    shown, quoted = replace(card, root_id="om_help"), replace(card, quotes="om_help")
    below = replace(record("the room is booked", "om_4"), root_id="om_help")
    talk = [record("stop", "om_3"), below]

    said = [help_asked, shown, quoted, *talk]
    assert list(without_commands(said, said, None)) == talk
    assert list(without_commands(said, said, "om_help")) == [shown, *talk]
