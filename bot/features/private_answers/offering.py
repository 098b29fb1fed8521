"""Looks up, while a group is answered, whether the asker told the bot elsewhere what may help, and
offers it to them alone afterwards.

The group's answer knows nothing of it. A job compares what the person said with that answer, under
their own token; it is queued in the transaction that ends the turn, unless the look-up found
nothing. An offer is stored before it is shown, is shown at most once, and once an hour in each
thread. It quotes the question, so it is withdrawn with it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from types import TracebackType
from typing import Any, Self

import structlog

from bot.answering.between_turns import TRIES
from bot.answering.question import Turn
from bot.features.private_answers.comparing import helps_more, recalled_in_group
from bot.features.private_answers.questions import asks_for_information
from bot.feishu import markup
from bot.feishu.errors import FeishuFailure
from bot.feishu.user_scopes import AccessNeeds
from bot.outbox.buttons import FOLLOW_UP_LIVES_S, card_buttons
from bot.outbox.delivery import Aside, Delivered, Undeliverable
from bot.outbox.retractions import withdraw_card, withdraw_cards
from bot.outbox.sending import send_notice
from bot.process import metrics
from bot.queue.inbox import QueueUnavailable
from bot.queue.jobs import Later
from bot.queue.table import private_lookup_statement
from bot.services import Services
from bot.text.languages import Catalogue, Language, language_of
from memory.errors import StoreError, StoreUnavailable
from memory.models import ANSWERED_OUTCOME, CardButton, OpenTurn, TurnOutcome
from memory.rpc import Statement
from memory.scope import (
    MAIN_ROOT,
    AgentMemoryContext,
    memory_context,
    private_context,
    split_conversation_id,
)
from memory.tables.cards import NewButton
from memory.tables.private import PrivateStore, offer_origin

log = structlog.get_logger()

_QUESTION_CHARS = 60
say = Catalogue(__file__).say


@dataclass(frozen=True, slots=True)
class OfferJob:
    """A question of `actor_id` that was answered in a group: the arguments of the job. `document`:
    they can open one that not everybody there can. `asked_ms`: when it was written, since epoch; 0
    is now."""

    turn_id: str
    conversation_id: str
    user_id: str
    actor_id: str
    tenant_key: str
    actor_tenant: str = ""
    document: bool = False
    asked_ms: int = 0

    @classmethod
    def of_job(cls, args: Mapping[str, Any]) -> OfferJob:
        """From a job's arguments, among which the queue keeps notes of its own."""
        return cls(**{field.name: args[field.name] for field in fields(cls) if field.name in args})

    @property
    def group(self) -> AgentMemoryContext:
        """The turn's own context."""
        chat_id, root = split_conversation_id(self.conversation_id)
        return memory_context(
            chat_id=chat_id,
            root=root,
            subject=self.user_id,
            actor=self.actor_id,
            tenant_key=self.tenant_key,
            chat_type="group",
            actor_tenant=self.actor_tenant,
        )

    @property
    def in_thread(self) -> bool:
        """Whether the question stands in a thread that was there before it."""
        return self.group.root_id not in (MAIN_ROOT, self.turn_id)

    @property
    def thread(self) -> str:
        """In which there is one offer an hour: the main chat of a group counts as one. A document
        is asked for outright, and offered each time."""
        if self.document:
            return self.turn_id
        return self.conversation_id if self.in_thread else self.group.chat_id

    @property
    def own_place(self) -> AgentMemoryContext:
        """Where only the person reads, without looking up their p2p chat."""
        return private_context(self.actor_id, self.tenant_key, self.actor_tenant)


def is_offered(services: Services, turn: Turn) -> bool:
    """Whether the turn is one that anything may be offered after."""
    return _by_person(services, turn) and asks_for_information(turn.question)


def _by_person(services: Services, turn: Turn) -> bool:
    if not services.settings.private_answers or not turn.in_group:
        return False
    return turn.request.sender_type == "user" and not turn.by_click


def offer_job_of(
    services: Services, turn: Turn, open_turn: OpenTurn, *, document: bool = False
) -> OfferJob | None:
    """The question of a turn that an offer may follow; None where there is nothing to look for.
    `document`: it was about a document that may be offered."""
    if open_turn.degraded or not _by_person(services, turn):
        return None
    if not document and (open_turn.elsewhere is False or not asks_for_information(turn.question)):
        return None
    context = turn.context
    return OfferJob(
        turn_id=turn.id,
        conversation_id=context.conversation_id,
        user_id=context.user_id,
        actor_id=context.actor_id,
        tenant_key=context.tenant_key,
        actor_tenant=context.actor_tenant,
        document=document,
        asked_ms=turn.request.words_ms,
    )


def look_up_statement(lookup: OfferJob) -> Statement:
    """What queues the job."""
    return private_lookup_statement(lookup.turn_id, asdict(lookup))


async def queue_look_up(services: Services, look_up: Statement | None) -> None:
    """Queues it by itself, where the memory's transactions cannot. May be repeated."""
    if look_up is None or services.store.joins or services.run_on_queue is None:
        return
    try:
        await services.run_on_queue(look_up)
    except QueueUnavailable as exc:
        log.warning("private.not_queued", error=str(exc))


async def handle_look_up(services: Services, lookup: OfferJob, attempt: int) -> None:
    """One job. Raises what is worth another attempt; an offer that comes late is not."""
    structlog.contextvars.bind_contextvars(conversation_id=lookup.conversation_id)
    try:
        outcome = await look_up(services, lookup)
    except StoreUnavailable as exc:
        if attempt < TRIES:
            raise Later(type(exc).__name__) from exc
        outcome = "given_up"
    metrics.PRIVATE.labels(outcome=outcome).inc()
    log.info("private.looked_up", turn_id=lookup.turn_id, outcome=outcome)


async def look_up(services: Services, lookup: OfferJob) -> str:
    """Looks, and offers what there is, once. Returns what came of it, for metrics."""
    question_message = await services.store.said(lookup.group, lookup.turn_id)
    if question_message is None or question_message.role != "user":
        return "gone"
    private = PrivateStore(services.rpc)
    chat_id = lookup.group.chat_id
    if not lookup.document and not await _says_more(
        services, private, lookup, question_message.content
    ):
        return "nothing"
    place = await private.place(lookup.own_place)
    language = language_of([question_message.content])
    button = _show_button(lookup, language)
    if not await private.offer(place, lookup.turn_id, button, thread=lookup.thread):
        return "again"
    aside = not (lookup.in_thread or await _is_topic_group(services, chat_id))
    text = offer_text(
        question_message.content, language, in_p2p=not aside, document=lookup.document
    )
    target = Aside(lookup.actor_id, chat_id if aside else "")
    delivery = await _send_offer(services, lookup, target, text, button)
    return await _keep_offer(services, private, lookup, place, delivery) if delivery else "refused"


async def _says_more(
    services: Services, private: PrivateStore, lookup: OfferJob, question: str
) -> bool:
    """Whether what the person told elsewhere says more than the group's answer."""
    group = lookup.group
    return await helps_more(
        private,
        lookup.own_place,
        question,
        asked_in=group.chat_id,
        answer="\n".join(await private.shown_cards(group, lookup.turn_id)),
        group_passages=await recalled_in_group(
            services.store,
            group,
            question,
            but=lookup.turn_id,
            now=services.asked_at(lookup.asked_ms),
        ),
    )


def _show_button(lookup: OfferJob, language: Language) -> NewButton:
    context = lookup.group
    where = {"chat_id": context.chat_id, "root_id": context.root_id, "turn_id": lookup.turn_id}
    return NewButton(say("show", language), "show", where, "p2p", FOLLOW_UP_LIVES_S)


async def _is_topic_group(services: Services, chat_id: str) -> bool:
    """There a card for one person has no place beside its question."""
    membership = services.membership
    return membership is not None and await membership.is_topic_group(chat_id)


async def _send_offer(
    services: Services, lookup: OfferJob, target: Aside, text: str, button: NewButton
) -> Delivered | None:
    """None: Feishu does not show it."""
    try:
        return await send_notice(
            services,
            target,
            text,
            key=offer_origin(lookup.turn_id).turn_id,
            buttons=card_buttons([CardButton(button.id, button.label)]),
        )
    except (Undeliverable, FeishuFailure) as exc:
        log.info("private.not_offered", turn_id=lookup.turn_id, error=type(exc).__name__)
        return None


async def _keep_offer(
    services: Services,
    private: PrivateStore,
    lookup: OfferJob,
    place: AgentMemoryContext,
    delivery: Delivered,
) -> str:
    """Says which card the offer is. One that the memory does not know may not stay: nothing would
    take it away with its question."""
    try:
        if await private.keep_offer(place, lookup.turn_id, delivery.message_id):
            return "offered"
    except StoreError as exc:
        log.warning("private.not_kept", turn_id=lookup.turn_id, error=type(exc).__name__)
        with contextlib.suppress(FeishuFailure):
            await withdraw_card(services, delivery.message_id, of_one=True)
    else:
        await withdraw_cards(services)
    return "withdrawn"


class PrivateLookup:
    """One turn's look; it ends with the `with` block."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._offer_job: OfferJob | None = None
        self._task: asyncio.Task[bool] | None = None
        self._means = ANSWERED_OUTCOME
        self._withheld = False
        self._asking: OfferJob | None = None  # where a document is offered

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._task:
            self._task.cancel()

    def is_possible(self, turn: Turn) -> bool:
        """Whether the turn is one that anything may be offered after."""
        return is_offered(self._services, turn)

    def begin(self, turn: Turn, open_turn: OpenTurn) -> None:
        """Looks in the background, if the turn is one that anything is offered after. What was
        answered before and is only sent now is left to the job."""
        self._asking = offer_job_of(self._services, turn, open_turn, document=True)
        self._offer_job = offer_job_of(self._services, turn, open_turn)
        if self._offer_job and open_turn.state == "open":
            self._task = asyncio.create_task(self._helps(self._offer_job, turn.question))

    def end(self, means: TurnOutcome, needs: AccessNeeds) -> None:
        """How the turn ends: nothing is offered beside an apology, a refusal or a command, and a
        document is offered that the person alone may be told of."""
        self._means = means
        self._withheld = needs.withheld

    def job(self) -> Statement | None:
        """What queues the job; None where there is nothing to offer."""
        if self._means != ANSWERED_OUTCOME:
            return None
        if self._withheld and self._asking:
            return look_up_statement(self._asking)
        if self._offer_job is None:
            return None
        is_known = self._task is not None and self._task.done() and not self._task.cancelled()
        nothing = is_known and self._task is not None and not self._task.result()
        return None if nothing else look_up_statement(self._offer_job)

    async def _helps(self, lookup: OfferJob, question: str) -> bool:
        private, chat_id = PrivateStore(self._services.rpc), lookup.group.chat_id
        try:
            return await helps_more(private, lookup.own_place, question, asked_in=chat_id)
        except StoreError as exc:
            log.info("private.not_looked", turn_id=lookup.turn_id, error=type(exc).__name__)
            return True  # as far as anybody knows: the job looks again


def offer_text(
    question: str, language: Language, *, in_p2p: bool = False, document: bool = False
) -> str:
    """The card that offers a private answer, as Markdown; in p2p it says where the question was.
    `document`: it is one that not everybody there can open."""
    if document:
        key = "offer-document-in-p2p" if in_p2p else "offer-document"
    else:
        key = "offer-in-p2p" if in_p2p else "offer"
    words = markup.quotable(question, _QUESTION_CHARS)
    return markup.card_markdown(say(key, language, question=words))


def undelivered_text(question: str, language: Language) -> str:
    """What stands before an answer that could not be posted in its group, as Markdown."""
    words = markup.quotable(question, _QUESTION_CHARS)
    return markup.card_markdown(say("undelivered", language, question=words))
