"""A worker that holds a transcript is told what is new, and knows what one without it is told."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from types import SimpleNamespace

import psycopg
import pytest

from bot.listening.conversation_store import ChatConversations, heard_args
from bot.listening.decisions import Decision, IncomingMessage, Reason
from bot.listening.transcript import MAX_MESSAGES, HeldTranscripts, MessageRecord
from memory.rpc import Rpc
from memory.scope import AgentMemoryContext
from tests.support.backends import Backend
from tests.support.people import Group

pytestmark = pytest.mark.anyio

START = 1_700_000_000_000
RULES = SimpleNamespace(chat_mode="follow", chat_language="auto")
SILENT, ANSWERED = Decision(False, Reason.NO_TRIGGER), Decision(True, Reason.RECENT_FOLLOWUP)


@pytest.fixture
async def rpc(backend: Backend) -> AsyncIterator[Rpc]:
    async with backend.rpc() as rpc:
        yield rpc


def record(group: Group, number: int, *, ours: bool = False) -> MessageRecord:
    return MessageRecord(
        author="alice",
        author_id=group.person("alice"),
        content=f"line {number}",
        timestamp=START + number,
        is_bot=ours,
        message_id=group.message(str(number)),
        ours=ours,
    )


def message(one: MessageRecord) -> IncomingMessage:
    return IncomingMessage(one.message_id, one.author, one.author_id, one.content, one.timestamp)


async def told(
    rpc: Rpc, context: AgentMemoryContext, one: MessageRecord, transcripts: HeldTranscripts
) -> dict[str, object]:
    """What the memory tells a worker with these transcripts."""
    args = heard_args(one, 120_000, transcripts.of(context.tenant_key, context.chat_id))
    where = {"p_chat_id": context.chat_id, "p_tenant_key": context.tenant_key}
    row = await rpc.call("hear_message", {**where, "p_actor_id": "ou", **args}, context)
    found: dict[str, object] = row["conversation"]
    return found


class Worker:
    """Hears lines of one chat, and looks each time whether it has all of the conversation."""

    def __init__(self, rpc: Rpc, context: AgentMemoryContext) -> None:
        self.store = ChatConversations(rpc, context, HeldTranscripts())
        self._whole = ChatConversations(rpc, context)

    async def hear(self, one: MessageRecord) -> None:
        around, _ = await self.store.hear(message(one), RULES, timeout_ms=10_000_000)
        assert around.conversation == await self._whole.load(self.store._context.chat_id)


async def test_a_worker_that_holds_the_lines_before_is_told_the_new_one_only(
    rpc: Rpc, group: Group
) -> None:
    context, transcripts = group.turn(), HeldTranscripts()
    await ChatConversations(rpc, context).begin(
        context.chat_id, START, [record(group, n) for n in range(190)]
    )
    first = await told(rpc, context, record(group, 190), transcripts)
    held = transcripts.of(context.tenant_key, context.chat_id)
    transcripts.conversation(context.tenant_key, held, first)
    second = await told(rpc, context, record(group, 191), transcripts)

    assert len(first["messages"]) == 191  # type: ignore[arg-type]
    assert [one[4] for one in second["messages"]] == ["line 191"]  # type: ignore[attr-defined]
    assert len(json.dumps(second)) < 1_500


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_happens_meanwhile_it_has_the_same_as_one_that_holds_nothing(
    rpc: Rpc, group: Group, seed: int
) -> None:
    luck, context = random.Random(seed), group.turn()
    chat, number = context.chat_id, 0
    workers = [Worker(rpc, context), Worker(rpc, context)]
    plain = ChatConversations(rpc, context)
    await plain.begin(chat, START, [record(group, -n - 1000) for n in range(MAX_MESSAGES - 10)])
    heard: list[MessageRecord] = []
    for _ in range(60):
        number += luck.randint(-2, 5)  # late ones and repeated ones too
        one = record(group, number)
        match luck.choice("hear hear hear hear answer remove topics begin decide".split()):
            case "hear":
                await luck.choice(workers).hear(one)
                heard.append(one)
            case "answer":
                ours = record(group, 10_000 + number, ours=True)
                await plain.go_on(
                    chat, [ours], now=START + number, active_since=START, keep=MAX_MESSAGES
                )
            case "remove" if heard:
                await plain.remove(chat, luck.choice(heard).message_id)
            case "topics" if heard:
                topics = {luck.choice(heard).message_id: START + number}
                await plain.log_decision(message(luck.choice(heard)), SILENT, topics)
            case "decide" if heard:
                await plain.log_decision(message(luck.choice(heard)), ANSWERED)
            case "begin" if luck.random() < 0.3:
                await plain.begin(chat, START + number, [one])
    for worker in workers:
        await worker.hear(record(group, 20_000))


async def test_lines_from_before_a_newcomer_came_are_not_told_to_a_worker_that_holds_them(
    rpc: Rpc, group: Group, backend: Backend
) -> None:
    context = group.turn()
    worker = Worker(rpc, context)
    await worker.store.begin(context.chat_id, START, [record(group, 1)])
    await worker.hear(record(group, 2))
    with psycopg.connect(backend.database_url, autocommit=True) as database:
        database.execute(  # nobody knows who is in the chat: nothing from before now is told
            "insert into chat_rules (tenant_key, chat_id, history) values (%s, %s, 'hidden')",
            [context.tenant_key, context.chat_id],
        )

    around, _ = await worker.store.hear(message(record(group, 3)), RULES, timeout_ms=10_000_000)

    assert around.conversation
    assert [one.content for one in around.conversation.messages] == []


async def test_a_line_that_was_committed_after_later_ones_is_told(
    rpc: Rpc, group: Group, backend: Backend
) -> None:
    context = group.turn()
    worker = Worker(rpc, context)
    await worker.store.begin(context.chat_id, START, [record(group, 1)])
    await worker.hear(record(group, 2))
    await worker.store.remove(context.chat_id, group.message("2"))
    await worker.hear(record(group, 3))
    with psycopg.connect(backend.database_url, autocommit=True) as database:
        database.execute(
            "insert into chat_transcript (chat_id, tenant_key, message_id, author, author_id,"
            " content, timestamp, is_bot, number) overriding system value"
            " select chat_id, tenant_key, 'om_late', author, author_id, 'late', timestamp,"
            " false, number - 1 from chat_transcript where message_id = %s",
            [group.message("3")],
        )
    await worker.hear(record(group, 4))
