"""Answers a group's question privately, publishes that answer in the group at a press, and shows
an answer in p2p that Feishu did not take in the group.

A private answer is a turn of the person's p2p conversation, begun by their press: only then does
the model see what they may read elsewhere. Only the text of the shown cards is shared."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import structlog

from bot.agents.running_turns import noting_sources
from bot.answering.answering import Answering
from bot.answering.answering import answer as answer_question
from bot.answering.hearing import listen
from bot.answering.question import Turn, turn_language, turn_of_request, with_opened
from bot.answering.reply import EndedTurn, compose, stored_answer
from bot.answering.request_chat import chat_of
from bot.answering.texts import say
from bot.documents.document import DocumentLink, LinkKind
from bot.features.documents import audience_of, note_document
from bot.features.feature import CommandTurn, Feature
from bot.features.private_answers import offering
from bot.feishu.errors import FeishuFailure
from bot.hooks import FeatureJob, FeatureTurn, PressTurn
from bot.listening.turn_request import TurnRequest
from bot.outbox.buttons import FOLLOW_UP_LIVES_S, Reply
from bot.outbox.delivery import Aside
from bot.outbox.retractions import withdraw_cards
from bot.outbox.sending import Outcome, Outgoing, send
from bot.process import metrics
from bot.queue.jobs import PRIVATE_TASK, Later
from bot.services import Services
from bot.text.languages import Language
from memory.errors import StoreError, StoreUnavailable
from memory.models import ANSWERED_BY_COMMAND, ANSWERED_ELSEWHERE, OpenTurn, Origin, StoredCard
from memory.scope import memory_context, private_context
from memory.tables.cards import ButtonStore, Click, NewButton, PressResult
from memory.tables.private import PrivateStore
from memory.tables.sources import SourceDocumentStore

SHARE = "share"

log = structlog.get_logger()
_CAUSE = "undelivered"


@dataclass(frozen=True, slots=True)
class AnswerPlace:
    """Where a private answer is shown. `where` says where the question was asked: chat_id, root_id,
    turn_id. `beside`: the card that was pressed stood in that group, else in p2p."""

    where: Mapping[str, str]
    beside: bool
    card_id: str

    def target(self, person: str) -> Aside:
        return Aside(person, self.where["chat_id"] if self.beside else "")


async def answer_privately(
    services: Services, request: TurnRequest, received_ms: int, click: Click, press: PressResult
) -> None:
    """Answers a group's question where only the person reads, at a press on the offer. `press`
    names the question. Raises as `answer_alone`."""
    where = press.payload
    answer_place = AnswerPlace(where, click.chat_id == where["chat_id"], click.message_id)
    target = answer_place.target(request.sender_open_id)
    await answer_alone(
        services, request, received_ms, target, partial(_private_reply, answer_place=answer_place)
    )
    if answer_place.beside:  # in p2p the offer stays
        await take_away(services, answer_place.card_id)


async def answer_beside(
    services: Services, request: TurnRequest, received_ms: int, click: Click, answering: Answering
) -> None:
    """Answers a press on a card that stands beside a group, and takes that card away. Raises as
    `answer_alone`."""
    target = Aside(click.operator_id, click.chat_id)
    outcome = await answer_alone(services, request, received_ms, target, answering)
    if outcome.outcome != "failed":
        await take_away(services, click.message_id)


async def publish_answer(services: Services, press_turn: PressTurn) -> Reply:
    """The cards of the private answer that has the button, as they were shown to who shares them
    now. Where a document behind it is closed it can be pressed again."""
    context, press = press_turn.context, press_turn.press
    person = context.actor_id
    place = memory_context(
        chat_id=press.chat_id,
        root=press.root_id,
        subject=person,
        actor=person,
        tenant_key=context.tenant_key,
        chat_type="p2p",
        actor_tenant=context.actor_tenant,
    )
    answer = await PrivateStore(services.rpc).shown_cards(place, press.payload["answer_id"])
    if not answer:
        return Reply(offering.say("gone", press_turn.language))
    with noting_sources() as sources:
        text = "\n".join(answer)
        document_store = SourceDocumentStore(services.rpc)
        documents = await document_store.behind(place, press.payload["answer_id"], text)
        if not await _may_tell(services, press_turn, documents, text):
            await ButtonStore(services.rpc).release_share(press_turn.turn_id)
            return Reply(offering.say("closed-document", press_turn.language))
    return Reply("", cards=answer, given=tuple(sources))


async def _may_tell(
    services: Services, press_turn: PressTurn, documents: Sequence[tuple[str, str]], text: str
) -> bool:
    """Whether everybody in the group can open all of the documents (kind and token) now; then what
    is shared goes with them. Raises `StoreError`."""
    audience = audience_of(services, press_turn.context)
    for kind, token in documents:
        link = DocumentLink(cast(LinkKind, kind), token)
        if not await audience.is_open(link):
            return False
        if not await note_document(services, press_turn.context, press_turn.turn_id, link, text):
            return False
    return True


async def _private_reply(
    services: Services, turn: Turn, open_turn: OpenTurn, *, answer_place: AnswerPlace
) -> Reply:
    """The model's answer, with what it draws on noted; of its buttons only the one that shares
    it."""
    with noting_sources() as sources:
        answer = await answer_question(services, turn, open_turn)
    with_notes = any("note" in call["name"] for call in answer.tool_calls)
    await PrivateStore(services.rpc).draw_on(
        turn.context, turn.id, sorted(sources), with_notes=with_notes
    )
    share = _share(turn, answer_place, turn_language(services, turn, open_turn))
    foot = replace(answer.foot, bare=True) if answer.foot and answer.foot.ended else None
    return replace(
        Reply(answer.text, (share,), answer.tool_calls, foot=foot, given=answer.given),
        means=answer.means,
    )


def _share(turn: Turn, answer_place: AnswerPlace, tongue: Language) -> NewButton:
    label = offering.say("share-here" if answer_place.beside else "share-there", tongue)
    payload = {**answer_place.where, "answer_id": turn.id}
    return NewButton(label, "share", payload, "p2p", FOLLOW_UP_LIVES_S)


async def after_turn(services: Services, ended_turn: EndedTurn) -> None:
    """Shows an answer that Feishu did not take to the asker alone, and queues what follows one that
    it took."""
    if ended_turn.delivery.state == "failed":
        await show_to_asker(services, ended_turn.turn, ended_turn.reply)
    if ended_turn.delivery.state in ("sent", "duplicate"):
        await offering.queue_look_up(services, ended_turn.follow_up)


async def run_look_up(services: Services, job: FeatureJob) -> None:
    """Looks for what may be offered after a turn. Raises what is worth another attempt."""
    lookup = offering.OfferJob.of_job(job.lease.job.args)
    await offering.handle_look_up(services, lookup, job.lease.job.attempt)


async def show_to_asker(services: Services, turn: Turn, reply: Sequence[StoredCard]) -> str:
    """What came of it, for the log. Never raises: the answer stays in the queue as given up."""
    unsent = tuple(card.content for card in reply if card.status != "sent" and not card.file)
    if not turn.in_group or turn.unasked or not unsent:
        return "nobody"
    try:
        if not await _may_read(services, turn):
            return "not_readable"
        outcome = await answer_alone(
            services,
            await as_private(services, turn.request, Origin("private_answer", turn.id, _CAUSE)),
            turn.received_ms,
            Aside(turn.request.sender_open_id),
            partial(_undelivered_reply, of=turn.id, cards=unsent),
        )
    except (FeishuFailure, StoreError) as exc:
        log.warning("undelivered.not_shown", turn_id=turn.id, error=type(exc).__name__)
        return type(exc).__name__
    finally:
        structlog.contextvars.bind_contextvars(conversation_id=turn.context.conversation_id)
    log.info("undelivered.shown", turn_id=turn.id, outcome=outcome.outcome)
    return outcome.outcome


async def _may_read(services: Services, turn: Turn) -> bool:
    here = turn.context
    own = private_context(here.actor_id, here.tenant_key, here.actor_tenant)
    return await PrivateStore(services.rpc).may_read(own, turn.id, here.chat_id)


async def _undelivered_reply(
    services: Services, turn: Turn, open_turn: OpenTurn, *, of: str, cards: Sequence[str]
) -> Reply:
    """The answer below a line that says where it belongs."""
    above = offering.undelivered_text(turn.question, turn_language(services, turn, open_turn))
    return Reply("", cards=(f"{above}\n\n{cards[0]}", *cards[1:]), given=(of,))


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
    beside_group = "" if turn.request.in_thread else turn.request.chat_id
    try:
        outcome = await answer_alone(
            services,
            await as_private(services, turn.request, Origin("private_answer", turn.id)),
            turn.received_ms,
            Aside(turn.context.actor_id, beside_group),
            answering(beside_group),
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

    async def answering(services: Services, turn: Turn, _: OpenTurn, *, beside_group: str) -> Reply:
        del services
        here = FeatureTurn(
            command_turn.context,
            command_turn.chat_type,
            command_turn.language,
            turn.id,
            beside_group,
        )
        return replace(await show(here), means=ANSWERED_BY_COMMAND)

    outcome = await show_alone(
        services,
        command_turn.turn,
        lambda beside_group: partial(answering, beside_group=beside_group),
    )
    if outcome.outcome == "failed":
        return Reply(offering.say("not-sent-privately", command_turn.language))
    if outcome.in_p2p:
        return Reply(offering.say("sent-privately", command_turn.language))
    return Reply("", unsaid=True, means=ANSWERED_ELSEWHERE)


async def tell_asker_text(services: Services, command_turn: CommandTurn, text: str) -> Reply:
    """As `tell_asker`, with the same words wherever it is shown: a refusal, how a command is
    written."""

    async def show(_: FeatureTurn) -> Reply:
        return Reply(text)

    return await tell_asker(services, command_turn, show)


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


PRIVATE_ANSWERS = Feature(
    name="private_answers",
    presses={SHARE: publish_answer},
    settings=frozenset({"private_answers"}),
    card_hooks={"answer_beside": answer_beside, "answer_privately": answer_privately},
    follow_up=offering.PrivateLookup,
    after=after_turn,
    jobs={PRIVATE_TASK: run_look_up},
)
