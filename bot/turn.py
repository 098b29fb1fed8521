"""One request, from the queue to a stored and delivered reply. Read `handle_request` top down.

Requests arrive at least once and replies leave exactly once, so every step can be repeated. A reply
is stored before it is sent, a stored reply is never made again, and Feishu recognises a repeated
send by its uuid.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace

import structlog

from bot.answering import material
from bot.answering.answering import Answering, answer_question
from bot.answering.attachments import AUDIO, UnheardVoiceAnswer, with_recognised_words
from bot.answering.between_turns import tend_later
from bot.answering.hearing import HearingResult, listen, opening_args, with_earlier_talk
from bot.answering.question import (
    Turn,
    count_conversation,
    stoppable,
    turn_language,
    turn_of_request,
    with_opened,
)
from bot.answering.recall import recall_at_opening, vector_of
from bot.answering.reply import EndedTurn, ProgressFrames, send_reply, store_reply, stored_answer
from bot.answering.request_chat import RequestChat, enter_chat
from bot.answering.request_rate import is_stop
from bot.hooks import FollowUp
from bot.listening.transcript import ChannelConversation, HeldTranscript
from bot.listening.turn_request import TurnRequest
from bot.outbox.buttons import Reply, stop_button
from bot.outbox.live_card import showing_work
from bot.outbox.retractions import withdraw_cards
from bot.outbox.streaming import CardStream, Opening, Working, begin_stream
from bot.process import metrics
from bot.process.concurrency import room_to_begin, room_to_go_on
from bot.process.metrics import timed_stage
from bot.process.usage import TurnRecord
from bot.queue.consumer import Lease
from bot.services import Services
from memory.models import ANSWERED_ELSEWHERE, OpenTurn, TurnOutcome
from memory.tables.cards import new_button_id

log = structlog.get_logger()


async def handle_request(
    services: Services,
    request: TurnRequest,
    received_ms: int,
    *,
    answering: Answering | None = None,
    lease: Lease | None = None,
    hearing: HearingResult | None = None,
) -> None:
    """Answers one request, or stays silent. Raises the errors that are worth another attempt.

    `answering` replaces the commands and the model. `hearing` is an earlier decision on the
    message.
    """
    metrics.begin_turn_timing()
    chat = await enter_chat(services, request)
    if request.message_type == AUDIO:
        chat, unheard = await with_recognised_words(chat)
        if unheard and request.chat_type == "p2p":
            answering = UnheardVoiceAnswer(unheard)
    if hearing is None:
        first = request.is_newly_asked and (lease is None or lease.job.attempt == 1)
        hearing = await listen(chat, asked_at_s=received_ms / 1000 if first else None, lease=lease)
    if not hearing.decision.respond or _unreadable_in_group(chat):
        return

    turn = turn_of_request(chat, hearing, received_ms, lease.job.anew if lease else 0)
    if is_stop(turn.question):  # it must not wait for the turn that it ends
        await _take_turn(services, turn, answering, lease)
        return
    async with services.shares.hold(chat.asker):
        await room_to_begin()
        turn = replace(turn, heard=await with_earlier_talk(chat, hearing))
        await _take_turn(services, turn, answering, lease)


async def _take_turn(
    services: Services, turn: Turn, answering: Answering | None, lease: Lease | None
) -> None:
    """Opens the turn, makes the reply and delivers it."""
    with (
        metrics.IN_FLIGHT.track_inprogress(),
        services.hooks.follow_up(services) as follow_up,
        vector_of(services, turn) as vector,
    ):
        if vector:
            turn = replace(turn, vector=vector)
        transcript = services.transcripts.of(turn.request.tenant_key, turn.request.chat_id)
        open_turn = await _open(services, turn, transcript, follow_up)
        turn = with_opened(turn, open_turn, _conversation(services, turn, transcript, open_turn))
        if not turn.unasked:
            follow_up.begin(turn, open_turn)
        reply, answer = open_turn.reply, stored_answer(open_turn)
        showing = ProgressFrames(services, turn, turn_language(services, turn, open_turn))
        stream = await _stream(services, turn, open_turn, showing)
        if open_turn.state == "open":
            answer = await _make_reply(services, turn, open_turn, showing, stream, answering)
            await room_to_go_on()
            reply = await store_reply(services, turn, answer, showing.language)
        is_press = answering is None and turn.by_click and turn.reply_to  # not in the menu
        pressed_question = turn.question if is_press else None
        turn = replace(turn, foot=answer.foot, asked=pressed_question)
        follow_up.end(answer.means, answer.needs)
        delivery = await send_reply(services, turn, open_turn, reply, stream, lease, follow_up.job)
        job = follow_up.job()
    answer_id = delivery.sent.message_id if delivery.sent and answering is None else ""
    ended_turn = EndedTurn(turn, reply, delivery, showing.language, answer.needs, answer_id, job)
    await _end_turn(services, open_turn, answer, ended_turn)


async def _end_turn(
    services: Services, open_turn: OpenTurn, answer: Reply, ended_turn: EndedTurn
) -> None:
    """Counts and reports the turn, and does what follows it."""
    turn, delivery = ended_turn.turn, ended_turn.delivery
    if answer.forgets or delivery.state == "cancelled":
        await withdraw_cards(services)
    if delivery.state == "sent":
        count_conversation(turn)
    is_elsewhere = answer.means == ANSWERED_ELSEWHERE
    outcome = answer.means if is_elsewhere else delivery.ended(answer.means)
    _report(services, turn, open_turn, outcome)
    for after in services.hooks.after:
        await after(services, ended_turn)
    await tend_later(services, turn.context, open_turn)


async def _make_reply(
    services: Services,
    turn: Turn,
    open_turn: OpenTurn,
    showing: ProgressFrames,
    stream: CardStream | None,
    answering: Answering | None,
) -> Reply:
    """Makes the answer. People can watch its progress and stop it."""
    async with stoppable(services, turn, open_turn) as stop, _at_work(services, turn, stream):
        turn = replace(
            turn,
            spoken=showing.language,
            stop=stop,
            on_progress=stream.progress if stream else None,
            settle=showing.settled if stream else str,
        )
        return await (answering or answer_question)(services, turn, open_turn)


def _at_work(
    services: Services, turn: Turn, stream: CardStream | None
) -> contextlib.AbstractAsyncContextManager[None]:
    """Shows that the answer is being made, unless nobody waits for it."""
    if stream:
        return stream.running()
    if turn.unasked or not turn.reply_to:
        return contextlib.nullcontext()
    return showing_work(services.feishu, turn.reply_to)


def _unreadable_in_group(chat: RequestChat) -> bool:
    """True if the message has no text, is in a group, and does not mention the bot."""
    request = chat.request
    is_mentioned = request.is_for(chat.bot.open_id)
    return request.chat_type != "p2p" and not request.text.strip() and not is_mentioned


def _conversation(
    services: Services, turn: Turn, transcript: HeldTranscript, open_turn: OpenTurn
) -> ChannelConversation | None:
    """The chat's conversation, of which the worker held that much; None where none is on."""
    if open_turn.conversation is None:
        return None
    return services.transcripts.conversation(
        turn.request.tenant_key, transcript, open_turn.conversation
    )


async def _open(
    services: Services, turn: Turn, transcript: HeldTranscript, follow_up: FollowUp
) -> OpenTurn:
    with timed_stage("memory_load"):
        return await services.store.begin_turn(
            turn.context,
            turn_id=turn.id,
            content=material.stored_text(turn.request, turn.question),
            actor_name=turn.names.name(turn.request.sender_open_id),
            history_limit=services.settings.history_messages,
            fold_after=services.settings.summary_after_messages,
            recent_s=turn.recent_s,
            asked_ms=turn.request.create_time_ms,
            recall=recall_at_opening(services, turn),
            elsewhere=follow_up.is_possible(turn),
            origin=turn.origin,
            quotes=turn.request.quotes,
            **opening_args(turn.chat, turn.heard, transcript),
        )


async def _stream(
    services: Services, turn: Turn, open_turn: OpenTurn, showing: ProgressFrames
) -> CardStream | None:
    """The card that shows the answer while it is written. None: only the finished one is shown."""
    if turn.unasked or not turn.reply_to:
        return None
    opening = Opening(turn.context, turn.id, turn.target)
    button = new_button_id()
    stop = stop_button(button, showing.language)
    working = Working(showing.stage, stop, button)
    return await begin_stream(services, opening, open_turn, showing, working)


def _report(
    services: Services, turn: Turn, open_turn: OpenTurn, outcome: TurnOutcome | None
) -> None:
    """Logs and counts the turn. `outcome` None: an earlier attempt had ended it."""
    seconds = services.clock() - turn.received_ms / 1000
    kind, reason = (outcome.kind, outcome.reason) if outcome else ("duplicate", "")
    metrics.TURNS.labels(outcome=kind).inc()
    metrics.TURN_SECONDS.observe(seconds)
    log.info(
        "turn",
        turn_id=turn.id,
        outcome=kind,
        reason=reason,
        attempt=open_turn.attempts,
        history=len(open_turn.history),
        degraded=open_turn.degraded,
        seconds=round(seconds, 3),
        **metrics.turn_log_fields(),
    )
    fields = {"outcome": kind, "attempt": open_turn.attempts, "seconds": round(seconds, 3)}
    fields |= {**metrics.turn_log_fields(), **metrics.kept_for_record()}
    services.records.add(TurnRecord(turn.id, services.now(), fields))
