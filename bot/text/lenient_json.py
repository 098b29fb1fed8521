"""JSON as providers and models really send it, and fast where it is in order.

Some escape half of a character per chunk, write line breaks inside strings, or cut bytes apart.
"""

from __future__ import annotations

import json
from typing import Any

import orjson


def loads(data: bytes | str) -> Any:
    """The value in `data`. Raises `ValueError` when it is no JSON at all."""
    try:
        return orjson.loads(data)
    except ValueError:
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        return json.loads(text, strict=False)


def dumps(value: Any) -> bytes:
    """`value` as JSON; what UTF-8 cannot carry is escaped."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value).encode()


def mended(text: str) -> str:
    """`text` with halves of characters that came apart put together, and lone halves replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
