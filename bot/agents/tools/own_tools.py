"""Defines the tools that the bot always has: working memory, notes, follow-ups and the time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bot.agents.prompts.prompt import group_lines
from bot.agents.running_turns import note_sources
from bot.agents.tool_types import Tool, ToolFailed, ToolOutcome, tool
from bot.agents.tools import note_texts
from bot.agents.tools.confirming import SHARE_NOTE, wait_for_confirmation
from bot.agents.tools.deps import ToolDeps
from bot.agents.tools.note_texts import WORDING
from bot.text.follow_ups import MOST_COLUMNS, questions_of
from memory.errors import NoteNotFound
from memory.models import Scope
from memory.recall.changes import replaced_facts
from memory.recall.passages import RecallScope, usual_scope
from memory.scope import is_document_chat
from memory.tables.items import ChangedItem
from memory.tables.notes import Note, note_id, note_source

_SCOPES: dict[str, Scope] = {"thread": "chat", "person": "user"}
_MOST_PASSAGES = 10

_LISTED = 50
_MOST_FOUND = 10


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
    if is_document_chat(deps.context.chat_id):
        scope = "thread"  # nothing of a comment is told anywhere else
    if scope == "person" and not deps.context.speaks_for_self:
        raise ToolFailed(
            "Lasting facts of a person are changed only when they ask themselves. "
            'Nothing was changed. Use scope "thread" if it belongs to this conversation.',
            "facts-of-another",
        )
    replaced_ids = _replaced_fact_ids(deps, patch, replaces)
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


def _replaced_fact_ids(
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
    if not deps.is_confirmed and (
        unknown := [one for one in named_ids if one not in replaceable_ids]
    ):
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
    facts = list(dict.fromkeys((one.key, _text(one.value)) for one in forgotten_facts))
    fact_list = "; ".join(f"{key}: {value}" for key, value in facts)
    return ToolOutcome(
        f"Successfully deleted for good: {fact_list}",
        "fact-forgotten",
        {"facts": facts},
    )


async def _forget(deps: ToolDeps, key: str, scope: Scope) -> list[ChangedItem]:
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


def note_tools() -> list[Tool]:
    """The tools, each run alone: the order of creation is the order in which the model asked."""
    functions: tuple[tuple[Any, bool], ...] = (
        (create_note, False),
        (get_note, True),
        (list_notes, True),
        (search_notes, True),
        (update_note, False),
        (delete_note, False),
        (share_note, False),
    )
    return [
        tool(function, sequential=True, reads=reads, wording=WORDING)
        for function, reads in functions
    ]


async def create_note(
    deps: ToolDeps, title: str, body: str = "", tags: list[str] | None = None
) -> ToolOutcome:
    """Create a note for the person who asks.

    Args:
        title: At most 200 characters.
        body: Its text, at most 20000 characters.
        tags: Up to 20, each at most 40 characters.
    """
    context, turn_id = deps.context, deps.prompt.turn_id
    # The same note of the same message is made once, however often the turn is repeated.
    new_id = note_id(turn_id, title, body) if turn_id else None
    note = await deps.notes.create(
        context, title=title, body=body, tags=tags or [], id=new_id, turn_id=turn_id
    )
    return note_texts.note_created(note)


async def get_note(deps: ToolDeps, note_id: str) -> ToolOutcome:
    """Read one note with its whole text.

    Args:
        note_id: From the note registry or an earlier result.
    """
    note = await deps.notes.get(deps.context, note_id)
    _given(note)
    changed_at = datetime.fromisoformat(note.updated_at).astimezone(deps.prompt.now.tzinfo)
    return note_texts.note_read(note, changed_at)


async def list_notes(deps: ToolDeps, tags: list[str] | None = None) -> ToolOutcome:
    """List the notes of the person who asks and those shared with this chat, oldest first.

    Args:
        tags: Only notes with all of these.
    """
    notes = await deps.notes.list(deps.context, tags=tags or [], limit=_LISTED)
    _given(*notes)
    if not notes and tags:
        return ToolOutcome("There are no notes with these tags.", "no-notes-tagged", {"tags": tags})
    if not notes:
        return ToolOutcome("There are no notes yet.", "no-notes")
    return note_texts.notes_listed(notes, deps.context.actor_id)


async def search_notes(deps: ToolDeps, query: str) -> ToolOutcome:
    """Find notes of anybody here by words, best match first.

    Args:
        query: A few words of title, tags or text.
    """
    likeness = await deps.liken(query) if deps.liken else None
    notes = await deps.notes.search(deps.context, query, limit=_MOST_FOUND, likeness=likeness)
    _given(*notes)
    if not notes:
        return ToolOutcome(
            f"No note matches {query!r}. Try other words, or list_notes.", "no-note-matches"
        )
    return note_texts.notes_found(notes, deps.context.actor_id)


async def update_note(
    deps: ToolDeps,
    note_id: str,
    title: str | None = None,
    body: str | None = None,
    add_tags: list[str] | None = None,
    remove_tags: list[str] | None = None,
) -> ToolOutcome:
    """Change a note. What is not given stays.

    Args:
        note_id: Its ID.
        title: New title.
        body: New text, in place of the old one.
        add_tags: Tags to add.
        remove_tags: Tags to remove.
    """
    if title is None and body is None and not add_tags and not remove_tags:
        raise ToolFailed(
            "Nothing to change was given: give title, body, add_tags or remove_tags.",
            "nothing-to-change",
        )
    change = await deps.notes.update(
        deps.context,
        note_id,
        title=title,
        body=body,
        add_tags=add_tags or [],
        remove_tags=remove_tags or [],
        turn_id=deps.prompt.turn_id,
    )
    _given(change.note)
    return note_texts.note_updated(change)


async def delete_note(deps: ToolDeps, note_id: str) -> ToolOutcome:
    """Delete a note for good, with the message it came from; only when asked for exactly this.

    Args:
        note_id: Its ID.
    """
    counts = await deps.store.items.forget(
        deps.context, "note", note_id, turn_id=deps.prompt.turn_id
    )
    if counts is None:
        raise NoteNotFound("no note of this person has this id")
    return note_texts.note_deleted(counts.key, note_id)


async def share_note(deps: ToolDeps, note_id: str, shared: bool = True) -> ToolOutcome:
    """Let everyone in this chat read a note, once its owner confirms it.

    Args:
        note_id: Its ID.
        shared: False ends that, at once.
    """
    context = deps.context
    if not shared:
        note = await deps.notes.share(context, note_id, is_shared=False)
        return note_texts.note_not_shared(note)
    note = await deps.notes.get(context, note_id)
    if note.user_id != context.actor_id:
        raise ToolFailed(
            "Only its owner can share this note. Nothing was changed. Say so.", "not-the-owner"
        )
    # Others' words in the prompt may have asked for it: only the owner's own press opens a note.
    return wait_for_confirmation(SHARE_NOTE, {"note_id": note.id, "title": note.title}, deps)


def _given(*notes: Note) -> None:
    note_sources(note_source(note.id) for note in notes)


def conversation_tools() -> list[Tool]:
    return [tool(suggest_follow_ups, sequential=True, reads=True), tool(current_time, reads=True)]


async def suggest_follow_ups(deps: ToolDeps, questions: list[str]) -> str:
    """Show up to three likely next questions as buttons, when they help; never list them in the
    answer.

    Args:
        questions: Short, in the person's language and voice.
    """
    deps.follow_ups[:] = questions_of(questions)
    if not deps.follow_ups:
        raise ToolFailed(
            f"No question fits on a button: at most {MOST_COLUMNS} characters "
            f"({MOST_COLUMNS // 2} Chinese ones), and no command."
        )
    return (
        f"{len(deps.follow_ups)} follow-up questions will be shown as buttons. "
        "Do not write them into your answer."
    )


async def current_time(deps: ToolDeps, timezone: str | None = None) -> str:
    """The date and time now.

    Args:
        timezone: An IANA name such as Asia/Shanghai; left out, the bot's own.
    """
    now = deps.prompt.now
    if timezone:
        try:
            now = now.astimezone(ZoneInfo(timezone))
        except (ZoneInfoNotFoundError, ValueError, OSError) as exc:
            raise ToolFailed(
                f"{timezone!r} is no known time zone; use a name such as Asia/Shanghai."
            ) from exc
    return f"{now:%A, %Y-%m-%d %H:%M} ({now.tzname()}, UTC{now:%z})"
