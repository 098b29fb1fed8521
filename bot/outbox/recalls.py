"""What happens when a person takes a message back."""

from __future__ import annotations

import asyncio

import structlog

from bot.feishu.events import Recall
from bot.outbox.receipts import sign_receipts
from bot.outbox.same_words import find_same_words, tell_same_words
from bot.outbox.withdrawing import withdraw_cards
from bot.services import Services

log = structlog.get_logger()


async def handle_recall(services: Services, recall: Recall) -> None:
    """A message was taken back: it is gone with all that was made from it, and is not answered any
    more. What shows it is withdrawn, at once or when Feishu lets us."""
    services.transcripts.drop(recall.chat_id)
    same = await find_same_words(services, [recall.message_id])
    state = await services.store.take_back(recall.message_id, recall.chat_id)
    if services.queue:
        await asyncio.to_thread(services.queue.forget, message_id=recall.message_id)
    log.info("recalled", message_id=recall.message_id, turn_state=state)
    await sign_receipts(services)
    await withdraw_cards(services)
    await tell_same_words(services, same, recall.message_id)
