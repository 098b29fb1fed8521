"""Looks again at the documents that answers told of: at each within an hour.

It asks as the person who had it read. Where not everybody in the group can open it any more, or the
person in p2p, the answers go that told of it, like those to a message that was taken back. Where
nobody says so, because Feishu is away or the person is no longer connected, they stay.
"""

from __future__ import annotations

import asyncio

import structlog

from bot.answering.documents_behind import look
from bot.services import Services
from memory.errors import StoreError, StoreUnavailable
from memory.tables.told_documents import ToldDocumentStore

log = structlog.get_logger()

_EVERY_S = 30.0
_AFTER_S = 3000.0
_AT_ONCE = 20


async def tend_told_documents(services: Services) -> None:
    """Twice a minute, for as long as the worker works."""
    while services.access is not None:
        try:
            while await look_again(services, after_s=_AFTER_S) == _AT_ONCE:
                pass
        except StoreUnavailable as exc:
            log.warning("documents.memory_away", error=type(exc).__name__)
        except StoreError as exc:
            log.error("documents.refused", error=type(exc).__name__, code=exc.code)
        await asyncio.sleep(_EVERY_S)


async def look_again(services: Services, *, after_s: float) -> int:
    """Looks at some that nobody has looked at for so long. Returns at how many. Raises
    `StoreError`."""
    store = ToldDocumentStore(services.rpc)
    due = await store.take_due(after_s, _AT_ONCE)
    for document in due:
        await look(services, document)
    return len(due)
