"""`/memory` and `/notes`: what is kept of a person. A group sees nothing of their memory."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from bot.agents.tools.note_outcomes import listed
from bot.answering.question import Turn
from bot.features.commands import texts
from bot.features.feature import CommandTurn, FeatureTurn
from bot.features.own_memory import texts as item_texts
from bot.features.own_memory.items import show_items
from bot.features.private_answers.ephemeral_answer import show_alone
from bot.feishu import markup
from bot.outbox.buttons import Reply
from bot.services import Services
from bot.text.card_names import from_card
from bot.text.languages import Language
from memory.errors import StoreUnavailable
from memory.models import OpenTurn, StoredMessage
from memory.outcomes import ELSEWHERE, apologised
from memory.scope import AgentMemoryContext
from memory.tables.imports import ImportStore
from memory.tables.notes import NoteStore

_NOTES_SHOWN = 30


async def show_memory(services: Services, command_turn: CommandTurn) -> Reply:
    """In a group it is shown to the person alone."""
    if command_turn.opened.degraded:
        return Reply(
            texts.say("memory-away", command_turn.language), means=apologised("memory_away")
        )
    if command_turn.chat_type != "p2p":
        return await _show_alone(services, command_turn.turn, command_turn.language)
    overview = await services.store.overview(command_turn.context)
    messages = [
        (one.role, _spoken(services, command_turn, one))
        for one in command_turn.opened.history[:-1]
        if one.id > 0
    ]
    item_list = await show_items(services, command_turn)
    overview_text = texts.memory(overview, messages, command_turn.language, services.now())
    import_lines = await _imported(services, command_turn.context, command_turn.language)
    return replace(
        item_list, text="\n\n".join(filter(None, (overview_text, import_lines, item_list.text)))
    )


async def show_notes(services: Services, command_turn: CommandTurn) -> Reply:
    notes = await NoteStore(services.rpc).list(command_turn.context, limit=_NOTES_SHOWN)
    notes_result = listed(notes, command_turn.context.actor_id).result
    # as if the model had listed them: it is asked about “the first note” next
    call = {"name": "list_notes", "arguments": {}, "result": notes_result, "ok": True, "ms": 0}
    text = texts.notes(notes, command_turn.language, in_group=command_turn.chat_type != "p2p")
    return Reply(text, tool_calls=(call,) if notes else ())


async def _show_alone(services: Services, turn: Turn, language: Language) -> Reply:
    """What the group is told once it is shown: nothing, unless it went elsewhere."""
    outcome = await show_alone(
        services,
        turn,
        lambda beside: partial(_listed, group=turn.context, tongue=language, beside=beside),
    )
    if outcome.outcome == "failed":
        return Reply(item_texts.say("not-sent-privately", language))
    if outcome.in_p2p:
        return Reply(item_texts.say("sent-privately", language))
    return Reply("", unsaid=True, forgets=True, means=ELSEWHERE)


async def _listed(
    services: Services,
    turn: Turn,
    open_turn: OpenTurn,
    *,
    group: AgentMemoryContext,
    tongue: Language,
    beside: str,
) -> Reply:
    """`group`: where it was asked for."""
    here = FeatureTurn(turn.context, "p2p", tongue, turn.id, beside)
    try:
        item_list = await show_items(services, here)
        import_lines = await _imported(services, group, tongue)
    except StoreUnavailable:
        return Reply(texts.say("memory-away", tongue), means=apologised("memory_away"))
    parts = (item_texts.say("shown-in-private", tongue), import_lines, item_list.text)
    return replace(item_list, text="\n\n".join(filter(None, parts)))


async def _imported(services: Services, context: AgentMemoryContext, language: Language) -> str:
    """How many of the sender's messages the imported history of that chat holds; "" if none."""
    own = await ImportStore(services.rpc).own_messages(context)
    return item_texts.say("own-imported", language, n=own) if own else ""


def _spoken(services: Services, command_turn: CommandTurn, message: StoredMessage) -> str:
    if message.role == "user":
        return message.content
    known_names = services.people.of(command_turn.context.tenant_key).known
    return from_card(message.content, known_names, unescape=markup.unescape)
