"""Which notes an answer shows as a list, and in which order: what “the first note” then counts in.

Pure.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_LISTING = frozenset({"list_notes", "search_notes"})
_ON_NOTES = _LISTING | {"create_note", "get_note", "update_note", "delete_note", "share_note"}
NAMED = re.compile(r"\"([^\n]{1,200}?)\" \(ID: (note_[a-z2-7]+)\)")

Call = Mapping[str, Any]


def named_notes(result: str) -> list[tuple[str, str]]:
    """Title and id of each note that a tool's result names as `"title" (ID: …)`, in its order."""
    return NAMED.findall(result)


def with_shown(calls: Sequence[Call], answer: str) -> tuple[Call, ...]:
    """`calls` as they are stored with `answer`: when it tells what a list or search of notes found,
    that call has `note_ids`, the ids in the order in which their titles stand in the answer.

    A note that was looked for to do something with it is no list.
    """
    on_notes = [place for place, call in enumerate(calls) if call.get("name") in _ON_NOTES]
    if not on_notes:
        return tuple(calls)
    place = on_notes[-1]
    call = calls[place]
    if call["name"] not in _LISTING or not call.get("ok"):
        return tuple(calls)
    note_ids = _in_order(named_notes(str(call.get("result") or "")), answer)
    new_call = {**call, "shown": note_ids} if note_ids else call
    return (*calls[:place], new_call, *calls[place + 1 :])


def _in_order(notes: Iterable[tuple[str, str]], answer: str) -> list[str]:
    """The ids of the notes whose titles `answer` holds; of equal titles each stands for one."""
    waiting: dict[str, deque[str]] = defaultdict(deque)
    for title, id in notes:
        waiting[title.casefold()].append(id)
    if not waiting:
        return []
    # the longer title first: “Pasta” is no mention of itself inside “Pasta sauce”
    titles = sorted(waiting, key=len, reverse=True)
    title_matches = re.finditer("|".join(map(re.escape, titles)), answer.casefold())
    return [waiting[one[0]].popleft() for one in title_matches if waiting[one[0]]]
