"""Hands the stored reply of a turn to the outbox, with what the group's conversation is told."""

from __future__ import annotations

from collections.abc import Callable

from bot.answering.hearing import before_answer
from bot.answering.question import Turn, told
from bot.feishu import markup
from bot.outbox.delivery import Delivered, Target
from bot.outbox.sending import After, Outcome, Outgoing, Told, send
from bot.outbox.streaming import CardStream
from bot.queue.consumer import Lease
from bot.services import Services
from bot.text.card_names import from_card
from bot.text.slash_commands import quietens
from memory.models import OpenTurn, StoredCard, TurnState
from memory.rpc import Statement
from memory.scope import MAIN_ROOT

_OVER = ("sent", "failed", "cancelled")


async def send_reply(
    services: Services,
    turn: Turn,
    open_turn: OpenTurn,
    reply: tuple[StoredCard, ...],
    stream: CardStream | None,
    lease: Lease | None,
    look_up: Callable[[], Statement | None],
) -> Outcome:
    """Sends what is pending of the reply; what came of it. `look_up` gives what is
    queued with the end of the job."""
    if open_turn.state in _OVER or not reply:
        if stream:
            await stream.withdraw()
        return _over(open_turn.state)
    quiet = quietens(turn.question)
    async with before_answer(services, turn.request, turn.heard, turn.bot) as before:

        async def tell(delivery: Delivered) -> Told:
            if quiet:
                return None
            card_words = from_card(delivery.content, turn.names.known, unescape=markup.unescape)
            return told(services, turn, await before(), card_words, delivery.message_id)

        return await send(
            services,
            _outgoing(turn, open_turn, reply, lease, stream),
            lease=lease,
            stream=stream,
            tell=tell,
            after=After(lease, look_up),
        )


def _over(state: TurnState) -> Outcome:
    """What came of a turn that was over, or has nothing to send."""
    match state:
        case "sent":
            return Outcome("duplicate")
        case "failed":
            return Outcome("failed")
    return Outcome("cancelled")


def _outgoing(
    turn: Turn,
    open_turn: OpenTurn,
    reply: tuple[StoredCard, ...],
    lease: Lease | None,
    stream: CardStream | None,
) -> Outgoing:
    return Outgoing(
        turn.context,
        turn.id,
        reply,
        turn.target,
        turn.names.known,
        instead=_without_card(turn),
        since_ms=lease.job.maybe_sent_ms if lease else 0,
        question=turn.question,
        asked_ms=turn.request.create_time_ms or turn.received_ms,
        asked=turn.asked,
        foot=turn.foot,
        plain=_is_plain(open_turn, reply),
        streamed=stream is not None and stream.may_be_kept,
    )


def _without_card(turn: Turn) -> Target | None:
    """Where a press is answered when its card is gone: what it deletes can take the card along."""
    if not turn.origin.is_pressed:
        return None
    root = turn.context.root_id
    return Target("" if root == MAIN_ROOT else root, turn.request.chat_id, turn.target.in_thread)


def _is_plain(open_turn: OpenTurn, reply: tuple[StoredCard, ...]) -> bool:
    """Whether the answer is one card, without buttons, that no earlier attempt can have begun."""
    return open_turn.attempts == 1 and len(reply) == 1 and not reply[0].buttons
