"""Tools for working memory and for what was said earlier."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from bot.agents.prompts.drawn_on import note_sources
from bot.agents.prompts.group_facts import group_lines
from bot.agents.tool_types.outcomes import ToolOutcome
from bot.agents.tool_types.tool import Tool, ToolFailed, tool
from bot.agents.tools.deps import RecallScope, ToolDeps
from memory.models import Scope
from memory.recall.kept_facts import replaced_facts
from memory.recall.passages import usual_scope
from memory.scope import in_document
from memory.tables.items import Changed

_SCOPES: dict[str, Scope] = {"thread": "chat", "person": "user"}
_MOST_PASSAGES = 10


def memory_tools(*, with_recall: bool) -> list[Tool]:
    """The tools, without `recall` where nothing can be searched."""
    tools = [
        tool(read_working_memory, sequential=True, reads=True),
        tool(update_working_memory, sequential=True),
        tool(forget_fact, sequential=True),
    ]
    return [*tools, tool(recall, sequential=True, reads=True)] if with_recall else tools


async def read_working_memory(deps: ToolDeps) -> str:
    """Read all facts kept for this thread and of the person, what they were before they changed,
    and those kept in this group that the question is about."""
    working_memory = await deps.store.working_memory(deps.context, deps.prompt.question)
    former = await deps.store.items.former(deps.context)
    note_sources([*working_memory.turns, *(one.turn_id for one in former)])
    remarks = [
        f"{one.actor_id} about {one.user_id}: {_json(one.content)}" for one in working_memory.said
    ]
    before = [f"before, until {one.until}: {_json({one.key: one.value})}" for one in former]
    facts = (f"thread: {_json(working_memory.chat)}", f"person: {_json(working_memory.user)}")
    group = group_lines(working_memory.group, lambda open_id, _: open_id, deps.prompt.now)
    return "\n".join([*facts, *remarks, *before, *group])


async def update_working_memory(
    deps: ToolDeps,
    scope: Literal["thread", "person"],
    patch: dict[str, Any],
    replaces: list[str] | None = None,
) -> ToolOutcome:
    """Keep facts that you are asked to remember. When one has changed (“no, it is now …”), set the
    same key anew.

    Args:
        scope: "thread" for what concerns this conversation or group, found by anybody who asks
            about it here; "person" for lasting facts about who asks.
        patch: Only the keys to set; null deletes a key for good. A key names its subject and what
            is said of it, such as handover_date.
        replaces: Ids of facts kept in this group that hold no more because of this.
    """
    if not patch:
        raise ToolFailed(
            "The patch is empty: give the keys to set, or null for keys to remove.", "no-facts"
        )
    if in_document(deps.context.chat_id):
        scope = "thread"  # nothing of a comment is told anywhere else
    if scope == "person" and not deps.context.speaks_for_self:
        raise ToolFailed(
            "Lasting facts of a person are changed only when they ask themselves. "
            'Nothing was changed. Use scope "thread" if it belongs to this conversation.',
            "facts-of-another",
        )
    replaced_ids = _replaced(deps, patch, replaces)
    for key in [key for key, value in patch.items() if value is None]:
        await _forget(deps, key, _SCOPES[scope])
    await deps.store.merge_working_memory(
        deps.context,
        scope=_SCOPES[scope],
        patch=patch,
        turn_id=deps.prompt.turn_id,
        replaces=replaced_ids,
    )
    # only what this call changed: a result is stored, and outlives the facts of other messages
    new_values = {key: value for key, value in patch.items() if value is not None}
    changes = [f"set {_json(new_values)}"] if new_values else []
    changes += [f"deleted {key}" for key, value in patch.items() if value is None]
    changes += [f"replaced {one}" for one in replaced_ids]
    return ToolOutcome(
        f"Successfully updated the working memory of the {scope}: {'; '.join(changes)}.",
        "facts-kept",
    )


def _replaced(
    deps: ToolDeps, patch: Mapping[str, Any], named_ids: Sequence[str] | None
) -> tuple[str, ...]:
    """The ids of the group's facts that the call replaces: those that the model `named_ids`, else
    those that the asker's own words replace. Raises `ToolFailed` for an id that nobody was
    shown."""
    facts_shown, author = deps.prompt.working_memory.group, deps.context.actor_id
    if not named_ids:
        asker_words = deps.exchange.own if deps.exchange else ""
        return replaced_facts(facts_shown, patch, statement=asker_words, author=author)
    replaceable_ids = {one.id for one in facts_shown if one.may_be_replaced_by(author)}
    if not deps.confirmed and (unknown := [one for one in named_ids if one not in replaceable_ids]):
        raise ToolFailed(
            f"{unknown[0]!r} is no fact that this can replace. Nothing was changed. Use only ids "
            "of facts kept in this group, or leave `replaces` out.",
            "no-such-fact",
        )
    return tuple(dict.fromkeys(named_ids))


async def forget_fact(deps: ToolDeps, key: str) -> ToolOutcome:
    """Delete one fact about the person who asks for good, with the messages that hold it (“forget
    that I …”, 忘掉……). Say what was deleted.

    Args:
        key: Its key in the working memory.
    """
    forgotten_facts = [one for scope in _SCOPES.values() for one in await _forget(deps, key, scope)]
    if not forgotten_facts:
        raise ToolFailed(
            "No fact of the person who asks is kept under this key. Nothing was deleted. Use "
            "read_working_memory to find the right key.",
            "no-such-fact",
        )
    fact_list = "; ".join(
        dict.fromkeys(f"{one.key}: {_text(one.value)}" for one in forgotten_facts)
    )
    return ToolOutcome(
        f"Successfully deleted for good: {fact_list}", "fact-forgotten", {"facts": fact_list}
    )


async def _forget(deps: ToolDeps, key: str, scope: Scope) -> list[Changed]:
    """What the sender kept, or others kept of them, under `key`: in this thread, or everywhere that
    can be read here."""
    context = deps.context
    own = replace(context, user_id=context.actor_id, user_scope_id=f"user:{context.actor_id}")
    facts = await deps.store.items.find(own, key, scope)
    forgotten_facts = [
        await deps.store.items.forget(own, "fact", one, key, turn_id=deps.prompt.turn_id)
        for one in facts
    ]
    return [one for one in forgotten_facts if one]


async def recall(deps: ToolDeps, query: str, scope: RecallScope | None = None, k: int = 5) -> str:
    """Search what was said to you earlier when the conversation does not hold it.

    Args:
        query: What to look for, with dates as the person said them.
        scope: Left out, what usually may be read here.
        k: How many passages, 1 to 10.
    """
    if deps.recall is None:
        raise ToolFailed("Earlier messages cannot be searched here. Say so.", "nothing-to-search")
    passages = min(max(k, 1), _MOST_PASSAGES)
    where = scope or usual_scope(deps.context)
    prompt = deps.prompt
    passages_found = await deps.recall(
        deps.context, query, where, passages, prompt.turn_id, prompt.asked_at
    )
    deps.passages += passages_found.found
    return passages_found.text or "Nothing that was said earlier matches. Do not guess."


def _text(value: object) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
