"""`.env`: some values set, everything else as it was, readable by its owner only."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dotenv import set_key

_INTRODUCTION = "# Written by scripts/setup; .env.example lists everything else.\n"


def write(file: Path, values: Mapping[str, str]) -> None:
    """Sets `values` in `file`, one after the other. A link stays a link.

    Raises `OSError`, and `ValueError` for a value that is more than a line.
    """
    if any(len(value.splitlines()) > 1 for value in values.values()):
        raise ValueError("a value is one line")
    target = file.resolve()
    if not target.exists():
        target.touch(mode=0o600)
        target.write_text(_INTRODUCTION, encoding="utf-8")
    target.chmod(0o600)
    for name, value in values.items():
        set_key(target, name, value, quote_mode="auto")
