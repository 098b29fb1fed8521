"""Builds the outcomes of the tools for notes and their texts for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from bot.agents.tool_types import Fields, ToolOutcome, Wording
from bot.feishu.markup import quotable
from bot.text.languages import Catalogue, Language, join_list
from memory.tables.notes import Note, NoteChange

_CATALOGUE = Catalogue(__file__)
say = _CATALOGUE.say


def note_created(note: Note) -> ToolOutcome:
    tag_note = f" with tags: {', '.join(note.tags)}" if note.tags else ""
    return ToolOutcome(
        f"Successfully created note {_note_name(note)}{tag_note}. "
        "Remember this note ID for future reference in this conversation.",
        "note-created",
        _fields(note),
    )


def note_read(note: Note, changed_at: datetime) -> ToolOutcome:
    body = f"Text:\n{note.body}" if note.body else "It has no text."
    return ToolOutcome(
        f"Note {_describe_note(note)}; last changed {changed_at:%Y-%m-%d}. {body}",
        "note-read",
        {**_fields(note), "body": note.body},
    )


def notes_listed(notes: Sequence[Note], user_id: str) -> ToolOutcome:
    """What a list of notes tells the model that `user_id` talks with."""
    return _outcome_list(f"{_count(notes)}, oldest first:", "notes-listed", notes, user_id)


def notes_found(notes: Sequence[Note], user_id: str) -> ToolOutcome:
    return _outcome_list(f"{_count(notes)} found, best first:", "notes-found", notes, user_id)


def note_updated(change: NoteChange) -> ToolOutcome:
    note, changes = change.note, _changes(change)
    if not changes:
        sentence = f"Note {_describe_note(note)}; it is as asked already, nothing changed."
        return ToolOutcome(sentence, "note-unchanged", _fields(note))
    return ToolOutcome(
        f"Successfully updated note {_note_name(note)}. Changes: {'; '.join(changes)}.",
        "note-updated",
        {
            **_fields(note),
            "added": change.added,
            "removed": change.removed,
            "old_title": change.old_title,
            "body_changed": change.body_changed,
        },
    )


def note_deleted(title: str, note_id: str) -> ToolOutcome:
    return ToolOutcome(
        f'Successfully deleted note "{title}" (ID: {note_id}). Its ID is no longer valid.',
        "note-deleted",
        {"title": title},
    )


def note_shared(note: Note) -> ToolOutcome:
    """Once its owner has confirmed it."""
    return ToolOutcome(
        f'everyone in this chat can read "{note.title}".', "note-shared", _fields(note)
    )


def note_not_shared(note: Note) -> ToolOutcome:
    return ToolOutcome(
        f"Note {_note_name(note)} is no longer shared: it is read only where it was written.",
        "note-not-shared",
        _fields(note),
    )


def _outcome_list(intro: str, kind: str, notes: Sequence[Note], user_id: str) -> ToolOutcome:
    lines = (_outcome_line(number, note, user_id) for number, note in enumerate(notes, start=1))
    fields = [
        {**_fields(note), "by_another": note.user_id != user_id, "by_meaning": note.by_meaning}
        for note in notes
    ]
    return ToolOutcome("\n".join((intro, *lines)), kind, {"notes": fields})


def _outcome_line(number: int, note: Note, user_id: str) -> str:
    others = "" if note.user_id == user_id else ", by another person"
    alike = ", has none of the words but may be alike in meaning" if note.by_meaning else ""
    return f"{number}. {_describe_note(note)}{others}{alike}"


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


def _note_name(note: Note) -> str:
    return f'"{note.title}" (ID: {note.id})'


def _describe_note(note: Note) -> str:
    return f"{_note_name(note)}, tags: {', '.join(note.tags) or 'none'}"


def _count(notes: Sequence[Note]) -> str:
    return "1 note" if len(notes) == 1 else f"{len(notes)} notes"


def closed_document_outcome() -> ToolOutcome:
    return ToolOutcome("Not everybody here can open its document.", "closed-document", ok=False)


def _creation_text(note: Fields, language: Language) -> str:
    title = quotable(note["title"])
    if not note["tags"]:
        return say("note-created", language, title=title)
    return say("note-created-tagged", language, title=title, tags=_tags(note, language))


def _read(note: Fields, language: Language) -> str:
    tags = _tags(note, language)
    tag_note = say("tagged", language, tags=tags) if tags else say("untagged", language)
    title, body = quotable(note["title"]), note["body"]
    if not body:
        return say("note-without-text", language, title=title, tagged=tag_note)
    return say("note-read", language, title=title, tagged=tag_note, body=body)


def _tags_of(note: Fields, language: Language) -> str:
    title = quotable(note["title"])
    if not note["tags"]:
        return say("no-tags-of-note", language, title=title)
    return say("tags-of-note", language, title=title, tags=_tags(note, language))


def _update_text(change: Fields, language: Language) -> str:
    title, old_title = quotable(change["title"]), quotable(change["old_title"])
    changes = []
    for key, tags in (("tags-added", change["added"]), ("tags-removed", change["removed"])):
        if tags:
            quoted = join_list((f"“{quotable(tag)}”" for tag in tags), language)
            changes.append(say(key, language, n=len(tags), tags=quoted))
    if title != old_title:
        changes.append(say("renamed", language, title=title))
    if change["body_changed"]:
        changes.append(say("rewritten", language))
    change_list = ("；" if language == "zh" else "; ").join(changes)
    return say("note-updated", language, title=old_title, changes=change_list)


def _list_text(fields: Fields, language: Language) -> str:
    return _with_lines(say("notes-listed", language, n=len(fields["notes"])), fields, language)


def _search_text(fields: Fields, language: Language) -> str:
    return _with_lines(say("notes-found", language, n=len(fields["notes"])), fields, language)


def _with_lines(intro: str, fields: Fields, language: Language) -> str:
    lines = (f"{n}. {_line(note, language)}" for n, note in enumerate(fields["notes"], 1))
    return "\n".join((intro, "", *lines))


def _line(note: Fields, language: Language) -> str:
    tag_note = say("line-tags", language, tags=_tags(note, language)) if note["tags"] else ""
    others = say("by-another", language) if note["by_another"] else ""
    alike = say("alike", language) if note["by_meaning"] else ""
    return f"“{quotable(note['title'])}”{tag_note}{others}{alike}"


def _tags(note: Fields, language: Language) -> str:
    return _join_tags(note["tags"], language)


def _join_tags(tags: Sequence[str], language: Language) -> str:
    return join_list(map(quotable, tags), language)


WORDING = Wording(
    _CATALOGUE,
    {
        "note-created": _creation_text,
        "note-read": _read,
        "note-tags": _tags_of,
        "note-updated": _update_text,
        "notes-listed": _list_text,
        "notes-found": _search_text,
    },
)
