"""Tools for notes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bot.agents.prompts.drawn_on import note_sources
from bot.agents.tool_types.outcomes import ToolOutcome
from bot.agents.tool_types.tool import Tool, ToolFailed, tool
from bot.agents.tools import note_outcomes
from bot.agents.tools.confirming import SHARE_NOTE, wait_for_confirmation
from bot.agents.tools.deps import ToolDeps
from bot.agents.tools.note_texts import WORDING
from memory.errors import NoteNotFound
from memory.tables.notes import Note, note_id, note_source

_LISTED = 50
_FOUND = 10


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
    return note_outcomes.created(note)


async def get_note(deps: ToolDeps, note_id: str) -> ToolOutcome:
    """Read one note with its whole text.

    Args:
        note_id: From the note registry or an earlier result.
    """
    note = await deps.notes.get(deps.context, note_id)
    _given(note)
    changed_at = datetime.fromisoformat(note.updated_at).astimezone(deps.prompt.now.tzinfo)
    return note_outcomes.read(note, changed_at)


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
    return note_outcomes.listed(notes, deps.context.actor_id)


async def search_notes(deps: ToolDeps, query: str) -> ToolOutcome:
    """Find notes of anybody here by words, best match first.

    Args:
        query: A few words of title, tags or text.
    """
    likeness = await deps.liken(query) if deps.liken else None
    notes = await deps.notes.search(deps.context, query, limit=_FOUND, likeness=likeness)
    _given(*notes)
    if not notes:
        return ToolOutcome(
            f"No note matches {query!r}. Try other words, or list_notes.", "no-note-matches"
        )
    return note_outcomes.found(notes, deps.context.actor_id)


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
    return note_outcomes.updated(change)


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
    return note_outcomes.deleted(counts.key, note_id)


async def share_note(deps: ToolDeps, note_id: str, shared: bool = True) -> ToolOutcome:
    """Let everyone in this chat read a note, once its owner confirms it.

    Args:
        note_id: Its ID.
        shared: False ends that, at once.
    """
    context = deps.context
    if not shared:
        note = await deps.notes.share(context, note_id, is_shared=False)
        return note_outcomes.not_shared(note)
    note = await deps.notes.get(context, note_id)
    if note.user_id != context.actor_id:
        raise ToolFailed(
            "Only its owner can share this note. Nothing was changed. Say so.", "not-the-owner"
        )
    # Others' words in the prompt may have asked for it: only the owner's own press opens a note.
    return wait_for_confirmation(SHARE_NOTE, {"note_id": note.id, "title": note.title}, deps)


def _given(*notes: Note) -> None:
    note_sources(note_source(note.id) for note in notes)
