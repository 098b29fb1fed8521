"""A question of a chat has waited: if nobody took it up and the chat told the answer, the bot gives
it, marked as unasked, in the way of every answer.

What others said since is read from Feishu at that time, so nothing that was missed meanwhile is
taken for silence; where Feishu does not say, nothing is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import structlog

from bot.answer.answering import NO_ANSWER
from bot.answer.answering import answer as answer_question
from bot.answer.apologies import is_apology
from bot.answer.hearing import Heard
from bot.answer.question import Turn
from bot.feishu.errors import FeishuError, FeishuFailure
from bot.feishu.events import MessageEvent
from bot.feishu.models import RawMessage
from bot.group.decisions import Decision, IncomingMessage, Reason
from bot.group.unasked import is_open_question, is_told, itself, speaks_at
from bot.languages import Language, language_of
from bot.queue.consumer import Lease
from bot.reply.buttons import FOLLOW_UP_LIVES_S, Reply
from bot.services import Services
from bot.timed.leaving import is_gone
from bot.timed.since import asked_now, look_around
from bot.turn import handle_message
from memory.kept.buttons import NewButton
from memory.kept.proactive import May, ProactiveStore
from memory.kept.timers import DueTimer, Timer
from memory.models import OpenTurn

log = structlog.get_logger()

LATE_S = 1800.0  # later than this an answer is of no use

UNASKED: Mapping[Language, str] = {
    "zh": "> 没有人问我，不过这个问题还没有人回答，而这里以前说过：",
    "en": "> I was not asked, but nobody has answered, and it was said here before:",
}
STOP_THIS: Mapping[Language, str] = {"zh": "别再这样", "en": "Stop this"}


class NothingToSay(Exception):
    """The model found no answer in what it was told."""


async def answer_unasked(services: Services, due: DueTimer, lease: Lease) -> str:
    """One job. Returns what came of it, for metrics; raises what is worth another attempt."""
    timer = due.timer
    may = await _may(services, timer, claim=False)
    if may == "no":
        return "not_wanted"
    try:
        asked = await asked_now(services, timer)
        if asked is None:
            return "taken_up"
        if may == "free" and (reason := await _silent_because(services, due, asked)):
            return reason
    except FeishuFailure as exc:
        if may == "claimed":
            raise
        return await _not_told(services, timer, exc)
    if await _may(services, timer, claim=True) != "claimed":
        return "not_wanted"
    event = _event(services, timer, asked)
    heard = _heard(services, event)
    try:
        await handle_message(
            services, event, due.now_ms, answering=_answered, lease=lease, heard=heard
        )
    except NothingToSay:
        await services.store.mark_failed(
            timer.context, turn_id=timer.turn_id, error="nothing to say"
        )
        await ProactiveStore(services.rpc).leave(timer.context, timer.turn_id)
        return "nothing_to_say"
    return "sent"


async def _may(services: Services, timer: Timer, *, claim: bool) -> May:
    midnight = services.now().replace(hour=0, minute=0, second=0, microsecond=0)
    return await ProactiveStore(services.rpc).may_answer(
        timer.context,
        timer.turn_id,
        since=midnight,
        most=services.settings.proactive_per_day,
        claim=claim,
    )


async def _silent_because(services: Services, due: DueTimer, asked: RawMessage) -> str:
    """Why nothing is said; "" where there is something to say. Raises `FeishuFailure`."""
    timer, settings = due.timer, services.settings
    now = datetime.fromtimestamp(due.now_ms / 1000, UTC)
    if not settings.proactive:
        return "not_wanted"
    if not speaks_at(now.astimezone(settings.zone), settings.speaking_hours):
        return "quiet_hours"
    if due.now_ms - timer.plan.due_ms > LATE_S * 1000:
        return "late"
    around = await look_around(services, timer, asked)
    if around.taken_up:
        return "taken_up"
    if not is_open_question(timer.plan.content, around.names):
        return "addressed"
    found = await ProactiveStore(services.rpc).said_about(timer.context, itself(timer.plan.content))
    return "" if is_told(found) else "unknown"


async def _not_told(services: Services, timer: Timer, exc: FeishuFailure) -> str:
    """Feishu does not say what was said: nothing is."""
    if await is_gone(services, timer.context, exc):
        return "gone"
    if isinstance(exc, FeishuError) and not exc.action.is_of_one_call:
        services.denials.note("list_messages")
    log.info("proactive.not_listed", error=type(exc).__name__)
    return "taken_up"


def _event(services: Services, timer: Timer, asked: RawMessage) -> MessageEvent:
    """The question as it was heard, where it stands now."""
    context = timer.context
    return MessageEvent(
        event_id=timer.id,
        message_id=timer.turn_id,
        root_id=asked.root_id,
        parent_id=asked.parent_id,
        thread_id=asked.thread_id,
        chat_id=context.chat_id,
        chat_type="group",
        message_type="text",
        sender_open_id=context.actor_id,
        sender_type="user",
        tenant_key=context.tenant_key,
        create_time_ms=int(services.clock() * 1000),
        mentions=(),
        mentions_all=False,
        text=timer.plan.content,
        template=timer.plan.content,
        attachments=(),
    )


def _heard(services: Services, event: MessageEvent) -> Heard:
    message = IncomingMessage(
        message_id=event.message_id,
        author=services.people.of(event.tenant_key).name(event.sender_open_id),
        author_id=event.sender_open_id,
        text=event.text,
        timestamp=event.create_time_ms,
        root_id=event.root_id if event.thread_id else None,
    )
    return Heard(message, Decision(True, Reason.PROACTIVE, "heuristic"))


async def _answered(services: Services, turn: Turn, opened: OpenTurn) -> Reply:
    """The model's answer below a line that says that nobody asked. Raises `NothingToSay`."""
    reply = await answer_question(services, turn, opened)
    known = reply.foot is not None and reply.foot.recalled
    if not known or NO_ANSWER in reply.text or is_apology(reply.text):
        raise NothingToSay
    language = language_of([turn.question])
    stop = NewButton(
        STOP_THIS[language],
        "follow_up",
        {"text": STOP_THIS[language], "stops": "proactive", "language": language},
        "group",
        FOLLOW_UP_LIVES_S,
    )
    return replace(
        reply,
        text=f"{UNASKED[language]}\n\n{reply.text}",
        buttons=(stop,),
        auto_mention=None,
        files=(),
    )
