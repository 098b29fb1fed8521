"""What a call costs on the wire, and what it says when nobody answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from memory.errors import StoreUnavailable
from memory.store import MemoryStore
from tests.support.backends import Backend, memory_at
from tests.support.exchanges import texts
from tests.support.people import Group
from tests.support.relay import Relay, relay_to

pytestmark = pytest.mark.anyio


@pytest.fixture
async def relay(backend: Backend) -> AsyncIterator[Relay]:
    """The wire between the memory port and its server."""
    async with relay_to(backend.connect) as running:
        yield running


async def test_no_call_opens_a_connection_of_its_own(
    backend: Backend, relay: Relay, group: Group
) -> None:
    async with memory_at(backend, port=relay.port) as memory:
        await memory.working_memory(group.turn())
    looked = relay.accepted  # the first time, also whether a pooler stands in between

    async with memory_at(backend, port=relay.port) as memory:
        await memory.working_memory(group.turn())
        before = relay.accepted

        for n in range(20):
            await memory.begin_turn(
                group.turn(f"person{n}"), turn_id=group.message(f"q{n}"), content="Q"
            )

    assert (before - looked, relay.accepted - looked) == (1, 1)


async def test_every_operation_of_a_turn_is_one_round_trip(
    backend: Backend, relay: Relay, group: Group
) -> None:
    context, turn_id = group.turn(), group.message("q")
    async with memory_at(backend, port=relay.port) as memory:
        await memory.working_memory(context)
        trips: list[int] = []
        for call in (
            memory.begin_turn(context, turn_id=turn_id, content="Q"),
            memory.record_reply(context, turn_id=turn_id, cards=["A"]),
            memory.mark_sent(context, turn_id=turn_id, chunk=0, content="A", message_id="om_1"),
            memory.merge_working_memory(context, scope="chat", patch={"a": 1}),
            memory.working_memory(context),
            memory.clear_working_memory(context, scope="chat"),
            memory.mark_failed(context, turn_id=turn_id, error="x"),
        ):
            before = relay.round_trips
            await call
            trips.append(relay.round_trips - before)

    assert trips == [1] * 7


async def test_a_memory_that_is_gone_is_unavailable(
    backend: Backend, relay: Relay, group: Group
) -> None:
    async with memory_at(backend, port=relay.port, timeout_s=1.0) as memory:
        await memory.ping()
        await relay.cut()

        await _is_unavailable(memory, group)


async def test_a_memory_that_never_answers_is_unavailable_within_its_time_limit(
    backend: Backend, relay: Relay, group: Group
) -> None:
    async with memory_at(backend, port=relay.port, timeout_s=0.3) as memory:
        await memory.ping()
        relay.hold()

        async with asyncio.timeout(60):
            await _is_unavailable(memory, group)
        await relay.cut()


async def test_a_call_that_takes_too_long_is_given_up_and_can_be_repeated(
    backend: Backend, group: Group
) -> None:
    question = {"turn_id": group.message("q"), "content": "Q"}
    async with (
        memory_at(backend, timeout_s=0.3) as memory,
        await psycopg.AsyncConnection.connect(backend.database_url) as blocker,
    ):
        await memory.ping()
        await blocker.execute("lock table public.agent_turns in exclusive mode")
        with pytest.raises(StoreUnavailable, match="longer than"):
            await memory.begin_turn(group.turn(), **question)
        await blocker.rollback()

        async with asyncio.timeout(60):
            turn = await memory.begin_turn(group.turn(), **question)

    assert texts(turn) == ["Q"]


async def test_a_memory_that_comes_back_is_used_again(
    backend: Backend, relay: Relay, group: Group
) -> None:
    async with memory_at(backend, port=relay.port, timeout_s=0.3) as memory:
        await memory.ping()
        relay.hold()
        await _is_unavailable(memory, group)
        relay.resume()

        async with asyncio.timeout(60):
            while not await _answers(memory, group):
                continue


async def _is_unavailable(memory: MemoryStore, group: Group) -> None:
    with pytest.raises(StoreUnavailable):
        await memory.ping()
    with pytest.raises(StoreUnavailable):
        await memory.begin_turn(group.turn(), turn_id=group.message("q"), content="Q")


async def _answers(memory: MemoryStore, group: Group) -> bool:
    try:
        await memory.ping()
        await memory.working_memory(group.turn())
    except StoreUnavailable:
        return False
    return True
