"""The private answer to a question that was asked in a group, and its publication there.

It is a turn of the person's own place, begun by their press: only now the model sees what they may
read elsewhere. What is shared is the text of the shown cards and nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import structlog

from bot.agents.drawn_on import noting_sources
from bot.answer.answering import answer as answer_question
from bot.answer.composing import NOTHING, compose
from bot.answer.hearing import listen
from bot.answer.question import Turn, begin, language
from bot.feishu.errors import FeishuFailure
from bot.feishu.events import MessageEvent
from bot.languages import Language
from bot.private import texts
from bot.reply.buttons import FOLLOW_UP_LIVES_S, Reply, card_buttons
from bot.reply.delivery import Aside, Undeliverable, deliver
from bot.services import Services
from bot.telemetry import metrics, timing
from memory.kept.buttons import NewButton
from memory.kept.private import PrivateStore
from memory.models import OpenTurn, StoredCard
from memory.scope import private_context

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Shown:
    """Where a private answer is shown. `where` says where the question was asked: chat_id, root_id,
    turn_id. `beside`: the card that was pressed stood in that group, else in p2p."""

    where: Mapping[str, str]
    beside: bool
    card_id: str

    def target(self, person: str) -> Aside:
        return Aside(person, self.where["chat_id"] if self.beside else "")


async def answer_privately(
    services: Services, event: MessageEvent, received_ms: int, shown: Shown
) -> None:
    """Answers `event`, a question in the person's own place. Raises what is worth another attempt:
    then a card that was shown before may be shown again."""
    timing.begin()
    bot = await services.own_person.look_up()
    heard = await listen(services, event, bot)
    turn = replace(begin(services, event, heard, bot, received_ms), private=True)
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
            reply = await _answered(services, turn, opened, shown)
        outcome = await _show(services, turn, reply, shown)
    await _take_offer_away(services, shown)
    metrics.TURNS.labels(outcome=outcome).inc()
    log.info("turn", turn_id=turn.id, outcome=outcome, attempt=opened.attempts, private=True)


async def published(
    services: Services, turn: Turn, opened: OpenTurn, *, asked_in: str, answer_id: str
) -> Reply:
    """The cards of the private answer `answer_id`, as they were shown to who shares them now.
    `asked_in` is the message they asked in the group."""
    place = private_context(turn.context.actor_id, asked_in, turn.context.tenant_key)
    shown = await PrivateStore(services.rpc).shown(place, answer_id)
    return Reply("" if shown else texts.GONE[language(services, turn, opened)], cards=shown)


async def _answered(
    services: Services, turn: Turn, opened: OpenTurn, shown: Shown
) -> tuple[StoredCard, ...]:
    """Makes the answer and stores it as pending, with what it draws on; of its buttons only the one
    that shares it."""
    with noting_sources() as sources:
        answer = await answer_question(services, turn, opened)
    with_notes = any("note" in call["name"] for call in answer.tool_calls)
    await PrivateStore(services.rpc).draw_on(
        turn.context, turn.id, sorted(sources), with_notes=with_notes
    )
    tongue = language(services, turn, opened)
    _, stored = await services.store.record_reply(
        turn.context,
        turn_id=turn.id,
        cards=compose(services, turn, answer.text, nothing=NOTHING[tongue]),
        tool_calls=answer.tool_calls,
        buttons=(_share(turn, shown, tongue),),
    )
    return stored


def _share(turn: Turn, shown: Shown, tongue: Language) -> NewButton:
    label = texts.SHARE_HERE if shown.beside else texts.SHARE_THERE
    payload = {**shown.where, "answer_id": turn.id}
    return NewButton(label[tongue], "share", payload, "p2p", FOLLOW_UP_LIVES_S)


async def _show(services: Services, turn: Turn, reply: tuple[StoredCard, ...], shown: Shown) -> str:
    """Shows what is pending; what was shown is what is marked sent."""
    for card in (card for card in reply if card.status == "pending"):
        try:
            sent = await deliver(
                services.feishu,
                shown.target(turn.context.actor_id),
                turn_id=turn.id,
                chunk=card.chunk,
                content=card.content,
                names=turn.names.known,
                buttons=card_buttons(card.buttons),
            )
        except Undeliverable as exc:
            await services.store.mark_failed(turn.context, turn_id=turn.id, error=exc.reason)
            return "failed"
        await services.store.mark_sent(
            turn.context,
            turn_id=turn.id,
            chunk=card.chunk,
            content=sent.content,
            message_id=sent.message_id,
        )
    return "sent" if reply else "cancelled"


async def _take_offer_away(services: Services, shown: Shown) -> None:
    """The card that was pressed has done its work; in p2p it stays."""
    if not shown.beside:
        return
    try:
        await services.feishu.delete_ephemeral(shown.card_id)
    except FeishuFailure as exc:
        log.info("private.offer_stays", error=type(exc).__name__)
