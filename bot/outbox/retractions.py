"""Handles a retracted message: withdraws the cards that repeat it, tells its author where the
words remain, and signs a receipt.

What is to be withdrawn stands in the memory since the taking back itself, so neither a killed
worker nor a Feishu that is away loses it. Withdrawing twice is withdrawing once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from bot.feishu import cards, markup
from bot.feishu.errors import FeishuError, FeishuFailure
from bot.feishu.events import RetractedMessage
from bot.outbox.delivery import Aside, Target, Undeliverable
from bot.outbox.finding import doubt_of, find_answers, withdraw_comment
from bot.outbox.sending import send_notice
from bot.outbox.texts import CATALOGUE, say_both
from bot.services import Services
from bot.text.languages import Language, join_list
from memory.errors import StoreError, StoreUnavailable
from memory.receipts import Copy, Receipt, ReceiptStore, load_signing_key
from memory.scope import AgentMemoryContext, is_document_chat
from memory.tables.cards import DueWithdrawal, Withdrawals
from memory.tables.items import SaidMessageStore, SameWordsElsewhere

log = structlog.get_logger()

_EVERY_S = 15.0
_ARRIVES_WITHIN_S = 60.0

_MOST_NAMED = 10

_RECEIPTS_EVERY_S = 15.0


async def handle_retraction(services: Services, recall: RetractedMessage) -> None:
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


async def _withdraw(services: Services, store: Withdrawals, due: DueWithdrawal) -> None:
    try:
        if is_document_chat(due.chat_id):
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
        await store.drop(due)


async def _is_elsewhere(services: Services, due: DueWithdrawal) -> bool:
    """Whether the card stands in a chat where it is none of the turn's that named it. One that
    cannot be read is taken for the turn's own."""
    try:
        messages = await services.feishu.get_message(due.id)
    except FeishuFailure:
        return False
    return bool(messages) and messages[0].chat_id not in ("", *due.chats)


async def _search(services: Services, due: DueWithdrawal) -> bool:
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
    how = "gone" if is_gone else await _remove_card(services, message_id)
    log.info("withdrawn", message_id=message_id, how=how)
    return True


async def _taken_from_one(services: Services, message_id: str) -> bool:
    """Whether it was a card that one person sees beside a group, which is gone now."""
    try:
        await services.feishu.delete_ephemeral(message_id)
    except FeishuError as error:
        if error.action.may_pass:
            raise
        return False
    return True


async def _remove_card(services: Services, message_id: str) -> str:
    """What became of the card: gone, or a notice in its place, or neither where Feishu allows
    nothing any more. Raises `FeishuFailure` for what may pass."""
    try:
        await services.feishu.delete_message(message_id)
    except FeishuError as error:
        if error.action.may_pass:
            raise
        log.info("withdrawing.not_allowed", message_id=message_id, code=error.code)
    else:
        return "gone"
    notice = cards.card_content(cards.answer_card(say_both("taken-back")))
    try:
        await services.feishu.patch_card(message_id, notice)
    except FeishuError as error:
        if error.action.may_pass:
            raise
        log.warning("withdrawing.impossible", message_id=message_id, code=error.code)
        return "still shown"
    return "notice"


async def find_same_words(services: Services, messages: Sequence[str]) -> SameWordsElsewhere | None:
    """Where their author said the same, asked before they are deleted. Never raises."""
    try:
        return await SaidMessageStore(services.rpc).elsewhere(messages)
    except StoreError as exc:
        log.info("same_words.unknown", error=type(exc).__name__)
        return None


async def tell_same_words(
    services: Services, same_words: SameWordsElsewhere | None, key: str
) -> None:
    """Tells them in p2p, once per `key`, whoever else reads along where it was deleted. Never
    raises."""
    if same_words is None:
        return
    text = "\n\n".join(_text(same_words, language) for language in ("zh", "en"))
    try:
        await send_notice(services, Aside(same_words.person), text, key=f"same words {key}")
    except (FeishuFailure, Undeliverable) as exc:
        log.info("same_words.untold", error=type(exc).__name__)


def _text(same_words: SameWordsElsewhere, language: Language) -> str:
    unnamed_chat = CATALOGUE.say("another-chat", language)
    names = dict.fromkeys(markup.verbatim_words(name) or unnamed_chat for name in same_words.chats)
    return CATALOGUE.say(
        "same-words-stay", language, chats=join_list([*names][:_MOST_NAMED], language)
    )


async def tend_receipts(services: Services) -> None:
    """Signs what was drafted, every few seconds, for as long as the worker works."""
    while True:
        await sign_receipts(services)
        await asyncio.sleep(_RECEIPTS_EVERY_S)


async def sign_receipts(services: Services) -> None:
    """Signs all drafts. Never raises: a draft waits in the database until it is signed."""
    receipts, settings = ReceiptStore(services.rpc), services.settings
    try:
        if await receipts.has_drafts():
            for receipt in await receipts.sign(
                load_signing_key(settings.data_dir, settings.receipt_key)
            ):
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
