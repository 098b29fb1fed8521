"""Tools for notes. Results are sentences that carry the id, for later turns to use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from bot.agents.prompts.drawn_on import note_sources
from bot.agents.tools.confirming import SHARE_NOTE, wait_for_confirmation
from bot.agents.tools.deps import ToolDeps
from bot.agents.tools.note_outcomes import WORDING
from bot.agents.tools.outcomes import Outcome
from bot.agents.tools.tool import Tool, ToolFailed, tool
from memory.errors import NoteNotFound
from memory.kept.notes import Note, NoteChange, note_id, note_source

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
) -> Outcome:
    """Create a note for the person who asks.

    Args:
        title: At most 200 characters.
        body: Its text, at most 20000 characters.
        tags: Up to 20, each at most 40 characters.
    """
    context, turn_id = deps.context, deps.prompt.turn_id
    # The same note of the same message is made once, however often the turn is repeated.
    made = note_id(turn_id, title, body) if turn_id else None
    note = await deps.notes.create(
        context, title=title, body=body, tags=tags or [], id=made, turn_id=turn_id
    )
    tagged = f" with tags: {', '.join(note.tags)}" if note.tags else ""
    return Outcome(
        f"Successfully created note {_named(note)}{tagged}. "
        "Remember this note ID for future reference in this conversation.",
        "note-created",
        _fields(note),
    )


async def get_note(deps: ToolDeps, note_id: str) -> Outcome:
    """Read one note with its whole text.

    Args:
        note_id: From the note registry or an earlier result.
    """
    note = await deps.notes.get(deps.context, note_id)
    _given(note)
    body = f"Text:\n{note.body}" if note.body else "It has no text."
    changed = datetime.fromisoformat(note.updated_at).astimezone(deps.prompt.now.tzinfo)
    return Outcome(
        f"Note {_described(note)}; last changed {changed:%Y-%m-%d}. {body}",
        "note-read",
        {**_fields(note), "body": note.body},
    )


async def list_notes(deps: ToolDeps, tags: list[str] | None = None) -> Outcome:
    """List the notes of the person who asks and those shared with this chat, oldest first.

    Args:
        tags: Only notes with all of these.
    """
    notes = await deps.notes.list(deps.context, tags=tags or [], limit=_LISTED)
    _given(*notes)
    if not notes and tags:
        return Outcome("There are no notes with these tags.", "no-notes-tagged", {"tags": tags})
    if not notes:
        return Outcome("There are no notes yet.", "no-notes")
    user_id = deps.context.actor_id
    return Outcome(listed(notes, user_id), "notes-listed", _lines_of(notes, user_id))


def listed(notes: Sequence[Note], user_id: str) -> str:
    """What a list of notes tells the model that `user_id` talks with."""
    return f"{_count(notes)}, oldest first:\n" + _lines(notes, user_id)


async def search_notes(deps: ToolDeps, query: str) -> Outcome:
    """Find notes of anybody here by words, best match first.

    Args:
        query: A few words of title, tags or text.
    """
    likeness = await deps.liken(query) if deps.liken else None
    notes = await deps.notes.search(deps.context, query, limit=_FOUND, likeness=likeness)
    _given(*notes)
    if not notes:
        return Outcome(
            f"No note matches {query!r}. Try other words, or list_notes.", "no-note-matches"
        )
    user_id = deps.context.actor_id
    found = f"{_count(notes)} found, best first:\n" + _lines(notes, user_id)
    return Outcome(found, "notes-found", _lines_of(notes, user_id))


async def update_note(
    deps: ToolDeps,
    note_id: str,
    title: str | None = None,
    body: str | None = None,
    add_tags: list[str] | None = None,
    remove_tags: list[str] | None = None,
) -> Outcome:
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
    changes = _changes(change)
    if not changes:
        return Outcome(
            f"Note {_described(change.note)}; it is as asked already, nothing changed.",
            "note-unchanged",
            _fields(change.note),
        )
    return Outcome(
        f"Successfully updated note {_named(change.note)}. Changes: {'; '.join(changes)}. "
        f"Tags now: {', '.join(change.note.tags) or 'none'}.",
        "note-updated",
        {
            **_fields(change.note),
            "added": change.added,
            "removed": change.removed,
            "old_title": change.old_title,
            "body_changed": change.body_changed,
        },
    )


async def delete_note(deps: ToolDeps, note_id: str) -> Outcome:
    """Delete a note for good, with the message it came from; only when asked for exactly this.

    Args:
        note_id: Its ID.
    """
    gone = await deps.store.items.forget(deps.context, "note", note_id, turn_id=deps.prompt.turn_id)
    if gone is None:
        raise NoteNotFound("no note of this person has this id")
    return Outcome(
        f'Successfully deleted note "{gone.key}" (ID: {note_id}). Its ID is no longer valid.',
        "note-deleted",
        {"title": gone.key},
    )


async def share_note(deps: ToolDeps, note_id: str, shared: bool = True) -> Outcome:
    """Let everyone in this chat read a note, once its owner confirms it.

    Args:
        note_id: Its ID.
        shared: False ends that, at once.
    """
    context = deps.context
    if not shared:
        note = await deps.notes.share(context, note_id, shared=False)
        return Outcome(
            f"Note {_named(note)} is no longer shared: it is read only where it was written.",
            "note-not-shared",
            _fields(note),
        )
    note = await deps.notes.get(context, note_id)
    if note.user_id != context.actor_id:
        raise ToolFailed(
            "Only its owner can share this note. Nothing was changed. Say so.", "not-the-owner"
        )
    # Others' words in the prompt may have asked for it: only the owner's own press opens a note.
    return wait_for_confirmation(SHARE_NOTE, {"note_id": note.id, "title": note.title}, deps)


def opened(note: Note) -> Outcome:
    """What came of sharing a note, once its owner has confirmed it."""
    return Outcome(f'everyone in this chat can read "{note.title}".', "note-shared", _fields(note))


def _given(*notes: Note) -> None:
    note_sources(note_source(note.id) for note in notes)


def _changes(change: NoteChange) -> list[str]:
    said = []
    if change.added:
        said.append(f"added tags: {', '.join(change.added)}")
    if change.removed:
        said.append(f"removed tags: {', '.join(change.removed)}")
    if change.note.title != change.old_title:
        said.append(f'title changed from "{change.old_title}" to "{change.note.title}"')
    if change.body_changed:
        said.append("text replaced")
    return said


def _fields(note: Note) -> dict[str, Any]:
    return {"id": note.id, "title": note.title, "tags": note.tags}


def _lines_of(notes: Iterable[Note], user_id: str) -> dict[str, Any]:
    return {
        "notes": [
            {
                **_fields(note),
                "by_another": note.user_id != user_id,
                "by_meaning": note.by_meaning,
            }
            for note in notes
        ]
    }


def _named(note: Note) -> str:
    return f'"{note.title}" (ID: {note.id})'


def _described(note: Note) -> str:
    return f"{_named(note)}, tags: {', '.join(note.tags) or 'none'}"


def _lines(notes: Iterable[Note], user_id: str) -> str:
    return "\n".join(
        f"{number}. {_described(note)}"
        + ("" if note.user_id == user_id else ", by another person")
        + (", has none of the words but may be alike in meaning" if note.by_meaning else "")
        for number, note in enumerate(notes, start=1)
    )


def _count(notes: Sequence[Note]) -> str:
    return "1 note" if len(notes) == 1 else f"{len(notes)} notes"
