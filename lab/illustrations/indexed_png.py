"""A PNG file with a palette. Source: W3C, Portable Network Graphics. Pure."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PALETTE, _WHOLE_ROWS = 3, 0


def indexed_png(width: int, palette: Sequence[Sequence[int]], pixels: bytes) -> bytes:
    """`pixels` are numbers in `palette` (red, green, blue), row by row, `width` in each."""
    rows = range(0, len(pixels), width)
    header = struct.pack(">IIBBBBB", width, len(rows), 8, _PALETTE, 0, 0, 0)
    lines = b"".join(bytes([_WHOLE_ROWS]) + pixels[row : row + width] for row in rows)
    return b"".join(
        (
            _SIGNATURE,
            _chunk(b"IHDR", header),
            _chunk(b"PLTE", b"".join(map(bytes, palette))),
            _chunk(b"IDAT", zlib.compress(lines, 9)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)
