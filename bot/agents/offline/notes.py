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

from bot.agents.offline.commands import NoteRequest
from bot.agents.prompts.prompt import REGISTRY
from bot.agents.prompts.tool_context import MOST_USED, NAMED
from bot.agents.tool_types import ToolOutcome, Wording
from bot.agents.tools.note_texts import WORDING
from bot.text.catalogues import Catalogue
from bot.text.languages import Language, join_list
from bot.text.times import read_time_alone
from memory.dates import DATE_EXPRESSIONS, DAY_EXPRESSIONS, Day, named_days, next_date
from memory.tables.notes import search_terms

say = Catalogue(__file__).say

_ROW = re.compile(
    r"^\|\s*(\d+)\s*\|([^|\n]*)\|\s*(note_[a-z2-7]+)\s*\|[^\n]*\|\s*(\d+|-)\s*\|$",
    re.MULTILINE,
)
_ELSEWHERE = re.compile(r"^(?:(\d+)\.|-) \"(.{1,200})\" \(ID: (note_[a-z2-7]+)\)$", re.MULTILINE)
_SHOWN = re.compile(r"(?<=[:,] )(\d+)\. (note_[a-z2-7]+)(?=,|$)", re.MULTILINE)
_DELETED = "deleted note "
_CHANGED = frozenset({"note-updated", "note-deleted"})
_SEVERAL = re.compile(
    r"\b(?:all|every|both|these|those|notes)\b|所有|全部|每一?[条个篇]|[那这]些|(?<!第)[两三几][条个篇]"
)

_NUMBERS_ZH = "一二三四五六七八九十"
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_CARDINALS = "one two three four five six seven eight nine ten".split()
_POSITION = re.compile(
    rf"第\s*([{_NUMBERS_ZH}]|\d{{1,3}})(?=\s*[条个篇份笔便项])|\b({'|'.join(_ORDINALS)})\b"
    r"|\b(\d{1,3})(?:st|nd|rd|th)\b(?! of\b)"
    r"|(?:\bnote|\breminder|\bnumber|\bno\.?|#) ?(\d{1,3})\b|^\s*(\d{1,3})\s*$"
    rf"|^(?:number )?({'|'.join(_CARDINALS)})$",
    re.IGNORECASE,
)
_NEXT = re.compile(
    r"^(?:the )?(?:next|soonest)(?: one)?$|^(?:下|最近的?)一?[个条项]$", re.IGNORECASE
)
_LAST = re.compile(r"\b(?:last|latest|newest)\b|最后|最新", re.IGNORECASE)
_POINTING = re.compile(
    r"\b(?:that|this|the|my|our|it|one|ones|note|reminder|about|to|for|on|of|just|now"
    rf"|called|titled|named|last|latest|newest|{'|'.join(_ORDINALS)})\b"
    r"|['’]s\b|第[一二三四五六七八九十]|刚才|上一|[那这该它我]|[条个篇份]|的?(?:笔记|便签|提醒)|的",
    re.IGNORECASE,
)
LAST = -1
_AND = re.compile(r"[,，、;&]|\band\b|[和与跟]|还有", re.IGNORECASE)
_BARE_NTH = re.compile(rf"^\s*第?([{_NUMBERS_ZH}]|\d{{1,3}})[个条项]?\s*$")
_TOGETHER = re.compile(
    r"\b(?:(?P<both>both)|all|every|each)\b(?: of)?(?: (?:them|these|those)\b)?"
    r"|[这那]?(?P<count>[两三])[个条项]都?|所有|全部|每一?[个条]|都|统统",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class KnownNote:
    """A note the prompt speaks of. `recency` 1 was used last; 0: it was only listed.

    `shown` is its place in the list that a card showed last; 0: it was not in it. `ordinal` is
    below 0 where nothing says in which order it was created.
    """

    id: str
    title: str
    ordinal: int
    recency: int
    shown: int = 0


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

    def told(self, language: Language) -> str:
        return self.wording.tell(self.outcome, language)


def known_notes(instructions: str, answers: Iterable[str]) -> tuple[KnownNote, ...]:
    """The notes of the registry; without one, those of the tool contexts in earlier answers."""
    _, _, after = instructions.partition(REGISTRY)
    rows = _ROW.findall(after)
    if rows:
        places = {id: int(place) for place, id in _SHOWN.findall(after)}
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
    if _SEVERAL.search(note_request.ref):
        return None
    candidates = notes_meant_by(note_request.ref, notes)
    if not candidates:
        words = " ".join(search_terms(naming_words(note_request.ref)))
        return Call("search_notes", {"query": words}) if words and not has_searched else None
    if _named_alike(note_request.ref, candidates):
        return None
    return _on_note(note_request, candidates[0].id)


def notes_meant_by(ref: str, notes: Sequence[KnownNote]) -> list[KnownNote]:
    """The notes `ref` can mean, likeliest first: by position, by title, else by recency.

    A position counts in the list that a card showed last, if there is one. By title several mean
    that it says too little.
    """
    in_order = sorted(notes, key=lambda note: note.ordinal)
    if place := list_position(ref, LAST):
        shown_notes = sorted((note for note in notes if note.shown), key=lambda note: note.shown)
        if place == LAST:
            return (shown_notes or in_order)[-1:]
        return [note for note in in_order if place == (note.shown if shown_notes else note.ordinal)]
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
    answer = tool_result.told(language)
    if not note_request.ref or tool_result.outcome.kind not in _CHANGED:
        return answer
    others = [note.title for note in notes_meant_by(note_request.ref, notes)[1:4]]
    titles = join_list(others, language)
    return answer + (say("others-too", language, titles=titles) if others else "")


def note_question_back(
    note_request: NoteRequest, notes: Sequence[KnownNote], *, has_searched: bool = False
) -> str:
    """The question back when nothing that is known fits, or too much."""
    if _SEVERAL.search(note_request.ref):
        return say("one-at-a-time", note_request.language)
    alike = notes_meant_by(note_request.ref, notes)
    titles = [note.title for note in (alike if alike else notes)]
    if not titles:
        return say("which-note", note_request.language)
    key = "which-note-fits" if alike or has_searched else "which-note-is-here"
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
    tools = {"drop": "delete_note", "share": "share_note", "show": "get_note", "tags": "get_note"}
    return Call(tools[note_request.kind], {"note_id": id})


def _from_elsewhere(registry: str) -> tuple[KnownNote, ...]:
    """The notes of other threads, the one used last first; they have no order of creation."""
    _, _, after = registry.partition(MOST_USED)
    lines = _ELSEWHERE.findall(after.partition("\n\n")[0])
    return tuple(
        KnownNote(id, title, -recency, recency, int(place or 0))
        for recency, (place, title, id) in enumerate(lines, start=1)
    )


def _from_contexts(answers: Iterable[str]) -> tuple[KnownNote, ...]:
    titles: dict[str, str] = {}
    used_ids: list[str] = []
    for text in answers:
        for match in NAMED.finditer(text):
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


@dataclass(frozen=True, slots=True)
class ListedItem:
    """One item of a list. `at`: its local time, if it has one."""

    id: str
    text: str
    at: datetime | None = None


def list_position(ref: str, last: int) -> int:
    """The number that `ref` names, from 1; 0 if it names none. “The last one” is `last`."""
    if match := _POSITION.search(ref):
        chinese, english, *digits, cardinal = match.groups()
        if cardinal:
            return _CARDINALS.index(cardinal.lower()) + 1
        if chinese and not chinese.isdecimal():
            return _NUMBERS_ZH.index(chinese) + 1
        if english:
            return _ORDINALS.index(english.lower()) + 1
        return int(chinese or next(digit for digit in digits if digit))
    return last if _LAST.search(ref) else 0


def naming_words(ref: str) -> str:
    """The words of a reference that name something, without those that only point."""
    return _POINTING.sub(" ", ref)


def choose_items(ref: str, items: Sequence[ListedItem], now: datetime) -> list[ListedItem]:
    """The items that `ref` names: all of them where it only points.

    “The 3 March one” is a day, “the 3rd” a number. Words choose among the items of that day.
    """
    named_day = next(named_days(ref, (*DATE_EXPRESSIONS, *DAY_EXPRESSIONS), now.date()), None)
    number = 0 if named_day else list_position(ref, len(items))
    if number:
        return list(items[number - 1 : number])
    if _NEXT.search(ref.strip()):
        dated_items = [one for one in items if one.at]
        return sorted(dated_items, key=lambda one: str(one.at))[:1]
    if named_day:
        items = _on(named_day, items, now)
        ref = f"{ref[: named_day.start]} {ref[named_day.end :]}"
    if clock := read_time_alone(naming_words(ref)):
        at = (clock.hour, clock.minute)
        return [one for one in items if one.at and (one.at.hour, one.at.minute) == at]
    wanted_terms = set(search_terms(naming_words(ref)))
    if not wanted_terms:
        return list(items)
    shared_counts = {one.id: len(wanted_terms & set(search_terms(one.text))) for one in items}
    best = max(shared_counts.values(), default=0)
    return [one for one in items if best and shared_counts[one.id] == best]


def choose_together(
    ref: str, items: Sequence[ListedItem], now: datetime
) -> list[ListedItem] | None:
    """The items that `ref` names at once: “both”, “all of Friday's”, “1 and 2”. None if it names no
    more than one; empty if not all of them are there."""
    parts = [_BARE_NTH.sub(r"第\1个", part) for part in _AND.split(ref) if part.strip()]
    positions = [list_position(part, len(items)) for part in parts]
    if len(parts) > 1 and all(positions):
        are_there = max(positions) <= len(items)
        return [items[place - 1] for place in dict.fromkeys(positions)] if are_there else []
    if not (several := _TOGETHER.search(ref)):
        return None
    rest = _TOGETHER.sub(" ", ref)
    day = next(named_days(rest, (*DATE_EXPRESSIONS, *DAY_EXPRESSIONS), now.date()), None)
    if search_terms(naming_words(f"{rest[: day.start]} {rest[day.end :]}" if day else rest)):
        return None  # “all hands”
    choices = choose_items(rest, items, now)
    count = {"三": 3, "两": 2}.get(several["count"] or "", 2 if several["both"] else len(choices))
    return choices if len(choices) == count else []


def _on(named_day: Day, items: Sequence[ListedItem], now: datetime) -> list[ListedItem]:
    """The items of that day; of a weekday also those of another week, if there are no others."""
    dated_items = [(one, one.at) for one in items if one.at]
    day = next_date(named_day, now.date())
    on_day = [one for one, at in dated_items if f"{at:%Y-%m-%d}" == day]
    if on_day or named_day.weekday is None:
        return on_day
    return [one for one, at in dated_items if at.weekday() == named_day.weekday]
