"""Finds a card in the chat when nobody knows whether it was sent.

Feishu recognises a repeated send by its uuid for an hour. After that the bot reads the thread and
the chat: each of its cards carries an id made of its turn and number. If they cannot be read, the
card is not sent, because a second answer is worse than one that an operator has to look for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import structlog

from bot.feishu import cards, markup
from bot.feishu.client import FeishuClient
from bot.feishu.errors import Action, FeishuError, FeishuFailure
from bot.feishu.models import RawMessage
from bot.feishu.shown import is_same, shown_text
from bot.outbox.delivery import Delivered, Target, Undeliverable
from bot.process import metrics
from bot.queue.consumer import Lease
from bot.queue.jobs import Hopeless
from bot.services import Services
from memory.models import StoredCard

log = structlog.get_logger()

UUID_HOLDS_S = 50 * 60.0
_SKEW_S = 120
_MOST = 500
_MOST_CARDS = 20
_GONE = frozenset({Action.TERMINAL_MESSAGE, Action.TERMINAL_CHAT, Action.TERMINAL_USER})
_PASSES = frozenset({Action.RETRY, Action.IN_FLIGHT, Action.REFRESH_TOKEN})


class OutcomeUnknown(Hopeless):
    """A card may have been sent, and the chat cannot be read: an operator has to look."""

    reason = "OutcomeUnknown"


@dataclass(frozen=True, slots=True)
class Doubt:
    """`since_ms` is when a card may first have been sent, ms since epoch; 0: certainly not yet."""

    app_id: str
    since_ms: int
    clock: Callable[[], float]

    @property
    def is_old(self) -> bool:
        """Whether Feishu may have forgotten the uuid."""
        return bool(self.since_ms) and self.clock() - self.since_ms / 1000 > UUID_HOLDS_S

    @property
    def is_unsent(self) -> bool:
        """Whether a card that was not found was certainly not sent, so its text may change."""
        return not self.since_ms or self.is_old


def doubt_of(services: Services, since_ms: int) -> Doubt:
    return Doubt(services.settings.feishu_app_id, since_ms, services.clock)


@contextlib.contextmanager
def sending(lease: Lease | None) -> Iterator[None]:
    """Marks the lease as unsure while the body sends, until the body learns what came of it."""
    if lease is None:
        yield
        return
    lease.unsure = True
    try:
        yield
    except FeishuFailure as failure:
        lease.unsure = failure.maybe_done
        raise
    except Undeliverable:
        lease.unsure = False
        raise


async def find_sent(
    feishu: FeishuClient,
    target: Target,
    doubt: Doubt,
    turn_id: str,
    card: StoredCard,
    names: Mapping[str, str],
) -> Delivered | None:
    """The card as the chat shows it. None: it is not there, or Feishu still knows its uuid.

    Raises `OutcomeUnknown`, `Undeliverable`, or a failure that is worth another attempt.
    """
    if not doubt.is_old:
        return None
    try:
        messages = await _listed(feishu, target, doubt)
    except FeishuError as error:
        if error.action in _PASSES:
            raise
        if error.action in _GONE:
            raise Undeliverable(f"feishu {error.code}") from error
        raise _unknown(turn_id, card.chunk, error) from error
    chunk, content = card.chunk, card.content
    plain = markup.plain_text(content, names)
    for message in messages:
        if message.sender_id == doubt.app_id and not message.deleted:
            element_id = cards.answer_id(turn_id, chunk)
            if card.file:
                delivery = _delivered_file(message, content, doubt)
            else:
                delivery = _delivered(message, element_id, content, plain)
            if delivery:
                log.warning("delivery.found", turn_id=turn_id, chunk=chunk)
                return delivery
    if len(messages) >= _MOST:
        raise _unknown(turn_id, chunk)
    return None


async def find_answers(feishu: FeishuClient, target: Target, doubt: Doubt) -> list[str]:
    """The message_ids of the bot's cards in the chat that answer `target`.

    Raises `FeishuFailure` for errors that may pass. If the chat cannot be read, returns none.
    """
    try:
        messages = await _listed(feishu, target, doubt)
    except FeishuError as error:
        if error.action in _PASSES:
            raise
        log.warning("delivery.not_searched", turn_id=target.message_id, code=error.code)
        return []
    ids = [cards.answer_id(target.message_id, chunk) for chunk in range(_MOST_CARDS)]
    return [
        message.message_id
        for message in messages
        if message.sender_id == doubt.app_id
        and not message.deleted
        and message.message_type == "interactive"
        and any(shown_text(message, one) is not None for one in ids)
    ]


async def _listed(feishu: FeishuClient, target: Target, doubt: Doubt) -> list[RawMessage]:
    """The messages where the card would be: the thread's, and the chat's since `since_ms`."""
    since_s = doubt.since_ms // 1000 - _SKEW_S
    question = await feishu.get_message(target.message_id) if target.message_id else []
    thread_id = question[0].thread_id if question else ""
    messages: list[RawMessage] = []
    for kind, container, start_s in (
        ("thread", thread_id, None),
        ("chat", target.chat_id, since_s),
    ):
        if container:
            messages += await feishu.list_messages(
                kind,
                container,
                start_s=start_s,
                end_s=int(doubt.clock()) + _SKEW_S if start_s else None,
                descending=True,
                max_items=_MOST,
                user_card_content=True,
            )
    return messages


def _delivered(message: RawMessage, element_id: str, content: str, plain: str) -> Delivered | None:
    """The card as the message shows it; None if it is another message."""
    if message.message_type == "text":
        return Delivered(plain, message.message_id) if shown_text(message) == plain else None
    text = shown_text(message, element_id)
    if text is None:
        return None
    return Delivered(content if is_same(text, content) else text, message.message_id)


def _delivered_file(message: RawMessage, content: str, doubt: Doubt) -> Delivered | None:
    """The sent file; None if it is another. A file carries no id, so name and time decide."""
    since = message.create_time_ms >= doubt.since_ms - _SKEW_S * 1000
    if message.message_type not in ("file", "image") or not since:
        return None
    return Delivered(content, message.message_id) if shown_text(message) == content else None


def _unknown(turn_id: str, chunk: int, error: FeishuError | None = None) -> OutcomeUnknown:
    metrics.UNKNOWN_OUTCOMES.inc()
    log.error(
        "delivery.outcome_unknown",
        turn_id=turn_id,
        chunk=chunk,
        code=error.code if error else 0,
        scopes=error.scopes if error else (),
        next_step="look into the chat; if the card is not there: scripts/queue retry --not-sent",
    )
    return OutcomeUnknown()
