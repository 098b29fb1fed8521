"""A turn of a person's own place: answered for them alone, and shown to them alone.

What a person may read anywhere may be told there. The card stands in the group beside what is said,
where only they see it; where Feishu does not do that, in p2p.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import structlog

from bot.answer.answering import Answering
from bot.answer.composing import NOTHING, compose
from bot.answer.hearing import listen
from bot.answer.question import Turn, begin, language
from bot.feishu.errors import FeishuFailure
from bot.feishu.events import MessageEvent
from bot.reply.buttons import card_buttons
from bot.reply.delivery import Aside, Delivered, Undeliverable, deliver
from bot.services import Services
from bot.telemetry import metrics, timing
from bot.upkeep.withdrawing import withdraw_cards
from memory.models import OpenTurn, StoredCard

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Shown:
    """`outcome` as in the metrics. `in_p2p`: a card that was sent now stands in p2p."""

    outcome: str
    in_p2p: bool = False


def in_own_place(event: MessageEvent, turn_id: str) -> MessageEvent:
    """The question of a group as one of who asked it, in their own place."""
    return replace(
        event,
        message_id=turn_id,
        root_id=f"{event.message_id}~private",  # the question's own would go with its words
        parent_id="",
        thread_id="",
        chat_id=event.sender_open_id,
        chat_type="p2p",
        mentions=(),
        attachments=(),
    )


async def answer_alone(
    services: Services, event: MessageEvent, received_ms: int, aside: Aside, answering: Answering
) -> Shown:
    """Answers `event`, a question in the person's own place. Raises what is worth another attempt:
    then a card that was shown before may be shown again."""
    timing.begin()
    bot = await services.own_person.look_up()
    heard = await listen(services, event, bot)
    turn = replace(begin(services, event, heard, bot, received_ms), private=True)
    forgets = False
    with metrics.IN_FLIGHT.track_inprogress():
        opened = await services.store.begin_turn(
            turn.context,
            turn_id=turn.id,
            content=turn.question,
            actor_name=turn.names.name(event.sender_open_id),
            history_limit=services.settings.history_messages,
        )
        reply = opened.reply
        if opened.state == "open":
            reply, forgets = await _answered(services, turn, opened, answering)
        shown = await _show(services, turn, reply, aside)
    if forgets:
        await withdraw_cards(services)
    metrics.TURNS.labels(outcome=shown.outcome).inc()
    log.info("turn", turn_id=turn.id, outcome=shown.outcome, attempt=opened.attempts, private=True)
    return shown


async def take_away(services: Services, card_id: str) -> None:
    """A card beside a group has done its work. Never raises."""
    try:
        await services.feishu.delete_ephemeral(card_id)
    except FeishuFailure as exc:
        log.info("private.card_stays", error=type(exc).__name__)


async def _answered(
    services: Services, turn: Turn, opened: OpenTurn, answering: Answering
) -> tuple[tuple[StoredCard, ...], bool]:
    """Makes the answer and stores it as pending; and whether something is forgotten with it."""
    answer = await answering(services, turn, opened)
    nothing = NOTHING[language(services, turn, opened)]
    _, stored = await services.store.record_reply(
        turn.context,
        turn_id=turn.id,
        cards=compose(services, turn, answer.text, nothing=nothing),
        tool_calls=answer.tool_calls,
        buttons=answer.buttons,
    )
    return stored, answer.forgets


async def _show(
    services: Services, turn: Turn, reply: tuple[StoredCard, ...], aside: Aside
) -> Shown:
    """Shows what is pending; what was shown is what is marked sent."""
    sent: Delivered | None = None
    for card in (card for card in reply if card.status == "pending"):
        try:
            sent = await deliver(
                services.feishu,
                aside,
                turn_id=turn.id,
                chunk=card.chunk,
                content=card.content,
                names=turn.names.known,
                buttons=card_buttons(card.buttons),
            )
        except Undeliverable as exc:
            await services.store.mark_failed(turn.context, turn_id=turn.id, error=exc.reason)
            return Shown("failed")
        await services.store.mark_sent(
            turn.context,
            turn_id=turn.id,
            chunk=card.chunk,
            content=sent.content,
            message_id=sent.message_id,
        )
    return Shown("sent" if reply else "cancelled", in_p2p=bool(sent and not sent.aside))
