"""Reads JSON as providers and models send it, and turns results of tools into plain lines.

Some escape half of a character per chunk, write line breaks inside strings, or cut bytes apart."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import orjson

_MOST_LINES = 8
_LONGEST = 300  # characters of a line
_DEEPEST = 6  # levels of JSON
_ID_NAME = re.compile(r"(?:^|_)(?:id|ids|key|token|code|type|uuid|etag|version)$|^(?:ok|success)$")
_ID = re.compile(r"[a-z]{2,4}_[\w-]{6,}|[0-9a-f-]{16,}|\d{12,}|[\w+/=-]{28,}", re.IGNORECASE)
_EMPTY = frozenset({"", "ok", "success", "done", "true", "null"})
_WORDS = re.compile(r"[_\-.]+|(?<=[a-z])(?=[A-Z])")


def load_json(data: bytes | str) -> Any:
    """The value in `data`. Raises `ValueError` when it is no JSON at all."""
    try:
        return orjson.loads(data)
    except ValueError:
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        return json.loads(text, strict=False)


def dump_json(value: Any) -> bytes:
    """`value` as JSON; what UTF-8 cannot carry is escaped."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value).encode()


def mend_characters(text: str) -> str:
    """`text` with halves of characters that came apart put together, and lone halves replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def readable_lines(text: str) -> str:
    """The text unless it is JSON; else what of it people can read, "" if there is nothing."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    all_lines: list[str] = []
    for line in _lines(value, "", 0):
        if line not in all_lines:
            all_lines.append(line)
        if len(all_lines) == _MOST_LINES:
            return "\n".join([*all_lines, "…"])
    return "\n".join(all_lines)


def _lines(value: Any, name: str, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _lines(item, str(key), depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _lines(item, name, depth + 1)
    elif sentence := _readable_value(value, name):
        yield sentence[:_LONGEST]


def _readable_value(value: Any, name: str) -> str:
    snake = "_".join(_WORDS.split(name)).lower()
    text = " ".join(str(value).split())
    if value is None or isinstance(value, bool) or text.lower() in _EMPTY:
        return ""
    if _ID_NAME.search(snake) or (_ID.fullmatch(text) and not text.startswith("http")):
        return ""
    is_told = snake in ("", "text", "message", "msg", "error", "detail", "content", "result")
    return text if is_told else f"{snake.replace('_', ' ')}: {text}"
