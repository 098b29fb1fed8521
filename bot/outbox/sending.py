"""Sends every stored reply and every notice; only this module marks cards as sent. Read `send`
from the top down.

is it in the chat? ─▶ send it ─▶ mark it sent, tell the group, end the job: one transaction

Only this module marks cards, so every marked card was sent. The reply is stored before it comes
here, and every step can be repeated. Before a card is sent again, the chat is searched for it. A
repeated send has the same uuid. The text that is marked is the text that was sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bot.feishu import cards
from bot.feishu.errors import Action, FeishuError
from bot.feishu.markup import applink_base
from bot.outbox.buttons import card_buttons
from bot.outbox.delivery import (
    REPLACING,
    Aside,
    Delivered,
    InComment,
    Target,
    Undeliverable,
    deliver,
)
from bot.outbox.finding import (
    OutcomeUnknown,
    deliver_comment,
    doubt_of,
    find_comment,
    find_sent,
    unsure_while_sending,
)
from bot.outbox.foot import AnswerFooter, card_footer, late_note
from bot.outbox.live_card import LiveCard
from bot.outbox.streaming import CardStream
from bot.process.metrics import timed_stage
from bot.queue.consumer import Lease
from bot.services import Services
from memory.models import StoredCard, TurnOutcome
from memory.rpc import Statement
from memory.scope import AgentMemoryContext

ConversationArgs = Mapping[str, object] | None
Tell = Callable[[Delivered], Awaitable[ConversationArgs]]
Stream = CardStream | LiveCard  # the card that may already show part of the answer


@dataclass(frozen=True, slots=True)
class Outgoing:
    """The stored reply of a turn and its target, or `instead` when the message to reply to is gone.

    `names`: open_id → name of people in at-tags. `since_ms`: when one of its cards may first have
    been sent, ms since epoch; 0: certainly none was. A late answer quotes `question` and `asked_ms`
    (ms since epoch; 0: quote nothing). `asked` stands above the first card, `foot` below the last.
    `plain` and `streamed` as in `MemoryStore.mark_sent`.
    """

    context: AgentMemoryContext
    turn_id: str
    cards: Sequence[StoredCard]
    target: Target | Aside | InComment
    names: Mapping[str, str]
    instead: Target | None = None
    since_ms: int = 0
    question: str = ""
    asked_ms: int = 0
    asked: str | None = None
    foot: AnswerFooter | None = None
    plain: bool = False
    streamed: bool = False

    @property
    def last_chunk(self) -> int:
        """The number of the last card. Files come after it."""
        return max((card.chunk for card in self.cards if not card.file), default=0)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of sending a reply.

    `sent` is the last card that this call sent. For a failure, `reason` is a code and `refusal`
    Feishu's error. A `duplicate` was sent before.
    """

    state: Literal["sent", "failed", "cancelled", "duplicate"]
    sent: Delivered | None = None
    reason: str = ""
    refusal: BaseException | None = None

    def ended(self, means: TurnOutcome) -> TurnOutcome | None:
        """How the turn ended; None: it had ended before. `means`: how it ends once it is sent."""
        match self.state:
            case "sent":
                return means
            case "failed":
                return TurnOutcome("undelivered", self.reason)
            case "cancelled":
                return TurnOutcome("taken_back")
        return None


@dataclass(frozen=True, slots=True)
class After:
    """What to write in the transaction that marks the last card: the end of the job and the private
    look-up. It needs the memory and the queue in one database."""

    lease: Lease | None
    look_up: Callable[[], Statement | None]

    def statement(self) -> Statement | None:
        ending, look_up = self.lease.ending() if self.lease else None, self.look_up()
        return ending.then(look_up) if ending and look_up else ending or look_up


async def send(
    services: Services,
    out: Outgoing,
    *,
    lease: Lease | None = None,
    stream: Stream | None = None,
    tell: Tell | None = None,
    after: After | None = None,
    ends_unknown: bool = False,
) -> Outcome:
    """Sends the pending cards one by one. The lease is unsure while a card is on its way.

    `tell` returns what to record of a card in the group's conversation. Raises the errors that are
    worth another attempt, and `OutcomeUnknown`. With `ends_unknown` the reply fails instead of
    raising `OutcomeUnknown`; use it where no job remains for an operator to see. "cancelled" means
    that the question was taken back in the meantime and the card must be withdrawn.
    """
    delivery, pending = None, [card for card in out.cards if card.status == "pending"]
    for card in pending:
        try:
            delivery = await _send_card(services, out, card, lease, stream)
        except (Undeliverable, OutcomeUnknown) as exc:
            if isinstance(exc, OutcomeUnknown) and not ends_unknown:
                raise
            await leave_unsent(services, out.context, out.turn_id, exc.reason)
            return Outcome("failed", None, exc.reason, exc.__cause__)
        telling = await tell(delivery) if tell else None
        last = after if card is pending[-1] else None
        if await _mark(services, out, card, delivery, telling, last) == "cancelled":
            return Outcome("cancelled", delivery)
    return Outcome("sent", delivery)


async def leave_unsent(
    services: Services, context: AgentMemoryContext, turn_id: str, reason: str
) -> None:
    """Marks the pending cards as never to be sent. `reason` is a code without message text."""
    await services.store.mark_failed(context, turn_id=turn_id, error=reason)


async def _send_card(
    services: Services,
    out: Outgoing,
    card: StoredCard,
    lease: Lease | None,
    stream: Stream | None,
) -> Delivered:
    """Delivers a card that may have been sent before: finds it in the chat, or sends it now."""
    with timed_stage("send"):
        try:
            return await _at(services, out, out.target, card, lease, stream)
        except Undeliverable as exc:
            if out.instead is None or not _is_gone(exc.__cause__):
                raise
        return await _at(services, out, out.instead, card, lease, stream)


def _is_gone(refusal: BaseException | None) -> bool:
    """Whether the message to reply to no longer exists."""
    return isinstance(refusal, FeishuError) and refusal.action is Action.TERMINAL_MESSAGE


async def _at(
    services: Services,
    out: Outgoing,
    target: Target | Aside | InComment,
    card: StoredCard,
    lease: Lease | None,
    stream: Stream | None,
) -> Delivered:
    doubt = doubt_of(services, out.since_ms)
    if isinstance(target, Target):
        delivery = await find_sent(services.feishu, target, doubt, out.turn_id, card, out.names)
        if delivery:
            return delivery
    if isinstance(target, InComment):
        comment = await find_comment(services, out.context, target, doubt, out.turn_id, card)
        if comment:
            return comment
    elif doubt.is_unsent:
        card = await _preface_late_card(services, out, card)
    with unsure_while_sending(lease):
        return await _give(services, out, target, card, stream)


async def _preface_late_card(services: Services, out: Outgoing, card: StoredCard) -> StoredCard:
    """Adds the question and its time to a late answer, and stores it so before it is sent."""
    note = late_note(out.question, out.asked_ms, services.now()) if out.asked_ms else ""
    if card.chunk or not note:
        return card
    stored_cards = await services.store.preface_reply(out.context, turn_id=out.turn_id, note=note)
    return next((one for one in stored_cards if one.chunk == card.chunk), card)


async def _give(
    services: Services,
    out: Outgoing,
    target: Target | Aside | InComment,
    card: StoredCard,
    stream: Stream | None,
) -> Delivered:
    """Finishes the streamed card with the first one, if there is a stream. Sends the others."""
    if isinstance(target, InComment):
        return await deliver_comment(services.feishu, target, card.content)
    buttons, question = card_buttons(card.buttons), out.asked if card.chunk == 0 else None
    below = out.foot if card.chunk == out.last_chunk else None
    link = applink_base(services.settings.feishu_domain)
    foot = card_footer(below, services.now(), applink=link) if below else None
    was_streamed = stream is not None and stream.begun and card.chunk == 0
    if stream and was_streamed:
        delivery = await stream.finish(
            card.content, buttons=buttons, names=out.names, question=question, foot=foot
        )
        if delivery:
            return delivery
    return await deliver(
        services.feishu,
        target,
        turn_id=out.turn_id,
        chunk=card.chunk,
        content=card.content,
        names=out.names,
        buttons=buttons,
        version=REPLACING if was_streamed else 0,
        file=card.file,
        question=question,
        foot=foot,
    )


async def _mark(
    services: Services,
    out: Outgoing,
    card: StoredCard,
    delivery: Delivered,
    telling: ConversationArgs,
    after: After | None,
) -> str:
    """Marks the card sent and records it in the group's conversation. Returns the turn's state.

    `after` comes with the last card: it ends the job and queues the next in the same transaction.
    """
    with timed_stage("memory_save"):
        state, result = await services.store.mark_sent(
            out.context,
            turn_id=out.turn_id,
            chunk=card.chunk,
            content=delivery.content,
            message_id=delivery.message_id,
            telling=telling,
            then=after.statement() if after else None,
            plain=out.plain,
            was_streamed=out.streamed,
        )
    if after and after.lease and services.store.joins:
        after.lease.note_end(result)
    return state


async def send_notice(
    services: Services,
    target: Target | Aside,
    markdown: str,
    *,
    key: str,
    number: int = 0,
    names: Mapping[str, str] | None = None,
    buttons: Sequence[cards.Button] = (),
    lease: Lease | None = None,
) -> Delivered:
    """Sends a card; raises as `deliver` does. `names` as there."""
    with unsure_while_sending(lease):
        return await deliver(
            services.feishu,
            target,
            turn_id=key,
            chunk=number,
            content=markdown,
            names=names or {},
            buttons=buttons,
        )
