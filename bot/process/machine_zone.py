"""The time zone of this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_LOCAL_TIME, _NAMED = Path("/etc/localtime"), Path("/etc/timezone")


def machine_zone(local_time: Path = _LOCAL_TIME, named: Path = _NAMED) -> str:
    """Returns its IANA name, or "" where the machine does not tell."""
    return next(filter(_is_zone, _candidates(local_time, named)), "").removeprefix("Etc/")


def _candidates(local_time: Path, named: Path) -> Iterator[str]:
    yield os.environ.get("TZ", "").removeprefix(":")
    yield str(local_time.resolve()).rpartition("/zoneinfo/")[2]
    if named.is_file():
        yield named.read_text(encoding="utf-8", errors="replace").strip()


def _is_zone(name: str) -> bool:
    try:
        return bool(name) and bool(ZoneInfo(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
