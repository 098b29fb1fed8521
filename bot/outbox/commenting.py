"""Answers in the comments of a document: said once, though Feishu takes no uuid for them.

Where nobody knows whether a reply was said, the thread is read back before it is said again: a
reply of the bot's after the question, with the same words, that the memory does not know yet, is
the one. Where the thread cannot be read nobody says it, and an operator looks. A comment on a whole
document takes no replies; there the answer is such a comment, too.
"""

from __future__ import annotations

from collections.abc import Iterator

import structlog

from bot.documents.comment_text import elements_of, is_said
from bot.feishu.client import FeishuClient
from bot.feishu.comment_events import CommentReply, CommentThread, message_key, place_of_reply
from bot.feishu.errors import Action, FeishuError
from bot.outbox.delivery import Delivered, InComment, Undeliverable
from bot.outbox.finding import Doubt, OutcomeUnknown
from bot.outbox.texts import say_both
from bot.process import metrics
from bot.services import Services
from memory.models import StoredCard
from memory.scope import AgentMemoryContext

log = structlog.get_logger()

NO_REPLIES = 1069302  # on a whole document, or solved: no reply is taken
REVIEWED = 1069306  # what is said does not pass Feishu's review
_UNSURE = frozenset({1069301, 1069399})  # Feishu failed, and does not say at what
_PASSES = frozenset({Action.RETRY, Action.IN_FLIGHT, Action.REFRESH_TOKEN})
_GONE = frozenset({1069304, 1069305, 1069307})
_SKEW_S = 120


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
        if error.action in _PASSES:
            raise
        if error.code in _GONE:
            raise Undeliverable(f"feishu {error.code}") from error
        metrics.UNKNOWN_OUTCOMES.inc()
        log.error(
            "delivery.outcome_unknown",
            turn_id=turn_id,
            chunk=card.chunk,
            code=error.code,
            next_step="look into the comments; if the answer is not there: "
            "scripts/queue retry --not-sent",
        )
        raise OutcomeUnknown from error
    for reply in replies:
        key = message_key(target.place.file_type, reply.reply_id)
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
    return Delivered(content, message_key(target.place.file_type, reply_id))


async def withdraw_comment(feishu: FeishuClient, key: str, chat_id: str) -> bool:
    """True: nothing more can be done about a reply of ours. Raises `FeishuFailure` for what may
    pass."""
    try:
        place, reply_id = place_of_reply(key, chat_id)
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
