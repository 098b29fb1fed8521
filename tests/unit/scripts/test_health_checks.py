"""The checks of stored rows, each shown to accept what is right and to find what is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from memory.models import Conversation
from memory.tables.operations import CheckedTurn, Orphan, Table
from scripts.operating import stored_rows
from scripts.operating.stored_rows import _NEXT_STEPS, Finding
from scripts.operating.words import said_in
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


QUESTION, FIRST, SECOND = _turn("om_1", cards=2)
OTHERS = _turn("om_2")
NO_ID = {"message_id": None}
OUT_OF_ORDER = [("sequence", "om_1")]


def _stopped(words: str) -> list[Any]:
    """A question, what may stop its answer, and then the answer."""
    stop = [_row("om_2", "user", content=words), _row("om_2", "assistant")]
    return [QUESTION, *stop, FIRST]


@every_row(
    ("why", "rows", "about_turn", "problems"),
    [
        ("questions and answers in turn",
         [*_turn("om_1"), *_turn("om_2", cards=3), _row("om_3", "user", ago_s=5)], {}, []),
        ("no question", [FIRST], {}, OUT_OF_ORDER),
        ("the answer first", [FIRST, QUESTION], {}, OUT_OF_ORDER),
        ("two questions", [QUESTION, _row("om_1", "user", chunk=1)], {}, OUT_OF_ORDER),
        ("the first card is missing", [QUESTION, SECOND], {}, OUT_OF_ORDER),
        ("cards out of order", [QUESTION, SECOND, FIRST], {}, OUT_OF_ORDER),
        ("turns that are mixed", [QUESTION, *OTHERS, FIRST], {}, OUT_OF_ORDER),
        ("what stops an answer comes before it", _stopped("/stop"), {}, []),
        ("in words too", _stopped("stop"), {}, []),
        ("in Chinese too", _stopped("停"), {}, []),
        ("what comes by itself waits for nobody", [QUESTION, *OTHERS, FIRST],
         {"origin": "reminder"}, []),
        ("a recalled question may be missing", [FIRST], {"question_gone": True}, []),
        ("and cards that were taken back", [QUESTION], {"answer_gone": True}, []),
        ("the last of them", [QUESTION, FIRST], {"answer_gone": True}, []),
        ("the first of them", [QUESTION, SECOND], {"answer_gone": True}, []),
        ("what is left stands in order", [QUESTION, SECOND, FIRST], {"answer_gone": True},
         OUT_OF_ORDER),
        ("a question may wait for a quarter of an hour", [_row("om_1", "user", ago_s=14 * 60)],
         {"state": "open"}, []),
        ("and no longer", [_row("om_1", "user", ago_s=16 * 60)], {"state": "open"}, OUT_OF_ORDER),
        ("unless its turn failed", [_row("om_1", "user", ago_s=16 * 60)], {"state": "failed"}, []),
        ("or was stopped", [_row("om_1", "user", ago_s=16 * 60)], {"state": "cancelled"}, []),
        ("a sent card without a message_id", [QUESTION, _row("om_1", "assistant", **NO_ID)], {},
         [("delivery", "om_1 card 0")]),
        ("a card may be pending for a minute",
         [QUESTION, _row("om_1", "assistant", status="pending", ago_s=50, **NO_ID)], {}, []),
        ("and no longer",
         [QUESTION, _row("om_1", "assistant", status="pending", ago_s=70, **NO_ID)], {},
         [("delivery", "om_1 card 0")]),
        ("a failed card", [QUESTION, _row("om_1", "assistant", status="failed", **NO_ID)], {}, []),
    ],
)  # fmt: skip
def test_turns_are_checked_for_order_and_delivery(
    why: str, rows: list[Any], about_turn: dict[str, Any], problems: list[tuple[str, str]]
) -> None:
    assert _problems(rows, **about_turn) == problems


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


@every_row(
    "words, chinese",
    [
        ("it has been pending for 3 min", "已等待 3 分钟"),
        ("4 rows: its author is not known", "4 行：作者未知"),
        ("Feishu shows 12 characters that differ from the 9 stored",
         "飞书显示的 12 个字符与保存的 9 个不同"),
        ("feishu:oc_1:main of {ou_2}", "feishu:oc_1:main of {ou_2}"),
    ],
)  # fmt: skip
def test_a_finding_is_said_in_chinese_with_its_numbers(words: str, chinese: str) -> None:
    assert said_in("zh", words) == chinese
    assert said_in("en", words) == words


def test_every_check_and_next_step_of_a_finding_has_its_chinese() -> None:
    texts = {*_NEXT_STEPS, *_NEXT_STEPS.values()}
    assert {text for text in texts if said_in("zh", text) == text} == set()
