"""What came of the tools for notes, in sentences that carry the id for later turns. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from bot.agents.tool_types.outcomes import ToolOutcome
from memory.tables.notes import Note, NoteChange


def created(note: Note) -> ToolOutcome:
    tag_note = f" with tags: {', '.join(note.tags)}" if note.tags else ""
    return ToolOutcome(
        f"Successfully created note {_named(note)}{tag_note}. "
        "Remember this note ID for future reference in this conversation.",
        "note-created",
        _fields(note),
    )


def read(note: Note, changed_at: datetime) -> ToolOutcome:
    body = f"Text:\n{note.body}" if note.body else "It has no text."
    return ToolOutcome(
        f"Note {_described(note)}; last changed {changed_at:%Y-%m-%d}. {body}",
        "note-read",
        {**_fields(note), "body": note.body},
    )


def listed(notes: Sequence[Note], user_id: str) -> ToolOutcome:
    """What a list of notes tells the model that `user_id` talks with."""
    return _list(f"{_count(notes)}, oldest first:", "notes-listed", notes, user_id)


def found(notes: Sequence[Note], user_id: str) -> ToolOutcome:
    return _list(f"{_count(notes)} found, best first:", "notes-found", notes, user_id)


def updated(change: NoteChange) -> ToolOutcome:
    note, changes = change.note, _changes(change)
    if not changes:
        sentence = f"Note {_described(note)}; it is as asked already, nothing changed."
        return ToolOutcome(sentence, "note-unchanged", _fields(note))
    return ToolOutcome(
        f"Successfully updated note {_named(note)}. Changes: {'; '.join(changes)}.",
        "note-updated",
        {
            **_fields(note),
            "added": change.added,
            "removed": change.removed,
            "old_title": change.old_title,
            "body_changed": change.body_changed,
        },
    )


def deleted(title: str, note_id: str) -> ToolOutcome:
    return ToolOutcome(
        f'Successfully deleted note "{title}" (ID: {note_id}). Its ID is no longer valid.',
        "note-deleted",
        {"title": title},
    )


def shared(note: Note) -> ToolOutcome:
    """Once its owner has confirmed it."""
    return ToolOutcome(
        f'everyone in this chat can read "{note.title}".', "note-shared", _fields(note)
    )


def not_shared(note: Note) -> ToolOutcome:
    return ToolOutcome(
        f"Note {_named(note)} is no longer shared: it is read only where it was written.",
        "note-not-shared",
        _fields(note),
    )


def _list(intro: str, kind: str, notes: Sequence[Note], user_id: str) -> ToolOutcome:
    lines = (_line(number, note, user_id) for number, note in enumerate(notes, start=1))
    fields = [
        {**_fields(note), "by_another": note.user_id != user_id, "by_meaning": note.by_meaning}
        for note in notes
    ]
    return ToolOutcome("\n".join((intro, *lines)), kind, {"notes": fields})


def _line(number: int, note: Note, user_id: str) -> str:
    others = "" if note.user_id == user_id else ", by another person"
    alike = ", has none of the words but may be alike in meaning" if note.by_meaning else ""
    return f"{number}. {_described(note)}{others}{alike}"


def _changes(change: NoteChange) -> list[str]:
    changes = []
    if change.added:
        changes.append(f"added tags: {', '.join(change.added)}")
    if change.removed:
        changes.append(f"removed tags: {', '.join(change.removed)}")
    if change.note.title != change.old_title:
        changes.append(f'title changed to "{change.note.title}"')
    if change.body_changed:
        changes.append("text replaced")
    return changes


def _fields(note: Note) -> dict[str, Any]:
    return {"id": note.id, "title": note.title, "tags": note.tags}


def _named(note: Note) -> str:
    return f'"{note.title}" (ID: {note.id})'


def _described(note: Note) -> str:
    return f"{_named(note)}, tags: {', '.join(note.tags) or 'none'}"


def _count(notes: Sequence[Note]) -> str:
    return "1 note" if len(notes) == 1 else f"{len(notes)} notes"


def of_closed_document() -> ToolOutcome:
    return ToolOutcome("Not everybody here can open its document.", "closed-document", ok=False)
