"""The card of a timer: stored and then shown, once.

It is a turn of its own in the conversation in which the timer was set. Every step can be repeated,
as those of an answer can.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import structlog

from bot.features.feature import Firing
from bot.features.timers import texts
from bot.features.timers.left_chats import is_gone
from bot.outbox.delivery import Target
from bot.outbox.sending import Outgoing, leave_unsent, send
from bot.services import Services
from memory.models import StoredCard

log = structlog.get_logger()

_OVER = {"sent": "again", "cancelled": "taken_back", "failed": "failed"}


async def post(
    services: Services,
    firing: Firing,
    target: Target,
    write: Callable[[str], Awaitable[list[str]]],
) -> str:
    """Shows what `write` gives for the turn's id, and returns what came of it. Where it gives
    nothing, what it is made of was taken back."""
    due = firing.due
    timer, origin = due.timer, due.origin()
    names = services.people.of(timer.context.tenant_key)
    await names.look_up([*timer.plan.for_people, timer.context.actor_id])
    open_turn = await services.store.open_turn(
        timer.context,
        turn_id=origin.turn_id,
        content=texts.as_asked(timer),
        actor_name=names.name(timer.context.actor_id),
        history_limit=1,
        origin=origin,
    )
    turn_id, reply = open_turn.turn_id or origin.turn_id, open_turn.reply
    if open_turn.state == "open":
        cards = await write(turn_id)
        if not cards:
            await leave_unsent(services, timer.context, turn_id, "taken back")
            return "taken_back"
        _, reply = await services.store.record_reply(timer.context, turn_id=turn_id, cards=cards)
    if open_turn.state in _OVER:
        return _OVER[open_turn.state]
    since_ms = firing.lease.job.maybe_sent_ms
    if open_turn.state == "pending" and firing.lease.job.attempt == 1:
        since_ms = timer.plan.due_ms  # an earlier job stored it and was lost
    out = _outgoing(services, firing, turn_id, reply, target, since_ms)
    return await _send(services, firing, out)


async def _send(services: Services, firing: Firing, out: Outgoing) -> str:
    """What came of it."""
    outcome = await send(services, out, lease=firing.lease, ends_unknown=True)
    if outcome.state == "cancelled":
        return "taken_back"
    if outcome.state == "failed":
        if await is_gone(services, out.context, outcome.refusal):
            return "gone"
        timer_id = firing.due.timer.id
        log.warning("timer.undeliverable", timer_id=timer_id, reason=outcome.reason)
    return outcome.state


def _outgoing(
    services: Services,
    firing: Firing,
    turn_id: str,
    reply: tuple[StoredCard, ...],
    target: Target,
    since_ms: int,
) -> Outgoing:
    """To the message that asked for it; where that is no more, to the chat by itself."""
    context = firing.due.timer.context
    chat = replace(target, message_id="", in_thread=False) if target.message_id else None
    names = services.people.of(context.tenant_key).known
    return Outgoing(context, turn_id, reply, target, names, instead=chat, since_ms=since_ms)
