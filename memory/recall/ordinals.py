"""Orders hits by the time that a question means: the first, the last, or what holds now. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from memory.recall.changes import changes
from memory.recall.former import asks_for_former
from memory.recall.passages import Passage

Ordinal = Literal["first", "last"]

_TIMES = r"(?:time|times|visit|meeting|session|trip|call|appointment|attempt|try|day|date)"
_FIRST = re.compile(
    r"第[一二两三1-3][次回遍趟]|首次|最[早初](?:一?次|的)?|头一?[次回]|一开始"
    rf"|\b(?:first|second|third|1st|2nd|3rd)\s+{_TIMES}\b|\bvery\s+first\b"
    r"|\bdid\b.*\bfirst\b|\bearliest\b|\binitially\b|\bat\s+first\b",
    re.IGNORECASE,
)
_LAST = re.compile(
    r"最[近后新](?:的?一?[次回遍趟]|的)|上一?[次回]|末次"
    rf"|\b(?:last|latest|most\s+recent|previous)\s+{_TIMES}\b|\bmost\s+recent(?:ly)?\b|\blatest\b"
    r"|\bdid\b.*\blast\b(?!\s+(?:week|month|year|night|summer|winter|spring|fall|autumn|weekend))",
    re.IGNORECASE,
)
# What has so much of the best score is about the same matter; of so many more hits one is chosen.
_SAME_MATTER = 0.6
_LOOK_FURTHER = 3
_AS_WELL = 0.8


def ordinal(question: str) -> Ordinal | None:
    """The first or the last of several times, if `question` asks for it; a second and a third time
    are found from the first on."""
    if _FIRST.search(question):
        return "first"
    return "last" if _LAST.search(question) else None


def enough_for(question: str, k: int) -> int:
    """How many hits to ask for, so that k can be chosen by `in_order`."""
    return k * _LOOK_FURTHER if ordinal(question) else k


def in_order(passages: Sequence[Passage], question: str, k: int) -> tuple[Passage, ...]:
    """Returns the k of `passages` (best first) to be told. If the question means the first or last
    of several times, the best is followed by the first or last of those about the same matter.
    Unless it asks about the past, the newest on a matter comes before what it replaced."""
    meant_ordinal = ordinal(question)
    if not meant_ordinal or not passages:
        return tuple((passages if asks_for_former(question) else newest_first(passages))[:k])
    same = [one for one in passages if one.score >= _SAME_MATTER * passages[0].score]
    ends = min(same, key=_time) if meant_ordinal == "first" else max(same, key=_time)
    best = [passages[0], *([ends] if ends is not passages[0] else [])]
    return tuple([*best, *[one for one in passages if one not in best]][:k])


def newest_first(passages: Sequence[Passage]) -> Sequence[Passage]:
    """Returns `passages` (best first) with what replaced a turn before that turn. It moves up only
    if it matches about as well: else the question's words were in the value of before."""
    changes_by_turn = changes(sorted(passages, key=_time))
    places = {one.turn_id: (place, 0) for place, one in enumerate(passages)}
    scores = {one.turn_id: one.score for one in passages}
    for turn_id, change in changes_by_turn.items():
        behind, holds = 0, turn_id
        while changes_by_turn[holds].until:
            behind, holds = behind + 1, changes_by_turn[holds].by
        if not change.until:
            continue
        if scores[holds] >= _AS_WELL * scores[turn_id]:
            places[holds] = min(places[holds], places[turn_id])
        places[turn_id] = max(places[turn_id], (places[holds][0], behind))
    return sorted(passages, key=lambda one: places[one.turn_id])


def _time(passage: Passage) -> tuple[str, int]:
    return passage.asked_at, passage.message_id
