"""A message held back by the one before it starts when that one ends, not at the next poll."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bot.queue.inbox import QUEUE, Inbox
from bot.queue.jobs import worker_app

pytestmark = pytest.mark.anyio

POLL_S = 1.0  # a wake-up can be lost while the worker looks (Procrastinate); then the poll helps
MESSAGES = 30


async def test_messages_of_one_conversation_follow_each_other_without_a_poll(
    database_url: str,
) -> None:
    said = [f"message {number}" for number in range(MESSAGES)]

    async with asyncio.timeout(MESSAGES * POLL_S / 2):
        assert await handled(database_url, said) == said


async def handled(database_url: str, texts: list[str]) -> list[str]:
    """What a worker has handled, in order, once that is everything."""
    inbox = Inbox(database_url)
    everything, seen = asyncio.Event(), []

    async def handler(payload: dict[str, Any], received_ms: int, attempt: int) -> None:
        if not seen:  # while the first is being handled, the others come
            for text in texts[1:]:
                await enqueue(inbox, text)
        seen.append(payload["text"])
        if len(seen) == len(texts):
            everything.set()

    app = worker_app(database_url, handler, size=4)
    async with app.open_async():
        working = asyncio.create_task(
            app.run_worker_async(
                queues=[QUEUE],
                concurrency=8,
                install_signal_handlers=False,
                fetch_job_polling_interval=POLL_S,
                delete_jobs="successful",
            )
        )
        try:
            await enqueue(inbox, texts[0])
            await everything.wait()
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            inbox.close()
    return seen


async def enqueue(inbox: Inbox, text: str) -> None:
    await asyncio.to_thread(inbox.enqueue, text, {"text": text}, lock="thread", received_ms=0)
