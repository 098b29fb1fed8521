"""Fields of Feishu's JSON, read without trusting their types. Pure."""

from __future__ import annotations

from typing import Any

from memory.text import storable


def as_text(value: object) -> str:
    """`value` when it is text, else ""; without what UTF-8 or Postgres cannot hold."""
    return storable(value) if isinstance(value, str) else ""


def as_dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
