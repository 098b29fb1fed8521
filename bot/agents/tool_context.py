"""What earlier tool calls did, as a block under the message they belong to. Pure.

The stored message stays the text of the card; the block exists only in what a model is given.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memory.kept.notes import RegisteredNote

HEADING = "[Tool context: what the tools did for this reply. Not part of the reply.]"
NOTE_COLUMNS = "| no. | title | ID | tags | last action | recency (1 = used last) |"

_LONGEST_ARGUMENTS = 600
_LONGEST_RESULT = 800
_MOST_CALLS = 20
_REFERENCE = re.compile(r"\(ID:\s*([^()\s]{1,120})\)|\"id\"\s*:\s*\"([^\"\s]{1,120})\"")
_MARK = HEADING.split(":", 1)[0]
_BLOCK = re.compile(r"(?:^|\n)\s*" + re.escape(_MARK) + r":.*", re.DOTALL)


def enrich(content: str, tool_calls: Sequence[Mapping[str, Any]]) -> str:
    """`content` with a block for its tool calls; without any, `content` itself.

    A call is `{name, arguments, result, ok, ms}`. Long arguments and results are cut; every id that
    stands in a result as `(ID: …)` or `"id": "…"` is kept as a reference.
    """
    if not tool_calls:
        return content
    lines = [content, "", HEADING]
    for number, call in enumerate(tool_calls[:_MOST_CALLS], start=1):
        lines += _described(number, call)
    left_out = tool_calls[_MOST_CALLS:]
    if left_out:
        ids = [id for call in left_out for id in references(call.get("result"))]
        lines.append(f"{len(left_out)} more calls. {_referenced(ids)}".rstrip())
    return "\n".join(lines)


def references(result: object) -> list[str]:
    """The ids in a tool's result, each once, in order."""
    found = _REFERENCE.finditer(result if isinstance(result, str) else _json(result))
    return list(dict.fromkeys(match[1] or match[2] for match in found))


def without_context(text: str) -> str:
    """`text` without a tool context block that a model imitated at its end."""
    return _BLOCK.sub("", text).rstrip() if _MARK in text else text


def registry_table(entries: Iterable[RegisteredNote]) -> str:
    """The notes of a conversation as a short table, in order of creation; empty without any."""
    rows = [_row(entry) for entry in entries]
    if not rows:
        return ""
    return "\n".join([NOTE_COLUMNS, "|---|---|---|---|---|---|", *rows])


def _described(number: int, call: Mapping[str, Any]) -> list[str]:
    result = call.get("result")
    text = result if isinstance(result, str) else _json(result)
    outcome = "ok" if call.get("ok") else "failed"
    lines = [
        f"{number}. Tool: {call.get('name', '')} ({outcome})",
        f"   Arguments: {_line(_json(call.get('arguments') or {}), _LONGEST_ARGUMENTS)}",
        f"   Result: {_line(text, _LONGEST_RESULT)}",
    ]
    if ids := references(result):
        lines.append(f"   {_referenced(ids)}")
    return lines


def _referenced(ids: Sequence[str]) -> str:
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
