"""Which pictures a model is shown. Pure."""

from __future__ import annotations

MOST_IMAGES = 4
MOST_BYTES = 10_000_000

_BEGINNINGS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def media_type(data: bytes) -> str:
    """The type as the first bytes tell it; "" for what is no picture that models take."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _BEGINNINGS.items() if data.startswith(start)), "")
