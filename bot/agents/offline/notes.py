"""Carries out commands about notes for the offline model, and holds the sentences that the model
says. Pure.

All it knows of notes it reads in its prompt: the registry, earlier tool contexts, and the results
of this turn's own calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from bot.agents.offline.choosing import (
    LAST,
    ListedItem,
    choose_together,
    list_position,
    names_all,
    names_several,
    naming_words,
    only_numbers,
)
from bot.agents.offline.commands import NoteRequest
from bot.agents.prompts.prompt import REGISTRY
from bot.agents.prompts.tool_context import MOST_USED, NAMED_NOTE
from bot.agents.tool_types import ToolOutcome, Wording
from bot.agents.tools.note_texts import WORDING
from bot.text.languages import Catalogue, Language, join_list
from memory.tables.notes import search_terms

say = Catalogue(__file__).say

_ROW = re.compile(
    r"^\|\s*(\d+)\s*\|([^|\n]*)\|\s*(note_[a-z2-7]+)\s*\|[^\n]*\|\s*(\d+|-)\s*\|$",
    re.MULTILINE,
)
_NOTE_ELSEWHERE = re.compile(
    r"^(?:(\d+)\.|-) \"(.{1,200})\" \(ID: (note_[a-z2-7]+)\)$", re.MULTILINE
)
_SHOWN_NOTE = re.compile(r"(?<=[:,] )(\d+)\. (note_[a-z2-7]+)(?=,|$)", re.MULTILINE)
_MOST_AT_ONCE = 8  # things done in one turn
_DELETED = "deleted note "
_CHANGED = frozenset({"note-updated", "note-deleted"})
_SEVERAL = re.compile(
    r"\b(?:all|every|both|these|those|notes)\b|所有|全部|每一?[条个篇]|[那这]些|(?<!第)[两三几][条个篇]"
)


@dataclass(frozen=True, slots=True)
class KnownNote:
    """A note the prompt speaks of. `recency` 1 was used last; 0: it was only listed.

    `shown_place` is its place in the list that a card showed last; 0: it was not in it. `ordinal`
    is below 0 where nothing says in which order it was created.
    """

    id: str
    title: str
    ordinal: int
    recency: int
    shown_place: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """A tool to call next."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Returned:
    """What a tool of this turn gave back; `wording` tells people of it."""

    tool: str
    outcome: ToolOutcome
    wording: Wording = WORDING

    @property
    def text(self) -> str:
        return str(self.outcome.result)

    @property
    def ok(self) -> bool:
        return self.outcome.ok

    def tell(self, language: Language) -> str:
        return self.wording.tell(self.outcome, language)


def each_in_turn(
    calls: Sequence[Call], results: Sequence[Returned], list_rest: Call, language: Language
) -> Call | str:
    """One call after the other, as many as one turn may, and then the list of what is left."""
    if len(results) < min(len(calls), _MOST_AT_ONCE):
        return calls[len(results)]
    if len(results) == _MOST_AT_ONCE < len(calls):
        return list_rest
    return "\n".join(one.tell(language) for one in results)


def known_notes(instructions: str, answers: Iterable[str]) -> tuple[KnownNote, ...]:
    """The notes of the registry; without one, those of the tool contexts in earlier answers."""
    _, _, after = instructions.partition(REGISTRY)
    rows = _ROW.findall(after)
    if rows:
        places = {id: int(place) for place, id in _SHOWN_NOTE.findall(after)}
        return tuple(
            KnownNote(
                id, title.strip(), int(ordinal), int(recency.strip("-") or 0), places.get(id, 0)
            )
            for ordinal, title, id, recency in rows
        )
    return _from_elsewhere(after) or _from_contexts(answers)


def found_notes(search: ToolOutcome) -> tuple[KnownNote, ...]:
    """The notes that a search found, best first."""
    rows = enumerate(search.fields.get("notes", ()), start=1)
    return tuple(KnownNote(note["id"], note["title"], place, place) for place, note in rows)


def next_note_call(
    note_request: NoteRequest, notes: Sequence[KnownNote], *, has_searched: bool
) -> Call | None:
    """The call that carries out `note_request`; None when nothing that is known fits.

    A note named by words that are not among the known ones is searched for first.
    """
    match note_request.kind:
        case "make":
            title, body, tags = note_request.title, note_request.body, list(note_request.tags)
            return Call("create_note", {"title": title, "body": body, "tags": tags})
        case "list":
            return Call("list_notes", {})
        case "find":
            return Call("search_notes", {"query": note_request.title})
    if is_several(note_request.ref):
        return None
    candidates = notes_meant_by(note_request.ref, notes)
    if not candidates:
        words = " ".join(search_terms(naming_words(note_request.ref)))
        return Call("search_notes", {"query": words}) if words and not has_searched else None
    if _named_alike(note_request.ref, candidates):
        return None
    return _on_note(note_request, candidates[0].id)


def is_several(ref: str) -> bool:
    """Whether `ref` means more than one note: “both notes”, “notes 1 and 3”, 全部笔记."""
    return bool(_SEVERAL.search(ref)) or names_several(ref)


def delete_several(
    note_request: NoteRequest,
    results: Sequence[Returned],
    notes: Sequence[KnownNote],
    now: datetime,
) -> Call | str | None:
    """The next call that deletes the notes that are meant, once they are listed, or the answer.
    None if only one is meant."""
    if not results:
        return Call("list_notes", {})
    if not results[0].ok:
        return results[0].tell(note_request.language)
    rows = results[0].outcome.fields.get("notes", ())
    shown_notes = sorted(
        (note for note in notes if note.shown_place), key=lambda note: note.shown_place
    )
    all_items = [ListedItem(one["id"], one["title"]) for one in rows]
    shown_items = [ListedItem(note.id, note.title) for note in shown_notes]
    items = shown_items if shown_notes and only_numbers(note_request.ref) else all_items
    chosen_items = choose_together(note_request.ref, items, now)
    if chosen_items is None:
        return None
    if not chosen_items:
        key = "which-note-is-here" if all_items else "which-note"
        titles = join_list([one.text for one in all_items], note_request.language)
        return say(key, note_request.language, titles=titles)
    if names_all(note_request.ref) and len(chosen_items) > 1:
        titles = join_list([one.text for one in chosen_items], note_request.language)
        return say("not-all-at-once", note_request.language, titles=titles)
    calls = [Call("delete_note", {"note_id": one.id}) for one in chosen_items]
    return each_in_turn(calls, results[1:], Call("list_notes", {}), note_request.language)


def notes_meant_by(ref: str, notes: Sequence[KnownNote]) -> list[KnownNote]:
    """The notes `ref` can mean, likeliest first: by position, by title, else by recency.

    A position counts in the list that a card showed last, if there is one. By title several mean
    that it says too little.
    """
    in_order = sorted(notes, key=lambda note: note.ordinal)
    if place := list_position(ref, LAST):
        shown_notes = sorted(
            (note for note in notes if note.shown_place), key=lambda note: note.shown_place
        )
        if place == LAST:
            return (shown_notes or in_order)[-1:]
        return [
            note
            for note in in_order
            if place == (note.shown_place if shown_notes else note.ordinal)
        ]
    recent = sorted(notes, key=lambda note: (note.recency == 0, note.recency, -note.ordinal))
    words = set(search_terms(naming_words(ref)))
    if not words:
        return recent
    terms = {note.id: set(search_terms(note.title)) for note in notes}
    if same := [note for note in recent if terms[note.id] == words]:
        return same
    best = max((len(words & title) for title in terms.values()), default=0)
    return [note for note in recent if best and len(words & terms[note.id]) == best]


def note_answer(
    note_request: NoteRequest, tool_result: Returned, notes: Sequence[KnownNote]
) -> str:
    """What a person is told after the tool that was to carry out `note_request`."""
    language = note_request.language
    if note_request.kind == "tags" and tool_result.outcome.kind == "note-read":
        tool_result = replace(tool_result, outcome=replace(tool_result.outcome, kind="note-tags"))
    answer = tool_result.tell(language)
    if not note_request.ref or tool_result.outcome.kind not in _CHANGED:
        return answer
    others = [note.title for note in notes_meant_by(note_request.ref, notes)[1:4]]
    titles = join_list(others, language)
    return answer + (say("others-too", language, titles=titles) if others else "")


def note_question_back(
    note_request: NoteRequest, notes: Sequence[KnownNote], *, has_searched: bool = False
) -> str:
    """The question back when nothing that is known fits, or too much."""
    if is_several(note_request.ref):
        return say("one-at-a-time", note_request.language)
    alike = notes_meant_by(note_request.ref, notes)
    titles = [note.title for note in (alike if alike else notes)]
    is_read = note_request.kind in ("show", "tags")
    if not titles:
        return say("no-such-note" if is_read else "which-note", note_request.language)
    key = "which-note-fits" if alike or has_searched else "which-note-is-here"
    key = "which-to-show" if is_read else key
    return say(key, note_request.language, titles=join_list(titles, note_request.language))


def _named_alike(ref: str, candidates: Sequence[KnownNote]) -> bool:
    """Whether `ref` names several notes by their titles."""
    return (
        len(candidates) > 1
        and not list_position(ref, LAST)
        and bool(search_terms(naming_words(ref)))
    )


def _on_note(note_request: NoteRequest, id: str) -> Call | None:
    tags = list(note_request.tags)
    arguments: dict[str, dict[str, Any]] = {
        "tag": {"add_tags": tags},
        "untag": {"remove_tags": tags},
        "name": {"title": note_request.title},
        "write": {"body": note_request.body},
    }
    if note_request.kind in arguments:
        return Call("update_note", {"note_id": id, **arguments[note_request.kind]})
    tools = {"drop": "delete_note", "share": "share_note"}  # the others read the note
    return Call(tools.get(note_request.kind, "get_note"), {"note_id": id})


def append_call(note_request: NoteRequest, note: Returned) -> Call:
    """The call that adds a line to the note that was just read."""
    fields = note.outcome.fields
    body = "\n".join(filter(None, (fields["body"], note_request.body)))
    return Call("update_note", {"note_id": fields["id"], "body": body})


def _from_elsewhere(registry: str) -> tuple[KnownNote, ...]:
    """The notes of other threads, the one used last first; they have no order of creation."""
    _, _, after = registry.partition(MOST_USED)
    lines = _NOTE_ELSEWHERE.findall(after.partition("\n\n")[0])
    return tuple(
        KnownNote(id, title, -recency, recency, int(place or 0))
        for recency, (place, title, id) in enumerate(lines, start=1)
    )


def _from_contexts(answers: Iterable[str]) -> tuple[KnownNote, ...]:
    titles: dict[str, str] = {}
    used_ids: list[str] = []
    for text in answers:
        for match in NAMED_NOTE.finditer(text):
            title, id = match.groups()
            if text[: match.start()].endswith(_DELETED):
                titles.pop(id, None)
                continue
            titles[id] = title
            used_ids.append(id)
    recent = [id for id in dict.fromkeys(reversed(used_ids)) if id in titles]
    return tuple(
        KnownNote(id, titles[id], ordinal, recent.index(id) + 1)
        for ordinal, id in enumerate(titles, start=1)
    )
