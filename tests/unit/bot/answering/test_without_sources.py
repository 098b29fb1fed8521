"""A turn without what comes from sources that must be left out."""

from __future__ import annotations

from bot.answering.answer_sources import without_sources
from memory.models import OpenTurn, StoredMessage, Summary, WorkingMemory

THREAD = "thread:feishu:oc:om_root:"


def message(number: int, role: str, message_id: str | None) -> StoredMessage:
    return StoredMessage(number, role, f"words {number}", message_id=message_id)  # type: ignore[arg-type]


OPENED = OpenTurn(
    "open",
    1,
    history=(
        message(0, "assistant", "om_0_card"),
        message(1, "user", "om_1"),
        message(2, "assistant", "om_1_card"),
        message(3, "user", "om_3"),
        message(4, "assistant", None),
        message(5, "user", "om_5"),
    ),
    working_memory=WorkingMemory({"a": 1}, turns=("om_1",)),
    registry=({"id": "N1"}, {"id": "N2"}),
    summary=Summary("before", 1, 2, THREAD),
)


def told(*hidden: str) -> OpenTurn:
    return without_sources(OPENED, hidden)


def ids(opened: OpenTurn) -> list[int]:
    return [one.id for one in opened.history]


def test_nothing_is_left_out_of_what_comes_from_elsewhere() -> None:
    assert told("om_7") == OPENED


def test_an_answer_goes_by_its_card_and_one_without_a_card_with_its_question() -> None:
    assert ids(told("om_1_card", "om_0_card")) == [1, 3, 4, 5]
    assert ids(told("om_3")) == [0, 1, 2, 5]


def test_the_question_stays() -> None:
    assert ids(told("om_5")) == [0, 1, 2, 3, 4, 5]


def test_notes_go_one_by_one_facts_together_and_the_summary_with_its_thread() -> None:
    assert told("note:N1").registry == ({"id": "N2"},)
    assert told("om_1").working_memory == WorkingMemory()
    assert told(THREAD).summary is None
