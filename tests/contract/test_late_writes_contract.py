"""What a memory that was away is told afterwards: late, perhaps twice, and still in its place."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bot.conversation import ConversationManager
from bot.listening.conversation_store import ChatConversations
from bot.listening.transcript import MessageRecord
from bot.queue.table import JobTable
from memory.backends.postgres import connection_pool
from memory.errors import StoreUnavailable
from memory.fallback.breaker import BreakingRpc, CircuitBreaker
from memory.fallback.store_jobs import LateRpc, StoreJobs
from memory.rpc import Rpc
from tests.support.backends import Backend
from tests.support.people import Group
from tests.support.store_jobs import write_waiting

pytestmark = pytest.mark.anyio

START = 1_800_000_000_000


@pytest.fixture
async def rpc(backend: Backend) -> AsyncIterator[Rpc]:
    async with backend.rpc() as rpc:
        yield rpc


def said(group: Group, text: str, at: int, *, ours: bool = False) -> MessageRecord:
    return MessageRecord("x", group.person("alice"), text, at, ours, group.message(text), ours=ours)


def conversations(rpc: Rpc, group: Group, now: int) -> ConversationManager:
    return ConversationManager(ChatConversations(rpc, group.turn()), clock=lambda: now)


async def heard(rpc: Rpc, group: Group, now: int) -> list[str]:
    found = await conversations(rpc, group, now).get(group.chat())
    return [message.content for message in found.messages] if found else []


async def test_an_answer_without_a_conversation_begins_one(rpc: Rpc, group: Group) -> None:
    question, answer = said(group, "q", START), said(group, "a", START + 1)
    begun = await conversations(rpc, group, START + 1).go_on(group.chat(), [question], answer)

    assert begun
    assert [message.ours for message in begun.messages] == [False, True]
    assert await heard(rpc, group, START + 2) == ["q", "a"]


async def test_an_answer_goes_on_with_a_conversation_that_was_not_known(
    rpc: Rpc, group: Group
) -> None:
    chat = conversations(rpc, group, START)
    await chat.start(group.chat(), [said(group, "before", START)])
    question, answer = said(group, "q", START + 10), said(group, "a", START + 11)
    for _ in range(2):
        await chat.go_on(group.chat(), [question], answer)

    assert await heard(rpc, group, START + 20) == ["before", "q", "a"]


async def test_a_conversation_that_began_later_stays_and_what_was_said_before_stands_before_it(
    rpc: Rpc, group: Group
) -> None:
    later = conversations(rpc, group, START + 60_000)
    await later.start(group.chat(), [said(group, "later", START + 60_000)])
    question, answer = said(group, "q", START), said(group, "a", START + 1)
    await conversations(rpc, group, START + 1).go_on(group.chat(), [question], answer)

    assert await heard(rpc, group, START + 60_000) == ["q", "a", "later"]


async def test_a_conversation_that_was_ended_later_is_not_begun_again(
    rpc: Rpc, group: Group
) -> None:
    later = conversations(rpc, group, START + 60_000)
    await later.start(group.chat(), [said(group, "later", START + 60_000)])
    await later.end(group.chat())
    await conversations(rpc, group, START).go_on(
        group.chat(), [said(group, "q", START)], said(group, "a", START)
    )

    assert await heard(rpc, group, START + 60_000) == []


async def test_late_writes_reach_the_memory_with_the_identity_of_their_sender(
    rpc: Rpc, database_url: str, group: Group
) -> None:
    breaker = CircuitBreaker(failures=1)
    breaker.note_failure()
    async with connection_pool(database_url, size=2) as pool:
        jobs = StoreJobs(pool)
        late = LateRpc(BreakingRpc(rpc, breaker), jobs)
        chat = conversations(late, group, START)
        with pytest.raises(StoreUnavailable):
            await chat.go_on(group.chat(), [said(group, "q", START)], said(group, "a", START + 1))
        with pytest.raises(StoreUnavailable):
            await chat.record_message(group.chat(), said(group, "more", START + 2))
        assert await heard(rpc, group, START + 3) == []

        assert await write_waiting(database_url, jobs, JobTable(pool), rpc) == []

    assert await heard(rpc, group, START + 3) == ["q", "a", "more"]
