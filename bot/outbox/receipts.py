"""Signs the receipts of deletions, and anchors the head of their chain in the log."""

from __future__ import annotations

import asyncio

import structlog

from bot.services import Services
from memory.errors import StoreError
from memory.receipts.keys import load_key
from memory.receipts.receipt import Receipt
from memory.scope import AgentMemoryContext
from memory.tables.receipts import Copy, ReceiptStore

log = structlog.get_logger()

_EVERY_S = 15.0


async def tend_receipts(services: Services) -> None:
    """Signs what was drafted, every few seconds, for as long as the worker works."""
    while True:
        await sign_receipts(services)
        await asyncio.sleep(_EVERY_S)


async def sign_receipts(services: Services) -> None:
    """Signs all drafts. Never raises: a draft waits in the database until it is signed."""
    receipts, settings = ReceiptStore(services.rpc), services.settings
    try:
        if await receipts.has_drafts():
            for receipt in await receipts.sign(load_key(settings.data_dir, settings.receipt_key)):
                _anchor(receipt)
    except (StoreError, OSError) as exc:
        log.warning("deletion.receipt_unsigned", error=type(exc).__name__)


async def receipt_copy(services: Services, salt: str) -> Copy | None:
    """The receipt drafted with this salt, signed now; None if that has to wait."""
    await sign_receipts(services)
    try:
        return await ReceiptStore(services.rpc).copy(salt)
    except StoreError as exc:
        log.warning("deletion.receipt_away", error=type(exc).__name__)
        return None


async def newest_receipt(services: Services, context: AgentMemoryContext) -> int:
    """The number of the sender's newest receipt, 0 if there is none. Raises `StoreError`."""
    store = ReceiptStore(services.rpc)
    receipts = await store.own(context.actor_id, context.tenant_key, limit=1)
    return receipts[-1].number if receipts else 0


async def receipts_since(
    services: Services, context: AgentMemoryContext, number: int
) -> tuple[Receipt, ...]:
    """The sender's receipts after that number, signed now; without those that have to wait."""
    await sign_receipts(services)
    try:
        store = ReceiptStore(services.rpc)
        return await store.own(context.actor_id, context.tenant_key, after=number)
    except StoreError as exc:
        log.warning("deletion.receipt_away", error=type(exc).__name__)
        return ()


def _anchor(receipt: Receipt) -> None:
    """A chain whose tail was cut lacks a hash that the log has."""
    log.info(
        "deletion.receipt",
        number=receipt.number,
        hash=receipt.hash,
        kind=receipt.fields["kind"],
    )
