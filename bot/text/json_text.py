"""Reads JSON as providers and models send it, and turns results of tools into plain lines.

Some escape half of a character per chunk, write line breaks inside strings, or cut bytes apart."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import orjson

_MOST_LINES = 8
_LONGEST = 300  # characters of a line
_DEEPEST = 6  # levels of JSON
_ID_NAME = re.compile(r"(?:^|_)(?:id|ids|key|token|code|type|uuid|etag|version)$|^(?:ok|success)$")
_ID = re.compile(r"[a-z]{2,4}_[\w-]{6,}|[0-9a-f-]{16,}|\d{12,}|[\w+/=-]{28,}", re.IGNORECASE)
_EMPTY = frozenset({"", "ok", "success", "done", "true", "null"})
_OPENING = re.compile(r"[{\[]")
_MOST_VALUES = 50  # that are looked for in one text
_AROUND = " \t\r\n\ufeff`,"
_FENCE = re.compile(r"```\w{0,20}")
_DECODER = json.JSONDecoder(strict=False)
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
    """The text, and of the JSON in it what people can read; "" if there is nothing."""
    parts = list(_words_and_values(text))
    if len(parts) == 1:
        return text
    all_lines: list[str] = []
    for line in (line for part in parts for line in _lines(part, "", 0)):
        if line not in all_lines:
            all_lines.append(line)
        if len(all_lines) == _MOST_LINES:
            return "\n".join([*all_lines, "…"])
    return "\n".join(all_lines)


def _words_and_values(text: str) -> Iterator[Any]:
    """The values in a text, and the words before, between and after them."""
    start = 0
    for match in islice(_OPENING.finditer(text), _MOST_VALUES):
        if match.start() < start:
            continue
        if (found := _value_at(text, match.start())) is not None:
            yield _FENCE.sub("", text[start : match.start()]).strip(_AROUND)
            yield found[0]
            start = found[1]
    yield _FENCE.sub("", text[start:]).strip(_AROUND)


def _value_at(text: str, start: int) -> tuple[Any, int] | None:
    """The object or list that begins there, and its end. A list may be words in brackets: it counts
    if something is in it, or nothing else is in the text."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    is_all = not _FENCE.sub("", text[:start] + text[end:]).strip(_AROUND)
    is_value = isinstance(value, dict) or any(isinstance(one, dict | list) for one in value)
    return (value, end) if is_value or is_all else None


def _lines(value: Any, name: str, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _lines(item, str(key), depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _lines(item, name, depth + 1)
    elif isinstance(value, str) and len(parts := list(_words_and_values(value))) > 1:
        for part in parts:
            yield from _lines(part, name, depth + 1)
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
