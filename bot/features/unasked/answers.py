"""A question of a chat has waited: if nobody took it up and the chat told the answer, the bot gives
it, marked as unasked, in the way of every answer.

What others said since is read from Feishu at that time, so nothing that was missed meanwhile is
taken for silence; where Feishu does not say, nothing is said.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import structlog

from bot.answering.answering import NO_ANSWER
from bot.answering.answering import answer as answer_question
from bot.answering.hearing import Heard
from bot.answering.question import Turn, language
from bot.features.feature import Firing, PressTurn
from bot.features.timers.left_chats import is_gone
from bot.features.unasked.texts import say
from bot.features.unasked.waiting_times import asked_now, look_around
from bot.feishu.errors import FeishuError, FeishuFailure
from bot.feishu.models import RawMessage
from bot.listening.decisions import Decision, IncomingMessage, Reason
from bot.listening.open_questions import is_open_question, is_told, itself, speaks_at
from bot.listening.turn_request import TurnRequest, Written
from bot.outbox.buttons import FOLLOW_UP_LIVES_S, Reply
from bot.outbox.sending import leave_unsent
from bot.services import Services
from memory.models import OpenTurn
from memory.origins import Origin
from memory.tables.buttons import NewButton
from memory.tables.proactive import May, ProactiveStore
from memory.tables.timers import DueTimer, Timer

log = structlog.get_logger()

STOP_PRESS = "proactive.stop"
LATE_S = 1800.0  # later than this an answer is of no use


class NothingToSay(Exception):
    """The model found no answer in what it was told."""


async def answer_unasked(services: Services, firing: Firing) -> str:
    """One job. Returns what came of it, for metrics; raises what is worth another attempt."""
    due = firing.due
    timer = due.timer
    may = await _may(services, timer, claim=False)
    if may == "no":
        return "not_wanted"
    try:
        question = await asked_now(services, timer)
        if question is None:
            return "taken_up"
        if may == "free" and (reason := await _silent_because(services, due, question)):
            return reason
    except FeishuFailure as exc:
        if may == "claimed":
            raise
        return await _not_told(services, timer, exc)
    if await _may(services, timer, claim=True) != "claimed":
        return "not_wanted"
    request = _request(services, timer, question)
    hearing = _heard(services, request)
    try:
        await firing.handle_request(
            services, request, due.now_ms, answering=_answered, lease=firing.lease, heard=hearing
        )
    except NothingToSay:
        await leave_unsent(services, timer.context, timer.turn_id, "nothing to say")
        await ProactiveStore(services.rpc).leave(timer.context, timer.turn_id)
        return "nothing_to_say"
    return "sent"


async def stop_unasked(services: Services, press_turn: PressTurn) -> Reply:
    """Any member of the group stops what the bot says there unasked."""
    await ProactiveStore(services.rpc).stop(press_turn.context)
    return Reply(say("stopped", press_turn.language))


async def _may(services: Services, timer: Timer, *, claim: bool) -> May:
    midnight = services.now().replace(hour=0, minute=0, second=0, microsecond=0)
    return await ProactiveStore(services.rpc).may_answer(
        timer.context,
        timer.turn_id,
        since=midnight,
        most=services.settings.proactive_per_day,
        claim=claim,
    )


async def _silent_because(services: Services, due: DueTimer, question: RawMessage) -> str:
    """Why nothing is said; "" where there is something to say. Raises `FeishuFailure`."""
    timer, settings = due.timer, services.settings
    now = datetime.fromtimestamp(due.now_ms / 1000, UTC)
    if not settings.proactive:
        return "not_wanted"
    if not speaks_at(now.astimezone(settings.zone), settings.speaking_hours):
        return "quiet_hours"
    if due.now_ms - timer.plan.due_ms > LATE_S * 1000:
        return "late"
    around = await look_around(services, timer, question)
    if around.taken_up:
        return "taken_up"
    if not is_open_question(timer.plan.content, around.names):
        return "addressed"
    statements = await ProactiveStore(services.rpc).said_about(
        timer.context, itself(timer.plan.content)
    )
    return "" if is_told(statements) else "unknown"


async def _not_told(services: Services, timer: Timer, exc: FeishuFailure) -> str:
    """Feishu does not say what was said: nothing is."""
    if await is_gone(services, timer.context, exc):
        return "gone"
    if isinstance(exc, FeishuError) and not exc.action.is_of_one_call:
        services.denials.note("list_messages", "group", exc)
    log.info("proactive.not_listed", error=type(exc).__name__)
    return "taken_up"


def _request(services: Services, timer: Timer, question: RawMessage) -> TurnRequest:
    """The question as it was heard, where it stands now."""
    context = timer.context
    return TurnRequest(
        id=timer.turn_id,
        origin=Origin("unasked"),
        sender_open_id=context.actor_id,
        tenant_key=context.tenant_key,
        chat_id=context.chat_id,
        chat_type="group",
        text=timer.plan.content,
        create_time_ms=question.create_time_ms,
        root_id=question.root_id,
        thread_id=question.thread_id,
        threaded=context.root_id == question.root_id,
        written=Written(timer.turn_id, "text", question.parent_id, template=timer.plan.content),
    )


def _heard(services: Services, request: TurnRequest) -> Heard:
    message = IncomingMessage(
        message_id=request.message_id,
        author=services.people.of(request.tenant_key).name(request.sender_open_id),
        author_id=request.sender_open_id,
        text=request.text,
        timestamp=int(services.clock() * 1000),
        root_id=request.root_of_thread or None,
    )
    return Heard(message, Decision(True, Reason.PROACTIVE, "heuristic"))


async def _answered(services: Services, turn: Turn, open_turn: OpenTurn) -> Reply:
    """The model's answer below a line that says that nobody asked. Raises `NothingToSay`."""
    reply = await answer_question(services, turn, open_turn)
    has_sources = reply.foot is not None and reply.foot.recalled
    if not has_sources or NO_ANSWER in reply.text or reply.means.kind == "apologised":
        raise NothingToSay
    reply_language = language(services, turn, open_turn)
    words = say("stop-this", reply_language)
    stop = NewButton(
        words,
        "follow_up",
        {"text": words, "tool": STOP_PRESS, "language": reply_language},
        "group",
        FOLLOW_UP_LIVES_S,
    )
    return replace(
        reply,
        text=f"{say('nobody-answered', reply_language)}\n\n{reply.text}",
        buttons=(stop,),
        auto_mention=None,
        files=(),
    )
