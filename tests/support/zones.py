"""Time zones of a test's own: the clock is changed at a moment that the test can wait for.

Processes with PYTHONTZPATH on the folder read them as they read those of the system (RFC 9636).
"""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from pathlib import Path

NAME = "Test/Change"


def write_zone(folder: Path, *, change: datetime, shows: datetime, shift_s: int) -> None:
    """Writes the zone `NAME`: at `change` (aware, whole seconds) its clock comes to the naive
    `shows` and is put on by `shift_s` seconds; less than 0 puts it back."""
    offset = round((shows - change.astimezone(UTC).replace(tzinfo=None)).total_seconds())
    offset = (offset + 43_200) % 86_400 - 43_200  # within half a day; the date is the machine's
    kinds = struct.pack(">lBB", offset, 0, 0) + struct.pack(">lBB", offset + shift_s, 1, 4)
    body = struct.pack(">q", int(change.timestamp())) + b"\x01" + kinds + b"TST\0TDT\0"
    empty = struct.pack(">4sc15x6L", b"TZif", b"2", 0, 0, 0, 0, 1, 1) + struct.pack(
        ">lBBc", 0, 0, 0, b"\0"
    )
    header = struct.pack(">4sc15x6L", b"TZif", b"2", 0, 0, 0, 1, 2, 8)
    path = folder / NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(empty + header + body + b"\n\n")
