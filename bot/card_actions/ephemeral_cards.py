"""A press on a card that one person sees beside a group: what comes of it takes the card's place.

Such a card cannot be patched (Feishu, im-v1 “message/patch”), so the new one is shown and then the
old one is taken away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

from bot.answering.question import Turn
from bot.card_actions.confirmation import pressed
from bot.card_actions.pressed_message import as_pressed, where_alone
from bot.features.commands import texts
from bot.features.feature import FeatureTurn
from bot.features.own_memory import items
from bot.features.private_answers.ephemeral_answer import answer_alone, take_away
from bot.feishu.events import CardAction
from bot.outbox.buttons import Reply
from bot.outbox.delivery import Aside
from bot.services import Services
from bot.text.languages import Language
from memory.models import OpenTurn
from memory.tables.buttons import Click, Press


def stands_beside(press: Press, click: Click) -> bool:
    """Whether its card stands beside what is said in the group of the click, where nobody else
    sees it."""
    return press.chat_id != click.chat_id and press.payload.get("beside") == click.chat_id


async def press_beside(
    services: Services,
    action: CardAction,
    click: Click,
    press: Press,
    words: str,
    received_ms: int,
) -> None:
    """Answers there, and takes the pressed card away. Raises what is worth another attempt."""
    place = where_alone(press)
    request = await as_pressed(services, action, click, press, place, words)
    target = Aside(click.operator_id, click.chat_id)
    answering = partial(_pressed, press=press, values=action.form_value)
    outcome = await answer_alone(services, request, received_ms, target, answering)
    if outcome.outcome != "failed":
        await take_away(services, click.message_id)


async def _pressed(
    services: Services, turn: Turn, open_turn: OpenTurn, *, press: Press, values: Mapping[str, Any]
) -> Reply:
    language = cast(Language, press.payload["language"])
    if press.payload.get("decision") == "cancel":
        here = FeatureTurn(turn.context, turn.chat_type, language, turn.id, press.payload["beside"])
        left = await items.show_items(services, here)
        return replace(left, text=f"{texts.say('cancelled', language)}\n\n{left.text}")
    return await pressed(services, turn, open_turn, press=press, values=values)
