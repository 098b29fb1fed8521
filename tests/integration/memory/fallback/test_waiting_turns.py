"""A message held back by the one before it starts when that one ends, not at the next round."""

from __future__ import annotations

import asyncio

import pytest

from bot.queue import consumer as consuming
from bot.queue.consumer import Lease
from bot.queue.inbox import Inbox
from tests.support.queue import working

pytestmark = pytest.mark.anyio

MESSAGES = 30


async def test_messages_of_one_conversation_follow_each_other_without_a_poll(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consuming, "ROUND_S", 3600.0)
    said = [f"message {number}" for number in range(MESSAGES)]

    assert await handled(database_url, said) == said


async def handled(database_url: str, texts: list[str]) -> list[str]:
    """What a worker has handled, in order, once that is everything."""
    inbox = Inbox(database_url)
    everything, seen = asyncio.Event(), []

    async def handle(lease: Lease) -> None:
        if not seen:  # while the first is being handled, the others come
            for text in texts[1:]:
                await enqueue(inbox, text)
        seen.append(lease.job.args["payload"]["text"])
        if len(seen) == len(texts):
            everything.set()

    async with working(database_url, handle):
        await enqueue(inbox, texts[0])
        await everything.wait()
    inbox.close()
    return seen


async def enqueue(inbox: Inbox, text: str) -> None:
    await asyncio.to_thread(inbox.enqueue, text, {"text": text}, lock="thread", received_ms=0)
