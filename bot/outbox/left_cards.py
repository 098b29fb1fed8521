"""Cards that nobody came back to: finished before Feishu ends their streaming after ten minutes.

A turn whose worker died is tried again and finishes its card itself; here is what is left when its
attempts are used up. The card gets the stored reply, or an honest sentence that is stored first.
"""

from __future__ import annotations

import asyncio
import contextlib

import structlog

from bot.feishu.errors import FeishuFailure
from bot.outbox.delivery import Target, Undeliverable
from bot.outbox.live_card import LiveCard
from bot.outbox.sending import Outgoing, send
from bot.outbox.texts import say_both
from bot.services import Services
from memory.errors import StoreError, StoreUnavailable
from memory.tables.cards import CardStore, OpenCard

log = structlog.get_logger()

LEFT_AFTER_S = 560  # an answer may flow for nine minutes
_UNTOUCHED_S = 60
_EVERY_S = 15.0


async def tend_left_cards(services: Services) -> None:
    """Often enough, for as long as the worker works."""
    while True:
        await finish_left_cards(services)
        await asyncio.sleep(_EVERY_S)


async def finish_left_cards(
    services: Services, *, older_s: int = LEFT_AFTER_S, untouched_s: int = _UNTOUCHED_S
) -> int:
    """Finishes what was left `older_s` seconds ago or earlier; returns how many. Never raises:
    what fails now is tried again in a minute."""
    store = CardStore(services.rpc)
    count = 0
    try:
        for open_card in await store.take_left(older_s=older_s, untouched_s=untouched_s):
            count += await _finish_one(services, store, open_card)
    except StoreUnavailable as exc:
        log.warning("left_cards.memory_away", error=type(exc).__name__, code=exc.code)
    except StoreError as exc:
        log.error("left_cards.refused", error=type(exc).__name__, code=exc.code)
    return count


async def _finish_one(services: Services, store: CardStore, open_card: OpenCard) -> bool:
    try:
        state = await _finish(services, LiveCard(services.feishu, store, open_card), open_card)
        await store.closed(open_card)
    except (FeishuFailure, StoreError) as exc:
        log.warning("left_cards.failed", turn_id=open_card.turn_id, error=type(exc).__name__)
        return False
    log.warning("left_cards.finished", turn_id=open_card.turn_id, state=state)
    return True


async def _finish(services: Services, live: LiveCard, open_card: OpenCard) -> str:
    _, reply = await services.store.record_reply(
        open_card.context, turn_id=open_card.turn_id, cards=[say_both("unfinished")]
    )
    if not reply:
        with contextlib.suppress(Undeliverable):
            await live.withdraw()
        return "withdrawn"
    target = Target(open_card.reply_to, open_card.context.chat_id, open_card.in_thread)
    names = services.people.of(open_card.context.tenant_key).known
    out = Outgoing(open_card.context, open_card.turn_id, reply, target, names)
    return (await send(services, out, stream=live)).state
