"""A line of the log as people read it at a terminal. Pure."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

_OWN = ("event", "level", "timestamp", "logger", "stack")
_LEVELS = frozenset({"warning", "error", "critical"})


def readable(line: str) -> str:
    """`12:03:04 worker.started  slot=1` for a JSON object; other text without what a terminal would
    obey. Each ends with a newline."""
    try:
        fields = json.loads(line)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        return _visible(line.rstrip("\n")) + "\n"
    if fields.get("event") == "ready" and "address" in fields:
        return f"Ready: {_visible(str(fields['address']))}\n"
    event = _visible(str(fields.get("event")))
    return f"{_clock(fields)}{_level(fields)}{event}{_rest(fields)}{_stack(fields)}\n"


def _stack(fields: dict[str, Any]) -> str:
    lines = str(fields.get("stack", "")).splitlines()
    return "".join(f"\n    {_visible(line)}" for line in lines)


def _clock(fields: dict[str, Any]) -> str:
    """The time of this machine's clock, as that of a terminal is."""
    try:
        at = datetime.fromisoformat(str(fields["timestamp"])).astimezone()
    except (KeyError, ValueError):
        return ""
    return f"{at:%H:%M:%S} "


def _level(fields: dict[str, Any]) -> str:
    level = fields.get("level")
    return f"{str(level).upper()} " if level in _LEVELS else ""


def _rest(fields: dict[str, Any]) -> str:
    return "".join(
        f"  {_visible(name)}={_value(value)}" for name, value in fields.items() if name not in _OWN
    )


def _value(value: Any) -> str:
    if isinstance(value, str) and value and not any(c.isspace() or c in "\"'=" for c in value):
        return _visible(value)
    return _visible(json.dumps(value, ensure_ascii=False))


def _visible(text: str) -> str:
    """Without characters that move the cursor, hide text or change its order."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
