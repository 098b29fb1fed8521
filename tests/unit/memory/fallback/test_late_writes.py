"""What is kept of a call that the memory did not take, and how long such work is waited for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import pytest

from bot.listening.transcript import MessageRecord
from memory.errors import AccessDenied, StoreUnavailable
from memory.fallback.breaker import BreakingRpc, CircuitBreaker
from memory.fallback.store_jobs import LateRpc, LateWrite, late_write
from memory.scope import memory_context
from tests.support.rows import every_row

pytestmark = pytest.mark.anyio

ALICE = memory_context(chat_id="oc_1", root="om_r", subject="ou_a", actor="ou_a", tenant_key="t")
DECISION = {"p_message_id": "om_1", "p_respond": True}


def _records(*said: tuple[str, str]) -> dict[str, Any]:
    records = [asdict(MessageRecord("x", who, "words", 1, False, message)) for who, message in said]
    return {"p_chat_id": "oc_1", "p_records": json.dumps(records)}


def test_a_write_knows_the_messages_it_is_about_and_who_spoke() -> None:
    write = late_write(
        "continue_conversation", _records(("ou_b", "om_1"), ("ou_bot", "om_2")), ALICE
    )

    assert write is not None
    assert write.message_ids == ("om_1", "om_2")
    assert set(write.people) == {"ou_a", "ou_b", "ou_bot"}


def test_a_decision_is_about_one_message_and_its_sender() -> None:
    write = late_write("log_decision", DECISION, ALICE)

    assert write is not None
    assert (write.message_ids, write.people) == (("om_1",), ("ou_a",))


def test_of_what_was_heard_the_record_is_kept_and_the_decision_by_itself() -> None:
    record = {"message_id": "om_3", "author_id": "ou_b"}
    heard = {"p_chat_id": "oc", "p_tenant_key": "t", "p_records": json.dumps([record]), "p_at": 1,
             "p_active_since": 0, "p_keep": 9}  # fmt: skip
    write = late_write("hear_message", {**heard, "p_actor_id": "ou_a", "p_decision": "{}"}, ALICE)

    assert write is not None
    assert (write.function, write.params) == ("append_to_conversation", heard)
    assert write.message_ids == ("om_3",)
    assert late_write("hear_message", {"p_chat_id": "oc"}, ALICE) is None


@every_row("function", ["open_turn", "merge_working_memory", "press_button"])
def test_what_somebody_waits_for_is_not_kept(function: str) -> None:
    assert late_write(function, {}, ALICE) is None


@dataclass
class Memory:
    """An `Rpc` that ends as told."""

    outcome: Exception | None = None

    async def call(self, function: str, params: Mapping[str, object], context: object) -> str:
        if self.outcome:
            raise self.outcome
        return "answer"

    async def close(self) -> None: ...


@dataclass
class Kept:
    """Takes writes in place of the queue."""

    writes: list[LateWrite] = field(default_factory=list)

    async def keep_writes(self, context: object, *writes: LateWrite) -> None:
        self.writes += writes


def _late(outcome: Exception | None) -> tuple[LateRpc, Kept]:
    kept = Kept()
    guarded = BreakingRpc(Memory(outcome), CircuitBreaker())
    return LateRpc(guarded, kept), kept  # type: ignore[arg-type]


async def test_a_call_that_the_memory_takes_is_not_kept() -> None:
    rpc, kept = _late(None)

    assert await rpc.call("log_decision", DECISION, ALICE) == "answer"
    assert kept.writes == []


async def test_a_call_to_a_memory_that_is_away_is_kept_and_fails() -> None:
    rpc, kept = _late(StoreUnavailable("away"))

    with pytest.raises(StoreUnavailable):
        await rpc.call("log_decision", DECISION, ALICE)
    with pytest.raises(StoreUnavailable):
        await rpc.call("open_turn", {}, ALICE)

    assert [write.function for write in kept.writes] == ["log_decision"]


async def test_a_refused_call_is_not_kept() -> None:
    rpc, kept = _late(AccessDenied("no"))

    with pytest.raises(AccessDenied):
        await rpc.call("log_decision", DECISION, ALICE)
    assert kept.writes == []
