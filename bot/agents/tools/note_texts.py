"""What people are told of the outcomes of the tools for notes. Pure."""

from __future__ import annotations

from bot.agents.tool_types.outcomes import Fields, Wording
from bot.text.catalogues import Catalogue
from bot.text.languages import Language, join_list

_CATALOGUE = Catalogue(__file__)
say = _CATALOGUE.say


def _created(note: Fields, language: Language) -> str:
    title = note["title"]
    if not note["tags"]:
        return say("note-created", language, title=title)
    return say("note-created-tagged", language, title=title, tags=_tags(note, language))


def _read(note: Fields, language: Language) -> str:
    tags = _tags(note, language)
    tag_note = say("tagged", language, tags=tags) if tags else say("untagged", language)
    title, body = note["title"], note["body"]
    if not body:
        return say("note-without-text", language, title=title, tagged=tag_note)
    return say("note-read", language, title=title, tagged=tag_note, body=body)


def _tags_of(note: Fields, language: Language) -> str:
    title = note["title"]
    if not note["tags"]:
        return say("no-tags-of-note", language, title=title)
    return say("tags-of-note", language, title=title, tags=_tags(note, language))


def _updated(change: Fields, language: Language) -> str:
    title, old_title = change["title"], change["old_title"]
    changes = []
    if change["added"]:
        changes.append(say("tags-added", language, tags=join_list(change["added"], language)))
    if change["removed"]:
        changes.append(say("tags-removed", language, tags=join_list(change["removed"], language)))
    if title != old_title:
        changes.append(say("renamed", language, old_title=old_title, title=title))
    if change["body_changed"]:
        changes.append(say("rewritten", language))
    change_list = ("；" if language == "zh" else "; ").join(changes)
    return say("note-updated", language, title=title, changes=change_list)


def _listed(fields: Fields, language: Language) -> str:
    return _with_lines(say("notes-listed", language, n=len(fields["notes"])), fields, language)


def _found(fields: Fields, language: Language) -> str:
    return _with_lines(say("notes-found", language, n=len(fields["notes"])), fields, language)


def _with_lines(intro: str, fields: Fields, language: Language) -> str:
    lines = (f"{n}. {_line(note, language)}" for n, note in enumerate(fields["notes"], 1))
    return "\n".join((intro, "", *lines))


def _line(note: Fields, language: Language) -> str:
    tag_note = say("line-tags", language, tags=_tags(note, language)) if note["tags"] else ""
    others = say("by-another", language) if note["by_another"] else ""
    alike = say("alike", language) if note["by_meaning"] else ""
    return f"{note['title']}{tag_note}{others}{alike}"


def _tags(note: Fields, language: Language) -> str:
    return join_list(note["tags"], language)


WORDING = Wording(
    _CATALOGUE,
    {
        "note-created": _created,
        "note-read": _read,
        "note-tags": _tags_of,
        "note-updated": _updated,
        "notes-listed": _listed,
        "notes-found": _found,
    },
)
