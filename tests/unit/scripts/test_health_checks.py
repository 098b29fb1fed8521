"""The checks of stored rows, each shown to accept what is right and to find what is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memory.models import Conversation
from memory.tables.operations import CheckedTurn, Orphan, Table
from scripts.operating import stored_rows
from scripts.operating.stored_rows import Finding
from tests.support.rows import every_row

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

GOOD = Conversation(
    conversation_id="feishu:oc_chat1:om_root1",
    user_id="ou_alice",
    tenant_key="t",
    chat_id="oc_chat1",
    root_id="om_root1",
    title="",
    created_at="",
    updated_at="",
    messages=0,
    first_at=None,
    last_at=None,
    pending=0,
    failed=0,
)


def _row(turn: str, role: str, *, chunk: int = 0, ago_s: float = 3600, **more: Any) -> Any:
    sent = role == "assistant"
    return {
        "turn_id": turn,
        "role": role,
        "chunk": chunk,
        "content": "Tea?",
        "status": "sent" if sent else "received",
        "message_id": f"{turn}_{chunk}" if sent else turn,
        "updated_at": (NOW - timedelta(seconds=ago_s)).isoformat(),
        **more,
    }


def _turn(turn: str, cards: int = 1) -> list[Any]:
    return [_row(turn, "user"), *(_row(turn, "assistant", chunk=n) for n in range(cards))]


def _problems(rows: list[Any], **what: Any) -> list[tuple[str, str]]:
    """`what` became of the turn om_1."""
    turns = {"om_1": CheckedTurn(**what)}
    return [(f.check, f.where) for f in stored_rows.check_messages(rows, NOW, turns)]


@every_row(
    ("conversation_id", "root"),
    [
        ("feishu:oc_chat1:om_root1", "om_root1"),
        ("feishu:oc_chat1:main", "main"),
        ("feishu:ou_alice:om_root1", "om_root1"),
    ],
)
def test_a_conversation_id_names_chat_and_root(conversation_id: str, root: str) -> None:
    chat = conversation_id.split(":")[1]
    stored = replace(GOOD, conversation_id=conversation_id, chat_id=chat, root_id=root)

    assert stored_rows.check_conversation(stored) == []


@every_row(
    "conversation_id",
    ["feishu:chat1:om_root1", "slack:oc_chat1:om_root1", "feishu:oc_chat1", "feishu:oc_chat1:root",
     "feishu:oc_other:om_root1", "feishu:oc_chat1:main", "feishu:oc_chat1:om_root1\n"],
)  # fmt: skip
def test_another_id_is_found(conversation_id: str) -> None:
    [found] = stored_rows.check_conversation(replace(GOOD, conversation_id=conversation_id))

    assert found.check == "id format"


def test_a_person_without_an_open_id_is_found() -> None:
    [found] = stored_rows.check_conversation(replace(GOOD, user_id="alice"))

    assert "open_id" in found.problem


def test_questions_and_answers_in_turn_are_right() -> None:
    assert _problems([*_turn("om_1"), *_turn("om_2", cards=3), _row("om_3", "user", ago_s=5)]) == []


@pytest.mark.parametrize(
    "rows",
    [
        [_row("om_1", "assistant")],
        [_row("om_1", "assistant"), _row("om_1", "user")],
        [_row("om_1", "user"), _row("om_1", "user", chunk=1)],
        [_row("om_1", "user"), _row("om_1", "assistant", chunk=1)],
        [_row("om_1", "user"), *(_row("om_1", "assistant", chunk=n) for n in (1, 0))],
    ],
    ids=[
        "no question",
        "answer first",
        "two questions",
        "first card missing",
        "cards out of order",
    ],
)
def test_a_turn_out_of_order_is_found(rows: list[Any]) -> None:
    assert _problems(rows) == [("sequence", "om_1")]


def test_turns_that_are_mixed_are_found() -> None:
    first, second = _turn("om_1"), _turn("om_2")

    assert _problems([first[0], *second, first[1]]) == [("sequence", "om_1")]


@every_row("words", ["/stop", "stop", "停"])
def test_what_stops_an_answer_comes_before_it(words: str) -> None:
    first, second = _turn("om_1"), [_row("om_2", "user", content=words), _row("om_2", "assistant")]

    assert _problems([first[0], *second, first[1]]) == []


def test_what_comes_by_itself_waits_for_nobody() -> None:
    first, second = _turn("om_2"), _turn("om_1")

    assert _problems([first[0], *second, first[1]], origin="reminder") == []


def test_a_recalled_question_may_be_missing() -> None:
    assert _problems([_row("om_1", "assistant")], question_gone=True) == []


def test_cards_that_were_taken_back_may_be_missing() -> None:
    question, first, second = _turn("om_1", cards=2)

    assert _problems([question, second]) == [("sequence", "om_1")]
    for left in ([question], [question, first], [question, second]):
        assert _problems(left, answer_gone=True) == []


def test_a_question_that_nobody_answered_is_found() -> None:
    assert _problems([_row("om_1", "user", ago_s=14 * 60)], state="open") == []
    assert _problems([_row("om_1", "user", ago_s=16 * 60)], state="open") == [("sequence", "om_1")]
    for state in ("failed", "cancelled"):
        assert _problems([_row("om_1", "user", ago_s=16 * 60)], state=state) == []


def test_a_sent_card_without_a_message_id_is_found() -> None:
    rows = [_row("om_1", "user"), _row("om_1", "assistant", message_id=None)]

    assert _problems(rows) == [("delivery", "om_1 card 0")]


@every_row(("ago_s", "count"), [(50, 0), (70, 1)])
def test_a_card_may_be_pending_for_a_minute(ago_s: float, count: int) -> None:
    card = _row("om_1", "assistant", status="pending", message_id=None, ago_s=ago_s)

    assert len(_problems([_row("om_1", "user"), card])) == count


def test_a_failed_card_is_no_finding() -> None:
    card = _row("om_1", "assistant", status="failed", message_id=None)

    assert _problems([_row("om_1", "user"), card]) == []


def test_the_sequence_is_short() -> None:
    rows = [*_turn("om_1", 2), _row("om_2", "user"), _row("om_2", "assistant", status="pending"),
            _row("om_3", "user"), _row("om_3", "assistant", status="failed")]  # fmt: skip

    assert stored_rows.sequence(rows) == "QAAQA…QAx"


def test_tables_need_row_level_security_and_a_policy() -> None:
    fine = Table("fine", rows=1, day=1, week=1, bytes=1, rls=True, policies=4)
    tables = [fine, replace(fine, table="off", rls=False), replace(fine, table="bare", policies=0)]

    assert [f.where for f in stored_rows.check_tables(tables)] == ["off", "bare"]


def test_orphans_are_findings() -> None:
    assert stored_rows.check_orphans([Orphan("agent_messages", "7", "its turn is missing")]) == [
        Finding("orphans", "agent_messages 7", "its turn is missing")
    ]
