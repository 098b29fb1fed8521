"""Withdraws the cards of ours that repeat what was taken back.

What is to be withdrawn stands in the memory since the taking back itself, so neither a killed
worker nor a Feishu that is away loses it. Withdrawing twice is withdrawing once.
"""

from __future__ import annotations

import asyncio

import structlog

from bot.feishu import cards
from bot.feishu.errors import Action, FeishuError, FeishuFailure
from bot.reply.live_card import TAKEN_BACK
from bot.services import Services
from memory.errors import StoreError, StoreUnavailable
from memory.kept.withdrawals import Withdrawals

log = structlog.get_logger()

_EVERY_S = 15.0
_PASSES = frozenset({Action.RETRY, Action.IN_FLIGHT, Action.REFRESH_TOKEN, Action.ALERT})


async def tend_withdrawals(services: Services) -> None:
    """Every few seconds, for as long as the worker works."""
    while True:
        await withdraw_cards(services)
        await asyncio.sleep(_EVERY_S)


async def withdraw_cards(services: Services) -> None:
    """Withdraws what is due. Never raises: what fails now is due again later."""
    store = Withdrawals(services.rpc)
    try:
        if gone := await store.forget_turns():
            log.info("turns.forgotten", turns=gone)
        while due := await store.take():
            for message_id in due:
                await _withdraw(services, store, message_id)
    except StoreUnavailable as exc:
        log.warning("withdrawing.memory_away", error=type(exc).__name__, code=exc.code)
    except StoreError as exc:
        log.error("withdrawing.refused", error=type(exc).__name__, code=exc.code)


async def _withdraw(services: Services, store: Withdrawals, message_id: str) -> None:
    try:
        how = await _removed(services, message_id)
    except FeishuFailure as exc:
        code = getattr(exc, "code", None)
        log.warning("withdrawing.later", message_id=message_id, error=type(exc).__name__, code=code)
        return
    await store.done(message_id)
    log.info("withdrawn", message_id=message_id, how=how)


async def _removed(services: Services, message_id: str) -> str:
    """What became of the card: gone, or a notice in its place, or neither where Feishu allows
    nothing any more. Raises `FeishuFailure` for what may pass."""
    try:
        await services.feishu.delete_message(message_id)
    except FeishuError as error:
        if error.action in _PASSES:
            raise
        log.info("withdrawing.not_allowed", message_id=message_id, code=error.code)
    else:
        return "gone"
    notice = cards.card_content(cards.answer_card(TAKEN_BACK))
    try:
        await services.feishu.patch_card(message_id, notice)
    except FeishuError as error:
        if error.action in _PASSES:
            raise
        log.warning("withdrawing.impossible", message_id=message_id, code=error.code)
        return "still shown"
    return "notice"
