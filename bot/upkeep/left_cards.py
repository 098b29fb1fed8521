"""Cards that nobody came back to: finished before Feishu ends their streaming after ten minutes.

A turn whose worker died is tried again and finishes its card itself; here is what is left when its
attempts are used up. The card gets the stored reply, or an honest sentence that is stored first.
"""

from __future__ import annotations

import asyncio

import structlog

from bot.feishu.errors import FeishuFailure
from bot.reply.buttons import card_buttons
from bot.reply.delivery import REPLACING, Delivered, Target, Undeliverable, deliver
from bot.reply.live_card import LiveCard
from bot.services import Services
from memory.errors import StoreError, StoreUnavailable
from memory.kept.cards import CardStore, OpenCard
from memory.models import StoredCard

log = structlog.get_logger()

LEFT_AFTER_S = 480
_UNTOUCHED_S = 60

UNFINISHED = (
    "抱歉，这次没能答完，请再问一次。 / Sorry, I could not finish this answer; please ask again."
)


async def tend_left_cards(services: Services) -> None:
    """Once a minute, for as long as the worker works."""
    while True:
        await finish_left_cards(services)
        await asyncio.sleep(_UNTOUCHED_S)


async def finish_left_cards(
    services: Services, *, older_s: int = LEFT_AFTER_S, untouched_s: int = _UNTOUCHED_S
) -> int:
    """Finishes what was left `older_s` seconds ago or earlier; returns how many. Never raises:
    what fails now is tried again in a minute."""
    store = CardStore(services.rpc)
    finished = 0
    try:
        for kept in await store.take_left(older_s=older_s, untouched_s=untouched_s):
            finished += await _finish_one(services, store, kept)
    except StoreUnavailable as exc:
        log.warning("left_cards.memory_away", error=type(exc).__name__, code=exc.code)
    except StoreError as exc:
        log.error("left_cards.refused", error=type(exc).__name__, code=exc.code)
    return finished


async def _finish_one(services: Services, store: CardStore, kept: OpenCard) -> bool:
    try:
        await _finish(services, LiveCard(services.feishu, store, kept), kept)
    except Undeliverable as exc:
        await services.store.mark_failed(kept.context, turn_id=kept.turn_id, error=exc.reason)
        await store.closed(kept)
    except (FeishuFailure, StoreError) as exc:
        log.warning("left_cards.failed", turn_id=kept.turn_id, error=type(exc).__name__)
        return False
    log.warning("left_cards.finished", turn_id=kept.turn_id)
    return True


async def _finish(services: Services, live: LiveCard, kept: OpenCard) -> None:
    _, reply = await services.store.record_reply(
        kept.context, turn_id=kept.turn_id, cards=[UNFINISHED]
    )
    if not reply:
        await live.withdraw()
    for card in reply:
        sent = await _sent(services, live, kept, card)
        if sent and card.status == "pending":
            await services.store.mark_sent(
                kept.context,
                turn_id=kept.turn_id,
                chunk=card.chunk,
                content=sent.content,
                message_id=sent.message_id,
            )
    await live.closed()


async def _sent(
    services: Services, live: LiveCard, kept: OpenCard, card: StoredCard
) -> Delivered | None:
    """The first card is the one that was left; of the others what is pending is sent."""
    names, buttons = services.people.of(kept.context.tenant_key).known, card_buttons(card.buttons)
    shown = None
    if card.chunk == 0 and card.status != "failed":
        shown = await live.finish(card.content, buttons=buttons, names=names)
    if shown or card.status != "pending":
        return shown
    return await deliver(
        services.feishu,
        Target(kept.reply_to, kept.context.chat_id, kept.in_thread),
        turn_id=kept.turn_id,
        chunk=card.chunk,
        content=card.content,
        names=names,
        buttons=buttons,
        version=REPLACING if card.chunk == 0 else 0,
        file=card.file,
    )
