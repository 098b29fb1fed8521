"""Finds cards and comments when nobody knows whether they were sent, and delivers answers in
comments of documents.

Feishu recognises a repeated send by its uuid for an hour. After that the bot reads the thread and
the chat: each of its cards carries an id made of its turn and number. If they cannot be read, the
card is not sent, because a second answer is worse than one that an operator has to look for.

Where nobody knows whether a reply was said, the thread is read back before it is said again: a
reply of the bot's after the question, with the same words, that the memory does not know yet, is
the one. Where the thread cannot be read nobody says it, and an operator looks. A comment on a whole
document takes no replies; there the answer is such a comment, too."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import structlog

from bot.feishu import cards, markup
from bot.feishu.client import FeishuClient
from bot.feishu.errors import FeishuError, FeishuFailure
from bot.feishu.models import RawMessage, is_same_text, shown_text
from bot.feishu.other_events import (
    CommentReply,
    CommentThread,
    comment_message_key,
    elements_of,
    is_said,
    place_of_comment_key,
)
from bot.outbox.delivery import Delivered, InComment, Target, Undeliverable
from bot.outbox.texts import say_both
from bot.process import metrics
from bot.queue.consumer import Lease
from bot.queue.jobs import Hopeless
from bot.services import Services
from memory.models import StoredCard
from memory.scope import AgentMemoryContext

log = structlog.get_logger()
UUID_HOLDS_S = 50 * 60.0
_SKEW_S = 120
_MOST = 500
_MOST_CARDS = 20

NO_REPLIES = 1069302  # on a whole document, or solved: no reply is taken
REVIEWED = 1069306  # what is said does not pass Feishu's review
_UNSURE = frozenset({1069301, 1069399})  # Feishu failed, and does not say at what
_COMMENT_GONE_CODES = frozenset({1069304, 1069305, 1069307})

_NOT_SENT = "scripts/queue retry --not-sent"
_LOOK_INTO_CHAT = f"look into the chat; if the card is not there: {_NOT_SENT}"
_LOOK_INTO_COMMENTS = f"look into the comments; if the answer is not there: {_NOT_SENT}"


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
def unsure_while_sending(lease: Lease | None) -> Iterator[None]:
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
        messages = await _list_messages(feishu, target, doubt)
    except FeishuError as error:
        if error.action.passes_by_itself:
            raise
        if error.action.is_final_here:
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
                delivery = _delivered_card(message, element_id, content, plain)
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
        messages = await _list_messages(feishu, target, doubt)
    except FeishuError as error:
        if error.action.passes_by_itself:
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


async def _list_messages(feishu: FeishuClient, target: Target, doubt: Doubt) -> list[RawMessage]:
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


def _delivered_card(
    message: RawMessage, element_id: str, content: str, plain: str
) -> Delivered | None:
    """The card as the message shows it; None if it is another message."""
    if message.message_type == "text":
        return Delivered(plain, message.message_id) if shown_text(message) == plain else None
    text = shown_text(message, element_id)
    if text is None:
        return None
    return Delivered(content if is_same_text(text, content) else text, message.message_id)


def _delivered_file(message: RawMessage, content: str, doubt: Doubt) -> Delivered | None:
    """The sent file; None if it is another. A file carries no id, so name and time decide."""
    is_recent = message.create_time_ms >= doubt.since_ms - _SKEW_S * 1000
    if message.message_type not in ("file", "image") or not is_recent:
        return None
    return Delivered(content, message.message_id) if shown_text(message) == content else None


def _unknown(
    turn_id: str, chunk: int, error: FeishuError | None = None, next_step: str = _LOOK_INTO_CHAT
) -> OutcomeUnknown:
    metrics.UNKNOWN_OUTCOMES.inc()
    log.error(
        "delivery.outcome_unknown",
        turn_id=turn_id,
        chunk=chunk,
        code=error.code if error else 0,
        scopes=error.scopes if error else (),
        next_step=next_step,
    )
    return OutcomeUnknown()


async def find_comment(
    services: Services,
    context: AgentMemoryContext,
    target: InComment,
    doubt: Doubt,
    turn_id: str,
    card: StoredCard,
) -> Delivered | None:
    """The reply as the thread shows it. None: it is not there. Raises `OutcomeUnknown`,
    `Undeliverable`, or a failure that is worth another attempt."""
    if not doubt.since_ms:
        return None
    try:
        replies = await _said_since(services, target, doubt)
    except FeishuError as error:
        if error.action.passes_by_itself:
            raise
        if error.code in _COMMENT_GONE_CODES:
            raise Undeliverable(f"feishu {error.code}") from error
        raise _unknown(turn_id, card.chunk, error, next_step=_LOOK_INTO_COMMENTS) from error
    for reply in replies:
        key = comment_message_key(target.place.file_type, reply.reply_id)
        for content in (card.content, say_both("neutral")):
            if is_said(reply, content) and await services.store.said(context, key) is None:
                log.warning("delivery.found", turn_id=turn_id, chunk=card.chunk)
                return Delivered(content, key)
    return None


async def deliver_comment(feishu: FeishuClient, target: InComment, content: str) -> Delivered:
    """Says `content`. Raises `Undeliverable`, or a failure that is worth another attempt."""
    try:
        try:
            reply_id = await _say(feishu, target, content)
        except FeishuError as error:
            if error.code != REVIEWED:
                raise
            content = say_both("neutral")
            reply_id = await _say(feishu, target, content)
    except FeishuError as error:
        metrics.FEISHU_ERRORS.labels(code=error.code).inc()
        log.warning(
            "delivery.refused", code=error.code, log_id=error.log_id, action=error.action.value
        )
        if error.action.may_pass:
            error.maybe_done = error.maybe_done or error.code in _UNSURE
            raise
        raise Undeliverable(f"feishu {error.code}") from error
    return Delivered(content, comment_message_key(target.place.file_type, reply_id))


async def withdraw_comment(feishu: FeishuClient, key: str, chat_id: str) -> bool:
    """True: nothing more can be done about a reply of ours. Raises `FeishuFailure` for what may
    pass."""
    try:
        place, reply_id = place_of_comment_key(key, chat_id)
    except ValueError:
        return True  # it names a question; its answers stand in the memory with their own ids
    how = "gone"
    try:
        await feishu.comments.remove(place, reply_id)
    except FeishuError as error:
        if error.action.may_pass:
            raise
        how = "still shown"
        log.warning("withdrawing.impossible", message_id=key, code=error.code)
    log.info("withdrawn", message_id=key, how=how)
    return True


async def _say(feishu: FeishuClient, target: InComment, content: str) -> str:
    elements = elements_of(content)
    try:
        return await feishu.comments.reply(target.place, elements)
    except FeishuError as error:
        if error.code != NO_REPLIES:
            raise
        thread = await feishu.comments.thread(target.place)
        if thread is None or not thread.is_whole:
            raise
    return await feishu.comments.comment(target.place, elements)


async def _said_since(services: Services, target: InComment, doubt: Doubt) -> list[CommentReply]:
    """What the bot has said since the question, in its thread, or on the whole document."""
    bot = await services.own_person.look_up()
    thread = await services.feishu.comments.thread(target.place)
    if thread is None:
        raise Undeliverable("the comment is gone")
    replies = list(_after(thread, target.reply_id))
    if thread.is_whole:
        since_s = doubt.since_ms // 1000 - _SKEW_S
        others = await services.feishu.comments.whole(target.place)
        replies += [
            reply for one in others for reply in one.replies[:1] if reply.create_time_s >= since_s
        ]
    return [one for one in replies if one.author_open_id == bot.open_id]


def _after(thread: CommentThread, reply_id: str) -> Iterator[CommentReply]:
    """The replies after one of them; all, where that is gone."""
    ids = [one.reply_id for one in thread.replies]
    begins = ids.index(reply_id) + 1 if reply_id in ids else 0
    return iter(thread.replies[begins:])
