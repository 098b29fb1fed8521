"""Asks Feishu about chats in the background: who is in which group, again every six hours.

Each chat is taken by one worker at a time, and all workers together ask at one pace.
"""

from __future__ import annotations

import asyncio
import contextlib

import structlog

from bot.services import Services
from memory.errors import StoreError, StoreUnavailable

log = structlog.get_logger()

_EVERY_S = 60.0
_AT_MOST_EVERY_S = 1.0


async def learn_members(services: Services, *, every_s: float = _EVERY_S) -> None:
    """Once a minute, and soon after there is a new chat, for as long as the worker works."""
    membership, has_found = services.membership, False
    while membership:
        membership.news.clear()
        try:
            has_found = has_found or await membership.find() >= 0
            await membership.refresh()
        except StoreUnavailable as exc:
            log.warning("members.memory_away", error=type(exc).__name__, code=exc.code)
        except StoreError as exc:
            log.error("members.refused", error=type(exc).__name__, code=exc.code)
        await asyncio.sleep(_AT_MOST_EVERY_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(every_s):
                await membership.news.wait()
