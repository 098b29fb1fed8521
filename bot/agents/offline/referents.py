"""Finds the statement that a short correction is about, for the offline model: “make it 4”,
“*12 November”, 不是小顾，是若溪. Pure.

Such a line names no matter of its own. It denies a value, gives a value again, or follows a value
of the same kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from bot.agents.offline import facts
from bot.agents.offline.matters import statement_kinds
from memory.recall.sentences import supposes
from memory.recall.stated_facts import values_of_kinds

_POINTS_BACK = re.compile(
    r"^\*(?=\w)|^\d[\d.,:]*(?: (?:pls|please|instead|then|now)\b|$)"
    r"|^(?:ok(?:ay)?|fine|sure|agreed|alright)\b[\s,]*(?:\d|let['’]s\b)|^[行好成]的?[，,\s]*那"
    r"|^\W*(?:(?:sorry|sry|oops|ok(?:ay)?|oh|no|nope|wait|well|scratch that)\b[\s,.:;]*)*"
    r"(?:(?:make|scratch|keep) (?:it|that)\b|(?:it|that|this)(?:['’]s| is| was)\b|back to\b"
    r"|(?:we )?(?:stay|stick|go back|are back|['’]re back)\b)"
    r"|^(?:(?:不对|不是|[打写记说弄]?错了|算了|[那就还])[，,\s]*)*(?:改[成为到回]|换|按|还是|是|不是)",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\b(?:not|instead of|rather than) (?:the |an? )?([^,.;!?]{1,30})|不是([^，,。；！]{1,12})",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"\d+(?:[:.]\d+)*|[a-z]+|[\u3400-\u9fff]", re.IGNORECASE)
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b")
_NEAR = 2  # statements


def points_back(text: str) -> bool:
    """Whether `text` corrects something that it does not name."""
    value = facts.corrected_value(text)
    has_own_matter = bool(value) and facts.is_whole(value)
    return not has_own_matter and bool(value or _POINTS_BACK.match(text))


def referent_place(text: str, earlier: Sequence[str], is_own: Sequence[bool]) -> int:
    """The place in `earlier`, statements in the order of time, of the one that `text` points back
    to; -1 if there is none. `is_own`: which of them its author made."""
    if supposes(text):
        return -1
    places = range(len(earlier) - 1, -1, -1)
    if not points_back(text):
        return next((n for n in places[:_NEAR] if _exchanges(text, earlier[n])), -1)
    if text.startswith("*"):
        return next((n for n in places if is_own[n]), -1)
    denied = [_tokens(match[1] or match[2]) for match in _DENIED.finditer(text)]
    values = _value_pairs(text)
    kinds = statement_kinds(text)
    if values and values <= _value_pairs(earlier[-1] if earlier else ""):
        return -1  # “ok, 12 March it is”
    for n in places:
        if any(words and words <= _tokens(earlier[n]) for words in denied):
            return n
    for n in places:
        if values and values <= _value_pairs(earlier[n]):
            return n
    return next((n for n in places[:_NEAR] if kinds & statement_kinds(earlier[n])), -1)


def _exchanges(text: str, earlier: str) -> bool:
    """Whether `text` names a value of `earlier` and then another of its kind: “Tuesday doesn't
    work, so Wednesday”."""
    before = set(values_of_kinds(earlier))
    values = values_of_kinds(text)
    first = next((n for n, one in enumerate(values) if one in before), len(values))
    others = [kind for kind, words in values[first + 1 :] if (kind, words) not in before]
    return bool(others) and values[first][0] in others


def _tokens(text: str) -> set[str]:
    return set(_TOKEN.findall(_ORDINAL.sub("", text.lower())))


def _value_pairs(text: str) -> set[tuple[str, ...]]:
    """Numbers with their neighbours, of which a date or a price is made: “3 June”, 6月3号."""
    pairs = pairwise(_TOKEN.findall(_ORDINAL.sub("", text.lower())))
    return {pair for pair in pairs if _is_of_date(pair)}


def _is_of_date(pair: tuple[str, str]) -> bool:
    kinds = statement_kinds(" ".join(pair)) | statement_kinds("".join(pair))
    return any(part[0].isdecimal() for part in pair) and "when" in kinds
