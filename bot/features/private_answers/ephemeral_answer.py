"""A turn that is answered for one person alone, in their p2p conversation, and shown to them alone.

What a person may read anywhere may be told there. The card stands in the group beside what is said,
where only they see it; where Feishu does not do that, in p2p.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

import structlog

from bot.answering.answering import Answering
from bot.answering.hearing import listen
from bot.answering.question import Turn, turn_language, turn_of_request, with_opened
from bot.answering.reply import compose, stored_answer
from bot.answering.request_chat import chat_of
from bot.answering.texts import say
from bot.features.feature import CommandTurn, FeatureTurn
from bot.features.private_answers import offering
from bot.feishu.errors import FeishuFailure
from bot.listening.turn_request import TurnRequest
from bot.outbox.buttons import Reply
from bot.outbox.delivery import Aside
from bot.outbox.retractions import withdraw_cards
from bot.outbox.sending import Outcome, Outgoing, send
from bot.process import metrics
from bot.queue.jobs import Later
from bot.services import Services
from memory.errors import StoreUnavailable
from memory.models import ANSWERED_BY_COMMAND, ANSWERED_ELSEWHERE, OpenTurn, Origin, StoredCard
from memory.scope import private_context
from memory.tables.private import PrivateStore

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ShownOutcome:
    """`outcome` as in the metrics. `in_p2p`: a card that was sent now stands in p2p."""

    outcome: str
    in_p2p: bool = False


async def as_private(services: Services, request: TurnRequest, origin: Origin) -> TurnRequest:
    """The question of a group as one of who asked it, in their p2p conversation; in their own place
    where their p2p chat is not known."""
    place = private_context(request.sender_open_id, request.tenant_key, request.sender_tenant)
    try:
        place = await PrivateStore(services.rpc).place(place, origin.parent_id)
    except StoreUnavailable as exc:
        log.info("private.place_unknown", error=type(exc).__name__)
    return replace(
        request,
        id=origin.turn_id,
        origin=origin,
        written=None,
        reply_to="",
        root_id="",
        thread_id="",
        threaded=False,
        chat_id=place.chat_id,
        chat_type="p2p",
        mentions=(),
    )


async def answer_alone(
    services: Services, request: TurnRequest, received_ms: int, aside: Aside, answering: Answering
) -> ShownOutcome:
    """Answers a question where only the person reads. Raises what is worth another attempt: then a
    card that was shown before may be shown again."""
    metrics.begin_turn_timing()
    chat = chat_of(services, request, await services.own_person.look_up())
    turn = turn_of_request(chat, await listen(chat), received_ms)
    turn = replace(turn, private=True)
    with metrics.IN_FLIGHT.track_inprogress():
        open_turn = await services.store.begin_turn(
            turn.context,
            turn_id=turn.id,
            content=turn.question,
            actor_name=turn.names.name(request.sender_open_id),
            history_limit=services.settings.history_messages,
            origin=turn.origin,
        )
        turn = with_opened(turn, open_turn)
        reply, answer = open_turn.reply, stored_answer(open_turn)
        if open_turn.state == "open":
            reply, answer = await _answer_and_store(services, turn, open_turn, answering)
        delivery = await _show(services, replace(turn, foot=answer.foot), reply, aside)
    if answer.forgets:
        await withdraw_cards(services)
    outcome = delivery.ended(answer.means)
    kind = outcome.kind if outcome else "duplicate"
    metrics.TURNS.labels(outcome=kind).inc()
    log.info("turn", turn_id=turn.id, outcome=kind, attempt=open_turn.attempts, private=True)
    return ShownOutcome(delivery.state, in_p2p=bool(delivery.sent and not delivery.sent.aside))


async def show_alone(
    services: Services, turn: Turn, answering: Callable[[str], Answering]
) -> ShownOutcome:
    """Answers a command of a group where only who gave it reads. `answering` is called with the
    group beside which the card is to stand: one that one person sees stands in no thread, so there
    it goes to p2p (""). The turn has an id of its own, so that this can be repeated. Raises `Later`
    where the memory is away: they may see it already, so nothing else can be said."""
    beside = "" if turn.request.in_thread else turn.request.chat_id
    try:
        outcome = await answer_alone(
            services,
            await as_private(services, turn.request, Origin("private_answer", turn.id)),
            turn.received_ms,
            Aside(turn.context.actor_id, beside),
            answering(beside),
        )
    except StoreUnavailable as exc:
        raise Later(type(exc).__name__) from exc
    structlog.contextvars.bind_contextvars(conversation_id=turn.context.conversation_id)
    return outcome


async def tell_asker(
    services: Services, command_turn: CommandTurn, show: Callable[[FeatureTurn], Awaitable[Reply]]
) -> Reply:
    """Answers a command that concerns only the person who gave it: in a group they alone see the
    answer. `show` makes it, with the context of where it was asked. Returns the reply to post
    there. Raises as `show_alone`."""
    if command_turn.chat_type == "p2p":
        return await show(command_turn)

    async def answering(services: Services, turn: Turn, _: OpenTurn, *, beside: str) -> Reply:
        del services
        here = FeatureTurn(
            command_turn.context, command_turn.chat_type, command_turn.language, turn.id, beside
        )
        return replace(await show(here), means=ANSWERED_BY_COMMAND)

    outcome = await show_alone(
        services, command_turn.turn, lambda beside: partial(answering, beside=beside)
    )
    if outcome.outcome == "failed":
        return Reply(offering.say("not-sent-privately", command_turn.language))
    if outcome.in_p2p:
        return Reply(offering.say("sent-privately", command_turn.language))
    return Reply("", unsaid=True, means=ANSWERED_ELSEWHERE)


async def take_away(services: Services, card_id: str) -> None:
    """A card beside a group has done its work. Never raises."""
    try:
        await services.feishu.delete_ephemeral(card_id)
    except FeishuFailure as exc:
        log.info("private.card_stays", error=type(exc).__name__)


async def _answer_and_store(
    services: Services, turn: Turn, open_turn: OpenTurn, answering: Answering
) -> tuple[tuple[StoredCard, ...], Reply]:
    """Makes the answer and stores it as pending. Raises `Later` when something it was given was
    taken back meanwhile."""
    answer = await answering(services, turn, open_turn)
    nothing = say("nothing-to-say", turn_language(services, turn, open_turn))
    state, stored_cards = await services.store.record_reply(
        turn.context,
        turn_id=turn.id,
        cards=answer.cards or compose(services, turn, answer.text, nothing=nothing),
        tool_calls=answer.tool_calls,
        buttons=answer.buttons,
        visible_card=answer.foot.row() if answer.foot else None,
        source_ids=answer.given,
        means=answer.means,
    )
    if state == "open":
        await services.store.undo_kept(turn.context, turn.id)
        raise Later("what the answer was made with was taken back")
    return stored_cards, answer


async def _show(
    services: Services, turn: Turn, reply: tuple[StoredCard, ...], aside: Aside
) -> Outcome:
    out = Outgoing(turn.context, turn.id, reply, aside, turn.names.known, foot=turn.foot)
    return await send(services, out) if reply else Outcome("cancelled")
