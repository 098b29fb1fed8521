"""The way out of every reply. Read `send` top down:

    is it in the chat? ─▶ send it ─▶ mark it sent, tell the group, end the job: one transaction

Nothing else marks cards, so none is marked that was not sent. The reply is stored before it comes
here, and every step can be repeated: what may be on its way is looked for before it is sent again,
a repeated send has the same uuid, and the text that is marked is the text that was sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bot.feishu.errors import Action, FeishuError
from bot.outbox.buttons import card_buttons
from bot.outbox.delivery import REPLACING, Aside, Delivered, Target, Undeliverable, deliver
from bot.outbox.finding import OutcomeUnknown, doubt_of, find_sent, sending
from bot.outbox.foot import Foot, card_foot
from bot.outbox.late_notice import late_note
from bot.outbox.live_card import LiveCard
from bot.outbox.streaming import CardStream
from bot.process.timing import stage
from bot.queue.consumer import Lease
from bot.services import Services
from memory.models import StoredCard
from memory.outcomes import TurnOutcome
from memory.rpc import Statement
from memory.scope import AgentMemoryContext

Told = Mapping[str, object] | None
Tell = Callable[[Delivered], Awaitable[Told]]
Stream = CardStream | LiveCard  # which may show already what was written so far


@dataclass(frozen=True, slots=True)
class Outgoing:
    """The stored reply of a turn, and where it goes: to `target`, or to `instead` where the message
    to reply to is no more.

    `names`: open_id → name of people in at-tags. `since_ms`: when a card of it may first have been
    sent, ms since epoch; 0: certainly not yet. `question` and `asked_ms` are quoted by an answer
    that comes late; 0: none is. `asked` stands above the first card, `foot` below the last. `plain`
    as in `MemoryStore.mark_sent_and_tell`.
    """

    context: AgentMemoryContext
    turn_id: str
    cards: Sequence[StoredCard]
    target: Target | Aside
    names: Mapping[str, str]
    instead: Target | None = None
    since_ms: int = 0
    question: str = ""
    asked_ms: int = 0
    asked: str | None = None
    foot: Foot | None = None
    plain: bool = False

    @property
    def last_chunk(self) -> int:
        """Files follow the last card."""
        return max((card.chunk for card in self.cards if not card.file), default=0)


@dataclass(frozen=True, slots=True)
class Outcome:
    """`sent` is the last card that was sent now; of what failed `reason` is a code, and `refusal`
    what Feishu said. A `duplicate` was sent before."""

    state: Literal["sent", "failed", "cancelled", "duplicate"]
    sent: Delivered | None = None
    reason: str = ""
    refusal: BaseException | None = None

    def ended(self, means: TurnOutcome) -> TurnOutcome | None:
        """How the turn ended whose reply was this one; None: it had ended before."""
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
    """What is written with the last card, where the memory is in the queue's database: the end of
    the job, and the private look-up."""

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
    """Sends what is pending, card by card; while one is on its way, the lease is unsure.

    `tell` gives what the group's conversation is told of a card. Raises what is worth another
    attempt, and `OutcomeUnknown`, unless with `ends_unknown` the reply fails then: where no job
    stays for an operator to see. "cancelled": the question was taken back meanwhile, and the card
    is to be withdrawn.
    """
    sent, pending = None, [card for card in out.cards if card.status == "pending"]
    for card in pending:
        try:
            sent = await _sent(services, out, card, lease, stream)
        except (Undeliverable, OutcomeUnknown) as exc:
            if isinstance(exc, OutcomeUnknown) and not ends_unknown:
                raise
            await leave_unsent(services, out.context, out.turn_id, exc.reason)
            return Outcome("failed", None, exc.reason, exc.__cause__)
        told = await tell(sent) if tell else None
        last = after if card is pending[-1] else None
        if await _mark(services, out, card, sent, told, last) == "cancelled":
            return Outcome("cancelled", sent)
    return Outcome("sent", sent)


async def leave_unsent(
    services: Services, context: AgentMemoryContext, turn_id: str, reason: str
) -> None:
    """What is pending of the turn will never be sent. `reason` is a code, without message text."""
    await services.store.mark_failed(context, turn_id=turn_id, error=reason)


async def _sent(
    services: Services,
    out: Outgoing,
    card: StoredCard,
    lease: Lease | None,
    stream: Stream | None,
) -> Delivered:
    """A card that nobody knows to be sent: found where it goes, or sent there now."""
    with stage("send"):
        try:
            return await _at(services, out, out.target, card, lease, stream)
        except Undeliverable as exc:
            if out.instead is None or not _is_gone(exc.__cause__):
                raise
        return await _at(services, out, out.instead, card, lease, stream)


def _is_gone(refusal: BaseException | None) -> bool:
    """Whether the message to reply to is no more."""
    return isinstance(refusal, FeishuError) and refusal.action is Action.TERMINAL_MESSAGE


async def _at(
    services: Services,
    out: Outgoing,
    target: Target | Aside,
    card: StoredCard,
    lease: Lease | None,
    stream: Stream | None,
) -> Delivered:
    doubt = doubt_of(services, out.since_ms)
    if isinstance(target, Target):
        found = await find_sent(services.feishu, target, doubt, out.turn_id, card, out.names)
        if found:
            return found
    if doubt.is_unsent:
        card = await _dated(services, out, card)
    with sending(lease):
        return await _give(services, out, target, card, stream)


async def _dated(services: Services, out: Outgoing, card: StoredCard) -> StoredCard:
    """A late answer says to which question, from when; it is stored so before it is sent."""
    note = late_note(out.question, out.asked_ms, services.now()) if out.asked_ms else ""
    if card.chunk or not note:
        return card
    stored = await services.store.preface_reply(out.context, turn_id=out.turn_id, note=note)
    return next((one for one in stored if one.chunk == card.chunk), card)


async def _give(
    services: Services,
    out: Outgoing,
    target: Target | Aside,
    card: StoredCard,
    stream: Stream | None,
) -> Delivered:
    """The first card is the one that was streamed, if any; the others are new ones."""
    buttons, asked = card_buttons(card.buttons), out.asked if card.chunk == 0 else None
    below = out.foot if card.chunk == out.last_chunk else None
    foot = card_foot(below, services.now()) if below else None
    streamed = stream is not None and stream.begun and card.chunk == 0
    if stream and streamed:
        shown = await stream.finish(
            card.content, buttons=buttons, names=out.names, asked=asked, foot=foot
        )
        if shown:
            return shown
    return await deliver(
        services.feishu,
        target,
        turn_id=out.turn_id,
        chunk=card.chunk,
        content=card.content,
        names=out.names,
        buttons=buttons,
        version=REPLACING if streamed else 0,
        file=card.file,
        asked=asked,
        foot=foot,
    )


async def _mark(
    services: Services,
    out: Outgoing,
    card: StoredCard,
    sent: Delivered,
    told: Told,
    after: After | None,
) -> str:
    """Stores what was delivered, tells the group's conversation of it and, `after` the last card,
    ends the job and queues the next: all of it or nothing. The turn's state."""
    with stage("memory_save"):
        state, result = await services.store.mark_sent_and_tell(
            out.context,
            turn_id=out.turn_id,
            chunk=card.chunk,
            content=sent.content,
            message_id=sent.message_id,
            told=told,
            then=after.statement() if after else None,
            plain=out.plain,
        )
    if after and after.lease and services.store.joins:
        after.lease.ended(result)
    return state
