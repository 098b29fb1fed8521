"""Sends the stored cards of a turn, and writes with the last one that the turn is over.

Every step can be repeated: what is on its way is looked for before it is sent again, and what was
sent is what is marked sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.answer.hearing import before_answer
from bot.answer.question import Turn, told
from bot.feishu import markup
from bot.group.transcript import MessageRecord
from bot.mentions import from_card
from bot.private.looking import Looking
from bot.queue.consumer import Lease
from bot.reply.buttons import card_buttons
from bot.reply.delivery import REPLACING, Delivered, Undeliverable, deliver
from bot.reply.finding import doubt_of, find_sent, sending
from bot.reply.foot import card_foot
from bot.reply.late import late_note
from bot.reply.streaming import CardStream
from bot.services import Services
from bot.slash import quietens
from bot.telemetry.timing import stage
from bot.upkeep.withdrawing import withdraw_cards
from memory.models import OpenTurn, StoredCard, TurnState
from memory.rpc import Statement

_OVER = ("sent", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class After:
    """What is written with the last card, where the memory is in the queue's database: the end of
    the job, and the private look-up."""

    lease: Lease | None
    look_up: Statement | None

    def statement(self) -> Statement | None:
        ending = self.lease.ending() if self.lease else None
        return ending.then(self.look_up) if ending and self.look_up else ending or self.look_up


async def deliver_reply(
    services: Services,
    turn: Turn,
    opened: OpenTurn,
    reply: tuple[StoredCard, ...],
    stream: CardStream | None,
    lease: Lease | None,
    looking: Looking,
) -> str:
    """Sends what is pending, card by card; what was sent is what is marked sent."""
    if opened.state in _OVER or not reply:
        if stream:
            await stream.withdraw()
        return "duplicate" if opened.state == "sent" else "cancelled"
    pending = [card for card in reply if card.status == "pending"]
    last = max((card.chunk for card in reply if not card.file), default=0)
    async with before_answer(services, turn.event, turn.heard, turn.bot) as before:
        for card in pending:
            try:
                shown = turn if card.chunk == last else replace(turn, foot=None)
                sent = await _send(services, shown, card, stream, lease)
            except Undeliverable as exc:
                await services.store.mark_failed(turn.context, turn_id=turn.id, error=exc.reason)
                return "failed"
            after = After(lease, looking.after()) if card is pending[-1] else None
            plain = _is_plain(opened, reply, stream)
            state = await _mark(services, turn, card.chunk, sent, await before(), after, plain)
            if state == "cancelled":  # the question was taken back while the card was on its way
                await withdraw_cards(services)
                return "cancelled"
    return "sent"


async def _send(
    services: Services,
    turn: Turn,
    card: StoredCard,
    stream: CardStream | None,
    lease: Lease | None,
) -> Delivered:
    """Sends a card that nobody knows to be sent; while it is on its way, the lease is unsure."""
    doubt = doubt_of(services, lease.job.maybe_sent_ms if lease else 0)
    with stage("send"):
        names = turn.names.known
        found = await find_sent(
            services.feishu,
            turn.target,
            doubt,
            turn_id=turn.id,
            chunk=card.chunk,
            content=card.content,
            names=names,
            file=card.file,
        )
        if found:
            return found
        if doubt.is_unsent:
            card = await _dated(services, turn, card)
        with sending(lease):
            return await _give(services, turn, card, stream)


async def _dated(services: Services, turn: Turn, card: StoredCard) -> StoredCard:
    """A late answer says to which question, from when; it is stored so before it is sent."""
    asked_ms = turn.event.create_time_ms or turn.received_ms
    note = late_note(turn.question, asked_ms, services.now())
    if card.chunk or not note:
        return card
    stored = await services.store.preface_reply(turn.context, turn_id=turn.id, note=note)
    return next((one for one in stored if one.chunk == card.chunk), card)


async def _give(
    services: Services, turn: Turn, card: StoredCard, stream: CardStream | None
) -> Delivered:
    """The first card is the one that was streamed, if any; the others are new ones."""
    names, buttons = turn.names.known, card_buttons(card.buttons)
    asked = turn.asked if card.chunk == 0 else None
    foot = card_foot(turn.foot, services.now()) if turn.foot else None
    streamed = stream is not None and stream.card is not None and card.chunk == 0
    if stream and streamed:
        shown = await stream.deliver(
            card.content, buttons=buttons, names=names, asked=asked, foot=foot
        )
        if shown:
            return shown
    return await deliver(
        services.feishu,
        turn.target,
        turn_id=turn.id,
        chunk=card.chunk,
        content=card.content,
        names=names,
        buttons=buttons,
        version=REPLACING if streamed else 0,
        file=card.file,
        asked=asked,
        foot=foot,
    )


def _is_plain(opened: OpenTurn, reply: tuple[StoredCard, ...], stream: CardStream | None) -> bool:
    """Whether the answer is one card, without buttons, that nobody can have begun before."""
    return stream is None and opened.attempts == 1 and len(reply) == 1 and not reply[0].buttons


async def _mark(
    services: Services,
    turn: Turn,
    chunk: int,
    sent: Delivered,
    before: Sequence[MessageRecord],
    after: After | None,
    plain: bool,
) -> TurnState:
    """Stores what was delivered, tells the group's conversation of it and, `after` the last card,
    ends the job and queues the next: all of it or nothing."""
    spoken = from_card(sent.content, turn.names.known, unescape=markup.unescape)
    quiet = quietens(turn.question)
    with stage("memory_save"):
        state, result = await services.store.mark_sent_and_tell(
            turn.context,
            turn_id=turn.id,
            chunk=chunk,
            content=sent.content,
            message_id=sent.message_id,
            told=None if quiet else told(services, turn, before, spoken, sent.message_id),
            then=after.statement() if after else None,
            plain=plain,
        )
    if after and after.lease and services.store.joins:
        after.lease.ended(result)
    return state
