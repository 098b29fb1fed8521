"""Handles reactions to what the bot said, and presses in the bot's menu.

A reaction answers a card once, if the card ends with a yes-or-no question, the asker reacted, and
has not gone on in words. On any other answer 👍 and 👎 count as feedback until they are removed.
The key of a menu item is the name of a command, whose answer only the person who pressed reads."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import structlog

from bot.answering.question import Turn, turn_language
from bot.card_actions.clicks import Place, PressSource, utterance_request
from bot.card_actions.confirmation import consent_answering
from bot.feishu import manifest, markup
from bot.feishu.other_events import Consent, MenuPress, Reaction
from bot.listening.requests import asks_for_consent, last_question
from bot.listening.turn_request import TurnRequest
from bot.outbox.buttons import Reply
from bot.process import metrics
from bot.queue.consumer import Lease
from bot.services import Services
from bot.text.languages import Catalogue, language_of
from bot.text.roster import from_card
from bot.text.slash_commands import COMMAND_WORDS
from bot.turn import handle_request
from memory.errors import StoreUnavailable
from memory.models import OpenTurn, Origin
from memory.scope import MAIN_ROOT, FeishuPerson, memory_context, private_context
from memory.tables.cards import HandleStore
from memory.tables.private import PrivateStore

log = structlog.get_logger()

_KEY_CHARS = 30  # Feishu's own limit

say = Catalogue(__file__).say


async def handle_reaction(
    services: Services, reaction: Reaction, received_ms: int, lease: Lease
) -> None:
    """Takes a reaction as answer or feedback. Raises errors that are worth another attempt."""
    if not reaction.open_id:
        return
    says = None if reaction.gone else reaction.consent
    if says and await _take_as_answer(services, reaction, says, received_ms, lease):
        return
    if reaction.helpful is not None:
        await _keep_feedback(services, reaction, helpful=reaction.helpful)


async def _keep_feedback(services: Services, reaction: Reaction, *, helpful: bool) -> None:
    verdict = await HandleStore(services.rpc).react(
        reaction.message_id,
        reaction.open_id,
        reaction.tenant_key,
        helpful=helpful,
        is_withdrawn=reaction.gone,
    )
    if verdict != "unknown":
        metrics.count_feedback("reaction", helpful=helpful, is_kept=verdict == "thanks")
        log.info("feedback", message_id=reaction.message_id, helpful=helpful, verdict=verdict)


async def _take_as_answer(
    services: Services, reaction: Reaction, consent: Consent, received_ms: int, lease: Lease
) -> bool:
    """Answers the reaction if it answers a card. Returns whether it did."""
    params = {
        "p_message_id": reaction.message_id,
        "p_tenant_key": reaction.tenant_key,
        "p_operator_id": reaction.open_id,
    }
    card_question = await services.rpc.call("card_asked", params, None)
    if card_question is None:
        return False
    origin = Origin("reaction", card_question["turn_id"])
    asker = memory_context(
        chat_id=card_question["chat_id"],
        root=card_question["root_id"],
        subject=reaction.open_id,
        actor=reaction.open_id,
        tenant_key=reaction.tenant_key,
        chat_type="p2p" if card_question["chat_type"] == "p2p" else "group",
    )
    answering = await consent_answering(
        services, asker, consent, event_id=origin.turn_id, card_id=reaction.message_id
    )
    question = _consent_question(services, reaction, card_question)
    if not question and not answering:
        return False
    services.rates.count(FeishuPerson(reaction.tenant_key, reaction.open_id), received_ms / 1000)
    log.info("reaction", message_id=reaction.message_id, consent=consent)
    root = "" if card_question["root_id"] == MAIN_ROOT else card_question["root_id"]
    place = Place(card_question["chat_id"], card_question["chat_type"], root, reaction.message_id)
    saying = PressSource(reaction.open_id, reaction.tenant_key, reaction.at_ms)
    words = say(f"consent-{consent}", language_of([question or card_question["content"]]))
    request = await utterance_request(services, saying, origin, place, words)
    await handle_request(services, request, received_ms, answering=answering, lease=lease)
    return True


def _consent_question(
    services: Services, reaction: Reaction, card_question: Mapping[str, Any]
) -> str:
    """Returns the question that ends the card if yes or no answers it, else ""."""
    known_names = services.people.of(reaction.tenant_key).known
    text = markup.AT_TAG.sub("", card_question["content"])  # whom it addresses asks nothing
    question = last_question(from_card(text, known_names, unescape=markup.unescape))
    return question if question and asks_for_consent(question) else ""


async def handle_menu_press(
    services: Services, press: MenuPress, received_ms: int, lease: Lease
) -> None:
    """Answers a press once, however often Feishu repeats the event. Raises errors that are worth
    another attempt. For an item without a command, the reply lists the items that have one."""
    key = press.key.strip().lstrip("/／").lower()
    is_command = key in COMMAND_WORDS
    log.info("menu", event_key=press.key[:_KEY_CHARS], known=is_command)
    request = await _menu_request(services, press, f"/{key}")
    answering = None if is_command else partial(_no_such_item, key=press.key)
    await handle_request(services, request, received_ms, answering=answering, lease=lease)


async def _menu_request(services: Services, press: MenuPress, text: str) -> TurnRequest:
    """Returns the request in the person's p2p chat, or in their own place if that chat is not known
    yet."""
    place = private_context(press.open_id, press.tenant_key)
    try:
        place = await PrivateStore(services.rpc).place(place)
    except StoreUnavailable as exc:
        log.info("menu.place_unknown", error=type(exc).__name__)
    return await utterance_request(
        services,
        PressSource(press.open_id, press.tenant_key, press.at_ms),
        Origin("button", press.item, press.cause),
        Place(place.chat_id, "p2p", ""),
        text,
    )


async def _no_such_item(services: Services, turn: Turn, open_turn: OpenTurn, *, key: str) -> Reply:
    reply_language = turn_language(services, turn, open_turn)
    key_words = markup.plain_words(key[:_KEY_CHARS])
    keys = ", ".join(f"`{one.key}`" for one in manifest.MENU)
    return Reply(say("no-such-item", reply_language, key=key_words, keys=keys))
