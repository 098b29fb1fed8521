"""After an answer in a group: who asked told the bot elsewhere what may help, and is offered it.

The group's answer knows nothing of it: a job of its own looks, under a token of that person, and
compares what they told with that answer. Where that says more they alone are offered to see it:
beside a question in the main chat; in p2p for one in a thread, where no card for one person can
stand. The job is queued in the transaction that ends the turn, unless
`bot.features.private_answers.looking` saw that nothing is about the question. An offer is stored
before it is shown and is shown at most once, and one an hour in each thread: Feishu would show a
repeated one twice, and nobody waits for it. It quotes the question, so which card it is is kept,
and it goes with that.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import structlog

from bot.answering.between_turns import TRIES
from bot.answering.question import Turn
from bot.features.private_answers import texts
from bot.features.private_answers.asking import asks
from bot.features.private_answers.comparing import helps, recalled_in_group
from bot.feishu.errors import FeishuFailure
from bot.outbox.buttons import FOLLOW_UP_LIVES_S, card_buttons
from bot.outbox.delivery import Aside, Delivered, Undeliverable
from bot.outbox.notices import say
from bot.outbox.withdrawing import withdraw_card, withdraw_cards
from bot.process import metrics
from bot.queue.inbox import QueueUnavailable
from bot.queue.jobs import Later
from bot.queue.table import private_look_up
from bot.services import Services
from bot.text.languages import Language, language_of
from memory.errors import StoreError, StoreUnavailable
from memory.models import CardButton, OpenTurn
from memory.rpc import Statement
from memory.scope import MAIN_ROOT, AgentMemoryContext, memory_context, place_of, private_context
from memory.tables.buttons import NewButton
from memory.tables.private import PrivateStore, offer_of

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Asked:
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
    def of_job(cls, args: Mapping[str, Any]) -> Asked:
        """From a job's arguments, among which the queue keeps notes of its own."""
        return cls(**{field.name: args[field.name] for field in fields(cls) if field.name in args})

    @property
    def group(self) -> AgentMemoryContext:
        """The turn's own context."""
        chat_id, root = place_of(self.conversation_id)
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
    return _by_person(services, turn) and asks(turn.question)


def _by_person(services: Services, turn: Turn) -> bool:
    if not services.settings.private_answers or not turn.in_group:
        return False
    return turn.request.sender_type == "user" and not turn.by_click


def asked_of(
    services: Services, turn: Turn, open_turn: OpenTurn, *, document: bool = False
) -> Asked | None:
    """The question of a turn that an offer may follow; None where there is nothing to look for.
    `document`: it was about a document that may be offered."""
    if open_turn.degraded or not _by_person(services, turn):
        return None
    if not document and (open_turn.elsewhere is False or not asks(turn.question)):
        return None
    context = turn.context
    return Asked(
        turn_id=turn.id,
        conversation_id=context.conversation_id,
        user_id=context.user_id,
        actor_id=context.actor_id,
        tenant_key=context.tenant_key,
        actor_tenant=context.actor_tenant,
        document=document,
        asked_ms=turn.request.create_time_ms,
    )


def queued(lookup: Asked) -> Statement:
    """What queues the job."""
    return private_look_up(lookup.turn_id, asdict(lookup))


async def queue_look_up(services: Services, look_up: Statement | None) -> None:
    """Queues it by itself, where the memory's transactions cannot. May be repeated."""
    if look_up is None or services.store.joins or services.run_on_queue is None:
        return
    try:
        await services.run_on_queue(look_up)
    except QueueUnavailable as exc:
        log.warning("private.not_queued", error=str(exc))


async def handle_look_up(services: Services, lookup: Asked, attempt: int) -> None:
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


async def look_up(services: Services, lookup: Asked) -> str:
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
    button = _show(lookup, language)
    if not await private.offer(place, lookup.turn_id, button, thread=lookup.thread):
        return "again"
    aside = not (lookup.in_thread or await _is_topic_group(services, chat_id))
    text = texts.offer(
        question_message.content, language, in_p2p=not aside, document=lookup.document
    )
    target = Aside(lookup.actor_id, chat_id if aside else "")
    delivery = await _send(services, lookup, target, text, button)
    return await _keep(services, private, lookup, place, delivery) if delivery else "refused"


async def _says_more(
    services: Services, private: PrivateStore, lookup: Asked, question: str
) -> bool:
    """Whether what the person told elsewhere says more than the group's answer."""
    group = lookup.group
    return await helps(
        private,
        lookup.own_place,
        question,
        asked_in=group.chat_id,
        answer="\n".join(await private.shown(group, lookup.turn_id)),
        group_passages=await recalled_in_group(
            services.store,
            group,
            question,
            but=lookup.turn_id,
            now=services.asked_at(lookup.asked_ms),
        ),
    )


def _show(lookup: Asked, language: Language) -> NewButton:
    context = lookup.group
    where = {"chat_id": context.chat_id, "root_id": context.root_id, "turn_id": lookup.turn_id}
    return NewButton(texts.say("show", language), "show", where, "p2p", FOLLOW_UP_LIVES_S)


async def _is_topic_group(services: Services, chat_id: str) -> bool:
    """There a card for one person has no place beside its question."""
    membership = services.membership
    return membership is not None and await membership.is_topic_group(chat_id)


async def _send(
    services: Services, lookup: Asked, target: Aside, text: str, button: NewButton
) -> Delivered | None:
    """None: Feishu does not show it."""
    try:
        return await say(
            services,
            target,
            text,
            key=offer_of(lookup.turn_id).turn_id,
            buttons=card_buttons([CardButton(button.id, button.label)]),
        )
    except (Undeliverable, FeishuFailure) as exc:
        log.info("private.not_offered", turn_id=lookup.turn_id, error=type(exc).__name__)
        return None


async def _keep(
    services: Services,
    private: PrivateStore,
    lookup: Asked,
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
