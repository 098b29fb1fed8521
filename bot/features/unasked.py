"""Answers a chat's question that nobody took up, if the chat itself told the answer, and marks the
answer as unasked.

What was said since is read from Feishu at that time; where Feishu does not say, the bot stays
silent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import structlog

from bot.answering.answering import NO_ANSWER
from bot.answering.answering import answer as answer_question
from bot.answering.hearing import HearingResult
from bot.answering.question import Turn, turn_language
from bot.answering.request_chat import record_of_list
from bot.features.feature import Feature, Firing
from bot.features.timers import is_out_of_chat
from bot.feishu.errors import FeishuError, FeishuFailure
from bot.feishu.models import RawMessage
from bot.hooks import PressTurn
from bot.listening.decisions import (
    Decision,
    IncomingMessage,
    Reason,
    bare_question,
    is_any_stated,
    is_open_question,
    is_question_taken_up,
    is_thread_continued,
    speaks_at,
)
from bot.listening.transcript import MessageRecord
from bot.listening.turn_request import TurnRequest, WrittenQuestion
from bot.outbox.buttons import FOLLOW_UP_LIVES_S, Reply
from bot.outbox.sending import leave_unsent
from bot.services import Services
from bot.text.languages import Catalogue
from memory.models import OpenTurn, Origin
from memory.tables.cards import NewButton
from memory.tables.timers import DueTimer, ProactivePermission, ProactiveStore, Timer

log = structlog.get_logger()
STOP_PRESS = "proactive.stop"
LATE_S = 1800.0  # later than this an answer is of no use

_BEFORE_S = 1800
_MOST = 50

say = Catalogue(__file__).say


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
        question = await current_question(services, timer)
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
    hearing = _hearing_result(services, request)
    try:
        await firing.handle_request(
            services,
            request,
            due.now_ms,
            answering=_unasked_reply,
            lease=firing.lease,
            hearing=hearing,
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


async def _may(services: Services, timer: Timer, *, claim: bool) -> ProactivePermission:
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
        timer.context, bare_question(timer.plan.content)
    )
    return "" if is_any_stated(statements) else "unknown"


async def _not_told(services: Services, timer: Timer, exc: FeishuFailure) -> str:
    """Feishu does not say what was said: nothing is."""
    if await is_out_of_chat(services, timer.context, exc):
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
        written=WrittenQuestion(
            timer.turn_id, "text", question.parent_id, template=timer.plan.content
        ),
    )


def _hearing_result(services: Services, request: TurnRequest) -> HearingResult:
    message = IncomingMessage(
        message_id=request.message_id,
        author=services.people.of(request.tenant_key).name(request.sender_open_id),
        author_id=request.sender_open_id,
        text=request.text,
        timestamp=int(services.clock() * 1000),
        root_id=request.root_of_thread or None,
    )
    return HearingResult(message, Decision(True, Reason.PROACTIVE, "heuristic"))


async def _unasked_reply(services: Services, turn: Turn, open_turn: OpenTurn) -> Reply:
    """The model's answer below a line that says that nobody asked. Raises `NothingToSay`."""
    reply = await answer_question(services, turn, open_turn)
    has_sources = reply.foot is not None and reply.foot.recalled
    if not has_sources or NO_ANSWER in reply.text or reply.means.kind == "apologised":
        raise NothingToSay
    reply_language = turn_language(services, turn, open_turn)
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


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Whether somebody took the question up, or that cannot be seen; who speaks there besides."""

    taken_up: bool
    names: frozenset[str] = frozenset()


UNSEEN = Surroundings(taken_up=True)


async def current_question(services: Services, timer: Timer) -> RawMessage | None:
    """The question as it stands; None: it is gone. Raises `FeishuFailure`."""
    messages = await services.feishu.get_message(timer.turn_id)
    return messages[0] if messages and not messages[0].deleted else None


async def look_around(services: Services, timer: Timer, question: RawMessage) -> Surroundings:
    """In a thread its messages count, and whatever is said after the question takes it up. In the
    main chat those of its topic, and those of a thread under it. In a group of topics each is a
    thread. Raises `FeishuFailure`."""
    thread = await _thread(services, question) if question.thread_id else []
    main = [] if question.root_id else await _chat(services, timer)
    if thread is None or main is None:
        return UNSEEN
    if question.thread_id and all(raw.thread_id for raw in main):
        main = []
    in_thread, in_main = (
        await _records(services, timer, thread),
        await _records(services, timer, main),
    )
    taken_up = bool(thread) and is_thread_continued(in_thread, question.message_id)
    taken_up = taken_up or (bool(main) and is_question_taken_up(in_main, question.message_id))
    others = (one.author for one in (*in_thread, *in_main) if one.author_id != question.sender_id)
    return Surroundings(taken_up or not (thread or main), frozenset(others))


async def _thread(services: Services, question: RawMessage) -> list[RawMessage] | None:
    """The thread's newest messages, oldest first; None where they do not reach back so far."""
    messages = await services.feishu.list_messages(
        "thread", question.thread_id, descending=True, max_items=_MOST
    )
    return (
        messages[::-1] if any(raw.message_id == question.message_id for raw in messages) else None
    )


async def _chat(services: Services, timer: Timer) -> list[RawMessage] | None:
    """What was said in the main chat, oldest first; None where a lot was said since."""
    asked_s = int(timer.plan.local_at.replace(tzinfo=UTC).timestamp())
    chat_id = timer.context.chat_id
    later_messages = await services.feishu.list_messages(
        "chat", chat_id, start_s=asked_s, max_items=_MOST + 1
    )
    before = await services.feishu.list_messages(
        "chat",
        chat_id,
        start_s=asked_s - _BEFORE_S,
        end_s=asked_s,
        descending=True,
        max_items=20,
    )
    here = {raw.message_id: raw for raw in (*reversed(before), *later_messages)}
    return list(here.values()) if len(later_messages) <= _MOST and timer.turn_id in here else None


async def _records(
    services: Services, timer: Timer, raw_messages: Iterable[RawMessage]
) -> tuple[MessageRecord, ...]:
    bot = await services.own_person.look_up()
    names = services.people.of(timer.context.tenant_key)
    here = [raw for raw in raw_messages if not raw.deleted]
    await names.look_up({raw.sender_id for raw in here if raw.sender_type == "user"})
    app_id = services.settings.feishu_app_id
    return tuple(record_of_list(names, app_id, raw, bot) for raw in here)


UNASKED = Feature(
    name="unasked",
    presses={STOP_PRESS: stop_unasked},
    timers={"proactive": answer_unasked},
    settings=frozenset({"proactive_per_day", "proactive_hours"}),
)
