"""Timers over every backend: whose they are, once when due, gone with their message or person."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from memory.errors import AccessDenied, TakenBack
from memory.models import Origin
from memory.rpc import Rpc
from memory.scope import AgentMemoryContext, FeishuPerson
from memory.store import MemoryStore
from memory.tables.directory import ChatStore
from memory.tables.operations import Operations
from memory.tables.timers import (
    MOST_OF_A_PERSON,
    DigestStore,
    Timer,
    TimerPlan,
    TimerStore,
    TooManyTimers,
)
from tests.support.backends import Backend
from tests.support.people import Group

pytestmark = pytest.mark.anyio

WALL = datetime(2026, 11, 23, 9, 0)  # noqa: DTZ001
SOON = TimerPlan("stand up", WALL, "Asia/Shanghai", due_ms=4_000_000_000_000, for_all=True)


@pytest.fixture
async def rpc(backend: Backend) -> AsyncIterator[Rpc]:
    async with backend.rpc() as opened:
        yield opened


@pytest.fixture
def timers(rpc: Rpc) -> TimerStore:
    return TimerStore(rpc)


async def set_one(
    rpc: Rpc, context: AgentMemoryContext, turn_id: str, plan: TimerPlan = SOON
) -> Timer:
    await MemoryStore(rpc).begin_turn(context, turn_id=turn_id, content="remind us")
    return await TimerStore(rpc).set(context, turn_id, plan)


def due_now(backend: Backend, *ids: str) -> int:
    """Makes them due; returns since when, ms since epoch."""
    with psycopg.connect(backend.database_url, autocommit=True) as db:
        (ms,) = db.execute("select (extract(epoch from now()) * 1000)::bigint - 5000").fetchone()
        db.execute(
            "update agent_timers set due_at = to_timestamp(%s / 1000.0), queued_until = null"
            " where id = any (%s)",
            [ms, list(ids)],
        )
    return int(ms)


async def test_set_again_is_set_once_and_is_read_in_its_chat_only(rpc: Rpc, group: Group) -> None:
    alice, turn_id, timers = group.turn(), group.message("asked"), TimerStore(rpc)
    first = await set_one(rpc, alice, turn_id)
    assert await timers.set(alice, turn_id, SOON) == first
    assert first.plan == SOON
    assert await timers.list(group.turn("bob")) == (first,)
    assert await timers.list(group.turn("alice", chat="there")) == ()
    assert await timers.list(group.p2p("alice")) == ()


async def test_only_the_author_changes_it(rpc: Rpc, timers: TimerStore, group: Group) -> None:
    alice, bob = group.turn(), group.turn("bob")
    timer = await set_one(rpc, alice, group.message("asked"))
    later = replace(SOON, content="sit down", repeats="daily", for_all=False, for_people=("ou_x",))
    assert await timers.change(bob, timer.id, later) is None
    changed = await timers.change(alice, timer.id, later)
    assert changed
    assert changed.plan == later


async def test_author_addressee_and_manager_cancel_it_and_nobody_else(
    rpc: Rpc, timers: TimerStore, group: Group
) -> None:
    alice, bob, carl = group.turn(), group.turn("bob"), group.turn("carl")
    both = replace(SOON, for_all=False, for_people=(bob.actor_id, carl.actor_id))
    timer = await set_one(rpc, alice, group.message("asked"), both)
    with pytest.raises(AccessDenied):
        await timers.cancel(group.turn("dora"), timer.id)
    assert await timers.cancel(group.turn("alice", chat="there"), timer.id) is None
    await timers.cancel(bob, timer.id)
    assert [one.plan.for_people for one in await timers.list(alice)] == [(carl.actor_id,)]
    await timers.cancel(carl, timer.id)
    assert await timers.list(alice) == ()

    second = await set_one(rpc, alice, group.message("again"))
    dora = group.turn("dora")
    await ChatStore(rpc).save_managers(dora.tenant_key, dora.chat_id, [dora.actor_id])
    assert await timers.cancel(dora, second.id) == second
    assert await timers.cancel(dora, second.id) is None


async def test_so_many_and_no_more(rpc: Rpc, timers: TimerStore, group: Group) -> None:
    alice = group.turn()
    for n in range(MOST_OF_A_PERSON):
        await set_one(rpc, alice, group.message("asked"), replace(SOON, content=f"n{n}"))
    with pytest.raises(TooManyTimers, match="person"):
        await set_one(rpc, alice, group.message("asked"), replace(SOON, content="more"))
    await set_one(rpc, group.turn("bob"), group.message("bobs"))


async def test_a_due_timer_is_taken_by_one_and_goes_on_once(
    backend: Backend, rpc: Rpc, timers: TimerStore, group: Group
) -> None:
    timer = await set_one(rpc, group.turn(), group.message("asked"))
    assert timer.id not in {one.id for one in await timers.take_due(1000)}
    due_ms = due_now(backend, timer.id)
    taken = await asyncio.gather(*(timers.take_due(1000) for _ in range(4)))
    assert [one.due_ms for all in taken for one in all if one.id == timer.id] == [due_ms]

    due = await timers.due(timer.id, due_ms)
    assert due
    assert due.now_ms >= due_ms
    assert await timers.due(timer.id, due_ms - 1) is None
    following = due_ms + 86_400_000
    assert await timers.mark_fired(due.timer, following)
    assert not await timers.mark_fired(due.timer, following), "one time was over twice"
    assert await timers.due(timer.id, due_ms) is None
    (left,) = await timers.list(group.turn())
    assert left.plan.due_ms == following


async def test_it_is_gone_with_its_message(rpc: Rpc, timers: TimerStore, group: Group) -> None:
    alice, turn_id, memory = group.turn(), group.message("asked"), MemoryStore(rpc)
    timer = await set_one(rpc, alice, turn_id)
    fired = Origin("reminder", timer.id, str(timer.plan.due_ms))
    await memory.begin_turn(alice, turn_id=fired.turn_id, content="due", origin=fired)
    await memory.record_reply(alice, turn_id=fired.turn_id, cards=["stand up"])
    await memory.mark_sent(
        alice, turn_id=fired.turn_id, chunk=0, content="stand up", message_id="om_fired"
    )
    await memory.take_back(turn_id, alice.chat_id)
    assert await timers.list(alice) == ()
    again = await memory.begin_turn(alice, turn_id=fired.turn_id, content="due")
    assert again.state == "cancelled"
    with pytest.raises(TakenBack):
        await timers.set(alice, turn_id, SOON)


async def test_it_is_forgotten_with_its_author_and_its_thread(
    rpc: Rpc, timers: TimerStore, group: Group
) -> None:
    alice, bob = group.turn(), group.turn("bob")
    await set_one(rpc, alice, group.message("asked"), replace(SOON, content="hers"))
    for_alice = replace(SOON, for_all=False, for_people=(alice.actor_id,))
    await set_one(rpc, bob, group.message("bobs"), for_alice)
    await set_one(rpc, bob, group.message("bobs"), replace(for_alice, for_all=True))
    await Operations(rpc).forget_person(alice.actor_id, alice.tenant_key)
    assert [one.plan.for_people for one in await timers.list(bob)] == [()]
    await Operations(rpc).forget_conversation(bob.conversation_id, bob.actor_id, keep_notes=True)
    assert await timers.list(bob) == ()


async def test_who_left_is_left_out_and_a_chat_that_is_gone_stops_all(
    rpc: Rpc, timers: TimerStore, group: Group
) -> None:
    alice, bob, chats = group.turn(), group.turn("bob"), ChatStore(rpc)
    pair = replace(SOON, for_all=False, for_people=(alice.actor_id, bob.actor_id))
    own = replace(pair, for_people=(bob.actor_id,))
    await set_one(rpc, alice, group.message("asked"), pair)
    await set_one(rpc, bob, group.message("bobs"), own)
    at = int(datetime.now().timestamp() * 1000)  # noqa: DTZ005
    gone = [FeishuPerson(bob.tenant_key, bob.actor_id)]
    await chats.remove(bob.tenant_key, bob.chat_id, gone, at_ms=at)
    assert [one.plan.for_people for one in await timers.list(alice)] == [(alice.actor_id,)]
    later = at + int(timedelta(seconds=1).total_seconds() * 1000)
    await chats.leave(alice.tenant_key, alice.chat_id, at_ms=later)
    assert await timers.list(alice) == ()


async def test_a_digest_is_of_its_chat_is_its_managers_and_goes_with_its_sources(
    rpc: Rpc, timers: TimerStore, group: Group
) -> None:
    alice, bob, memory, digests = (
        group.turn(),
        group.turn("bob"),
        MemoryStore(rpc),
        DigestStore(rpc),
    )
    for context, name in ((alice, "hers"), (bob, "his"), (group.turn(chat="there"), "there")):
        turn_id = group.message(name)
        await memory.begin_turn(context, turn_id=turn_id, content=f"said {name}")
        await memory.record_reply(context, turn_id=turn_id, cards=[f"heard {name}"])
        await memory.mark_sent(
            context, turn_id=turn_id, chunk=0, content=f"heard {name}", message_id=f"{turn_id}_card"
        )
    span = {"since": datetime.fromtimestamp(0, UTC), "until": datetime.fromtimestamp(9e9, UTC)}
    said = await digests.material(alice, root=None, **span)
    assert [one.content for one in said] == ["said hers", "heard hers", "said his", "heard his"]

    made = group.message("digest")
    await memory.begin_turn(alice, turn_id=made, content="/digest")
    assert await digests.keep_sources(alice, made, said)
    await memory.record_reply(alice, turn_id=made, cards=["in other words"])
    await memory.take_back(group.message("his"), bob.chat_id)
    gone = await memory.begin_turn(alice, turn_id=made, content="/digest")
    assert gone.state == "cancelled"
    late = group.message("late")
    await memory.begin_turn(alice, turn_id=late, content="/digest")
    assert not await digests.keep_sources(alice, late, said), "one of them was taken back"

    daily = replace(SOON, content="", repeats="daily")
    with pytest.raises(AccessDenied):
        await digests.set_schedule(alice, late, daily)
    await ChatStore(rpc).save_managers(alice.tenant_key, alice.chat_id, [alice.actor_id])
    assert not await digests.set_schedule(alice, late, daily)
    assert (await digests.schedule(bob)).plan == daily
    assert await timers.list(alice) == ()
    assert await digests.set_schedule(alice, late, None)
    assert await digests.schedule(bob) is None


async def test_a_digest_goes_when_one_who_is_in_it_is_forgotten(rpc: Rpc, group: Group) -> None:
    alice, bob, memory, digests = (
        group.turn(),
        group.turn("bob"),
        MemoryStore(rpc),
        DigestStore(rpc),
    )
    await memory.begin_turn(bob, turn_id=group.message("his"), content="said his")
    span = {"since": datetime.fromtimestamp(0, UTC), "until": datetime.fromtimestamp(9e9, UTC)}
    made = group.message("digest")
    await memory.begin_turn(alice, turn_id=made, content="/digest")
    said = await digests.material(alice, root=None, **span)
    assert await digests.keep_sources(alice, made, said)
    await memory.record_reply(alice, turn_id=made, cards=["in other words"])
    await Operations(rpc).forget_person(bob.actor_id, bob.tenant_key)
    gone = await memory.begin_turn(alice, turn_id=made, content="/digest")
    assert gone.state == "cancelled"
