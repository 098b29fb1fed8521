"""`/memory` in a group: answered right there, to who asked and nobody else."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import structlog

from bot.answering.question import Turn
from bot.features.commands import texts
from bot.features.own_memory import texts as item_texts
from bot.features.own_memory.items import Looking, show_items
from bot.features.private_answers.ephemeral_answer import answer_alone, as_private
from bot.outbox.buttons import Reply
from bot.outbox.delivery import Aside
from bot.services import Services
from bot.text.languages import Language
from memory.errors import StoreUnavailable
from memory.models import OpenTurn
from memory.origins import Origin
from memory.outcomes import ELSEWHERE, apologised


async def show_own_memory(services: Services, turn: Turn, language: Language) -> Reply:
    """What the group is told once it is shown: nothing, unless it went elsewhere.

    A card that one person sees stands in no thread, so there it goes to p2p, where they are told of
    it. The turn has an id of its own, so that this can be repeated.
    """
    beside = "" if turn.request.in_thread else turn.request.chat_id
    shown = await answer_alone(
        services,
        await as_private(services, turn.request, Origin("private_answer", turn.id)),
        turn.received_ms,
        Aside(turn.context.actor_id, beside),
        partial(_listed, tongue=language, beside=beside),
    )
    structlog.contextvars.bind_contextvars(conversation_id=turn.context.conversation_id)
    if shown.outcome == "failed":
        return Reply(item_texts.say("not-sent-privately", language))
    if shown.in_p2p:
        return Reply(item_texts.say("sent-privately", language))
    return Reply("", unsaid=True, forgets=True, means=ELSEWHERE)


async def _listed(
    services: Services, turn: Turn, opened: OpenTurn, *, tongue: Language, beside: str
) -> Reply:
    try:
        shown = await show_items(services, Looking(turn.context, "p2p", tongue, turn.id, beside))
    except StoreUnavailable:
        return Reply(texts.say("memory-away", tongue), means=apologised("memory_away"))
    return replace(shown, text=f"{item_texts.say('shown-in-private', tongue)}\n\n{shown.text}")
