"""A sign that the bot is at work: a reaction on the question, no extra message."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import structlog

from bot.feishu.client import FeishuClient
from bot.feishu.errors import FeishuFailure

log = structlog.get_logger()

_AFTER_S = 1.2
_EMOJI = "Typing"
_running: set[asyncio.Task[None]] = set()


@contextlib.asynccontextmanager
async def showing_work(feishu: FeishuClient, message_id: str) -> AsyncIterator[None]:
    """Shows the sign when the work takes longer than a moment, and takes it back afterwards.

    The reply never waits for the sign.
    """
    done_event = asyncio.Event()
    task = asyncio.create_task(_sign(feishu, message_id, done_event))
    _running.add(task)
    task.add_done_callback(_running.discard)
    try:
        yield
    finally:
        done_event.set()


async def _sign(feishu: FeishuClient, message_id: str, done_event: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_AFTER_S):
            await done_event.wait()
            return
    try:
        reaction_id = await feishu.add_reaction(message_id, _EMOJI)
        await done_event.wait()
        await feishu.delete_reaction(message_id, reaction_id)
    except FeishuFailure as exc:
        log.info("working_sign.unavailable", message_id=message_id, error=type(exc).__name__)
