"""Withdraws the cards of ours that repeat what was taken back.

What is to be withdrawn stands in the memory since the taking back itself, so neither a killed
worker nor a Feishu that is away loses it. Withdrawing twice is withdrawing once.
"""

from __future__ import annotations

import asyncio

import structlog

from bot.feishu import cards
from bot.feishu.errors import Action, FeishuError, FeishuFailure
from bot.outbox.commenting import withdraw_comment
from bot.outbox.delivery import Target
from bot.outbox.finding import doubt_of, find_answers
from bot.outbox.texts import say_both
from bot.services import Services
from memory.errors import StoreError, StoreUnavailable
from memory.scope import in_document
from memory.tables.withdrawals import Due, Withdrawals

log = structlog.get_logger()

_EVERY_S = 15.0
_ARRIVES_WITHIN_S = 60.0
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
        if forgotten_turns := await store.forget_turns():
            log.info("turns.forgotten", turns=forgotten_turns)
        while due := await store.take():
            for one in due:
                await _withdraw(services, store, one)
    except StoreUnavailable as exc:
        log.warning("withdrawing.memory_away", error=type(exc).__name__, code=exc.code)
    except StoreError as exc:
        log.error("withdrawing.refused", error=type(exc).__name__, code=exc.code)


async def _withdraw(services: Services, store: Withdrawals, due: Due) -> None:
    try:
        if in_document(due.chat_id):
            is_over = await withdraw_comment(services.feishu, due.id, due.chat_id)
        elif due.question:
            is_over = await _search(services, due)
        elif is_over := await _is_elsewhere(services, due):
            log.warning("withdrawing.elsewhere", message_id=due.id, chat_id=due.chat_id)
        else:
            is_over = await withdraw_card(services, due.id, of_one=due.of_one)
    except FeishuFailure as exc:
        code = getattr(exc, "code", None)
        log.warning("withdrawing.later", message_id=due.id, error=type(exc).__name__, code=code)
        return
    if is_over:
        await store.done(due)


async def _is_elsewhere(services: Services, due: Due) -> bool:
    """Whether the card stands in a chat where it is none of the turn's that named it. One that
    cannot be read is taken for the turn's own."""
    try:
        messages = await services.feishu.get_message(due.id)
    except FeishuFailure:
        return False
    return bool(messages) and messages[0].chat_id not in ("", *due.chats)


async def _search(services: Services, due: Due) -> bool:
    """Withdraws the cards that answer a question which was taken back, as the chat shows them.

    A worker may have been killed while it sent one; after a while none arrives any more.
    """
    target = Target(due.question, due.chat_id, in_thread=True)
    doubt = doubt_of(services, due.since_ms)
    for message_id in await find_answers(services.feishu, target, doubt):
        await withdraw_card(services, message_id)
    return due.age_s > _ARRIVES_WITHIN_S


async def withdraw_card(services: Services, message_id: str, *, of_one: bool = False) -> bool:
    """True: nothing more can be done. Raises `FeishuFailure` for what may pass."""
    is_gone = of_one and await _taken_from_one(services, message_id)
    how = "gone" if is_gone else await _removed(services, message_id)
    log.info("withdrawn", message_id=message_id, how=how)
    return True


async def _taken_from_one(services: Services, message_id: str) -> bool:
    """Whether it was a card that one person sees beside a group, which is gone now."""
    try:
        await services.feishu.delete_ephemeral(message_id)
    except FeishuError as error:
        if error.action in _PASSES:
            raise
        return False
    return True


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
    notice = cards.card_content(cards.answer_card(say_both("taken-back")))
    try:
        await services.feishu.patch_card(message_id, notice)
    except FeishuError as error:
        if error.action in _PASSES:
            raise
        log.warning("withdrawing.impossible", message_id=message_id, code=error.code)
        return "still shown"
    return "notice"
