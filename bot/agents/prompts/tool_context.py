"""Shows a model what earlier tool calls did, and which notes an answer listed. Pure.

Those of recent answers are real pairs of call and result, which no model imitates; those of older
ones are a block under the message they belong to. The stored message stays the text of the card.

Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from bot.agents.tool_types import as_error
from bot.feishu.markup import with_marks
from memory.context import ToolExchange, estimate_tokens
from memory.tables.notes import RegisteredNote
from memory.text import indented_text

_QUOTATION_MARKS = str.maketrans(dict.fromkeys("“”‘’", '"'))
HEADING = "[Tool context: what the tools did for this reply. Not part of the reply.]"
NOTE_COLUMNS = "| no. | title | ID | tags | last action | recency (1 = used last) |"
FROM_ELSEWHERE = "Created in other threads and only seen here:"
MOST_USED = (
    "None in this thread yet. From other threads, the one used last first (a number is the place"
    " in the list that a card showed last; list_notes gives all):"
)
SHOWN_LAST = "The list of notes that a card showed last, in its order:"
_LONGEST_ARGUMENTS = 600
_LONGEST_RESULT = 800
_LONGEST_PAIRED = 2000
_LONGEST_ARGUMENT = 200
_MOST_CALLS = 20
_MOST_USED_TOKENS = 120
_LONGEST_TITLE = 40
_REFERENCE = re.compile(r"\(ID:\s*([^()\s]{1,120})\)|\"id\"\s*:\s*\"([^\"\s]{1,120})\"")
_MARK = HEADING.split(":", 1)[0]
_BLOCK = re.compile(r"(?:^|\n)[^\S\n]*" + re.escape(_MARK) + r":.*", re.DOTALL)

_LISTING = frozenset({"list_notes", "search_notes"})
_ON_NOTES = _LISTING | {"create_note", "get_note", "update_note", "delete_note", "share_note"}
NAMED_NOTE = re.compile(r"\"([^\n]{1,200}?)\" \(ID: (note_[a-z2-7]+)\)")
Call = Mapping[str, Any]


def enrich(content: str, tool_calls: Sequence[Mapping[str, Any]]) -> str:
    """`content` with a block for its tool calls; without any, `content` itself.

    A call is `{name, arguments, result, ok, ms}`. Long arguments and results are cut; every id that
    stands in a result as `(ID: …)` or `"id": "…"` is kept as a reference.
    """
    if not tool_calls:
        return content
    lines = [content, "", HEADING]
    for number, call in enumerate(tool_calls[:_MOST_CALLS], start=1):
        lines += _describe_call(number, call)
    left_out = tool_calls[_MOST_CALLS:]
    if left_out:
        ids = [id for call in left_out for id in references(call.get("result"))]
        lines.append(f"{len(left_out)} more calls. {_reference_line(ids)}".rstrip())
    return "\n".join(lines)


def exchanges(message_id: int, tool_calls: Sequence[Mapping[str, Any]]) -> tuple[ToolExchange, ...]:
    """The calls of the stored message as pairs, always the same for the same message.

    Long arguments and results are cut; below each result stand the ids that were picked out of it.
    """
    calls = enumerate(tool_calls[:_MOST_CALLS])
    return tuple(_pair_call(f"{message_id}-{number}", call) for number, call in calls)


def references(result: object) -> list[str]:
    """The ids in a tool's result, each once, in order."""
    matches = _REFERENCE.finditer(result if isinstance(result, str) else _json(result))
    return list(dict.fromkeys(match[1] or match[2] for match in matches))


def registry_table(entries: Iterable[RegisteredNote]) -> str:
    """The notes of a conversation as a short table, in order of creation; empty without any.

    On top stands the order that people last saw; those of other threads stand apart below. Where
    the conversation has none, a few lines about notes used elsewhere.
    """
    notes = list(entries)
    if not notes:
        return ""
    if notes[0].elsewhere:
        return _most_used(notes)
    here = [_row(entry) for entry in notes if entry.here]
    rows_elsewhere = [_row(entry) for entry in notes if not entry.here]
    separate_rows = [FROM_ELSEWHERE, *rows_elsewhere] if rows_elsewhere else []
    return "\n".join(
        [*_shown_last(notes), NOTE_COLUMNS, "|---|---|---|---|---|---|", *here, *separate_rows]
    )


def _shown_last(notes: Iterable[RegisteredNote]) -> list[str]:
    places_of_notes = sorted((note.shown, note.id) for note in notes if note.shown)
    places = (f"{place}. {id}" for place, id in places_of_notes)
    return [f"{SHOWN_LAST} {', '.join(places)}"] if places_of_notes else []


def _most_used(notes: Sequence[RegisteredNote]) -> str:
    """A line a note, as many as are worth their room; the likeliest come first in `notes`."""
    lines = {note.id: _short(note) for note in notes}
    costs = (estimate_tokens(f"{line}\n") for line in (MOST_USED, *lines.values()))
    fitting = sum(1 for tokens in accumulate(costs) if tokens <= _MOST_USED_TOKENS) - 1
    kept_notes = sorted(notes[:fitting], key=lambda note: note.recency or len(lines) + 1)
    return "\n".join([MOST_USED, *(lines[note.id] for note in kept_notes)])


def _short(note: RegisteredNote) -> str:
    place = f"{note.shown}." if note.shown else "-"
    return f'{place} "{_line(note.title, _LONGEST_TITLE)}" (ID: {note.id})'


def _pair_call(key: str, call: Mapping[str, Any]) -> ToolExchange:
    result = call.get("result")
    text = result if isinstance(result, str) else _json(result)
    short_text = text if len(text) <= _LONGEST_PAIRED else f"{text[:_LONGEST_PAIRED]} … (cut)"
    result_text = indented_text(short_text if call.get("ok") else as_error(short_text))
    ids = _reference_line(references(result))
    return ToolExchange(
        # Nine letters and digits is what every endpoint takes as an id (Mistral, no other form).
        id=hashlib.blake2b(key.encode(), digest_size=5).hexdigest()[:9],
        name=str(call.get("name") or ""),
        arguments=_arguments(call.get("arguments") or {}),
        result=f"{result_text}\n{ids}" if ids else result_text,
    )


def _arguments(arguments: Mapping[str, Any]) -> str:
    """The arguments as JSON; where they are long, long values are cut."""
    if len(whole := _json(arguments)) <= _LONGEST_PAIRED:
        return whole
    return _json({key: _line(_json(value), _LONGEST_ARGUMENT) for key, value in arguments.items()})


def _describe_call(number: int, call: Mapping[str, Any]) -> list[str]:
    result = call.get("result")
    text = result if isinstance(result, str) else _json(result)
    outcome = "ok" if call.get("ok") else "failed"
    lines = [
        f"{number}. Tool: {call.get('name', '')} ({outcome})",
        f"   Arguments: {_line(_json(call.get('arguments') or {}), _LONGEST_ARGUMENTS)}",
        f"   Result: {_line(text, _LONGEST_RESULT)}",
    ]
    if ids := references(result):
        lines.append(f"   {_reference_line(ids)}")
    return lines


def _reference_line(ids: Sequence[str]) -> str:
    return f"References: {', '.join(dict.fromkeys(ids))}" if ids else ""


def _row(entry: RegisteredNote) -> str:
    tags = ", ".join(entry.tags)
    cells = (entry.title, entry.id, tags, entry.last_action, str(entry.recency or "-"))
    return f"| {entry.ordinal} | " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(text: str) -> str:
    return _line(text.replace("|", "/"), 80)


def _line(text: str, longest: int) -> str:
    """`text` on one line; of a long one the beginning."""
    flat = " ".join(text.split())
    return flat if len(flat) <= longest else f"{flat[:longest]} … (cut)"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def named_notes(result: str) -> list[tuple[str, str]]:
    """Title and id of each note that a tool's result names as `"title" (ID: …)`, in its order."""
    return NAMED_NOTE.findall(result)


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
        waiting[_comparable(title)].append(id)
    if not waiting:
        return []
    # the longer title first: “Pasta” is no mention of itself inside “Pasta sauce”
    titles = sorted(waiting, key=len, reverse=True)
    title_matches = re.finditer("|".join(map(re.escape, titles)), _comparable(answer))
    return [waiting[one[0]].popleft() for one in title_matches if waiting[one[0]]]


def _comparable(text: str) -> str:
    """`text` as titles are looked for in it: an answer quotes them."""
    return with_marks(text).translate(_QUOTATION_MARKS).casefold()
