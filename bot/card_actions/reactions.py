"""Reactions to what the bot said, in the worker: to its question, 👍 is the asker's yes.

`handle_reaction` is where every reaction arrives. It counts as the answer, once, when the card ends
with a question that yes or no answers, whoever asked put it there, and has not gone on in words.
Then it goes the way of every message, as what that person said. On any other answer 👍 and 👎 say
what the buttons below it say, until they are taken away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog

from bot.card_actions.consent import pressing
from bot.card_actions.pressed_message import Place, Saying, as_said
from bot.card_actions.texts import say
from bot.feishu import markup
from bot.feishu.reactions import Consent, Reaction
from bot.listening.questions import asks_for_consent, last_question
from bot.process import metrics
from bot.queue.consumer import Lease
from bot.queue.person_rates import Asker
from bot.services import Services
from bot.text.card_names import from_card
from bot.text.languages import language_of
from bot.turn import handle_request
from memory.origins import Origin
from memory.scope import MAIN_ROOT, memory_context
from memory.tables.handles import HandleStore

log = structlog.get_logger()


async def handle_reaction(
    services: Services, reaction: Reaction, received_ms: int, lease: Lease
) -> None:
    """Hears a reaction. Raises what is worth another attempt."""
    if not reaction.open_id:
        return
    says = None if reaction.gone else reaction.consent
    if says and await _answer_of(services, reaction, says, received_ms, lease):
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


async def _answer_of(
    services: Services, reaction: Reaction, consent: Consent, received_ms: int, lease: Lease
) -> bool:
    """Whether it was an answer, which is given then."""
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
    answering = await pressing(
        services, asker, consent, event_id=origin.turn_id, card_id=reaction.message_id
    )
    question = _question(services, reaction, card_question)
    if not question and not answering:
        return False
    services.rates.count(Asker(reaction.tenant_key, reaction.open_id), received_ms / 1000)
    log.info("reaction", message_id=reaction.message_id, consent=consent)
    root = "" if card_question["root_id"] == MAIN_ROOT else card_question["root_id"]
    place = Place(card_question["chat_id"], card_question["chat_type"], root, reaction.message_id)
    saying = Saying(reaction.open_id, reaction.tenant_key, reaction.at_ms)
    words = say(f"consent-{consent}", language_of([question or card_question["content"]]))
    request = await as_said(services, saying, origin, place, words)
    await handle_request(services, request, received_ms, answering=answering, lease=lease)
    return True


def _question(services: Services, reaction: Reaction, card_question: Mapping[str, Any]) -> str:
    """The question that the card ends with, if yes or no answers it."""
    known_names = services.people.of(reaction.tenant_key).known
    text = markup.AT_TAG.sub("", card_question["content"])  # whom it addresses asks nothing
    question = last_question(from_card(text, known_names, unescape=markup.unescape))
    return question if question and asks_for_consent(question) else ""
