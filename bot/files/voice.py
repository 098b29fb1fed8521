"""Converts a voice message for the recognition, in a process of its own."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Literal

import structlog

from bot.files.limited_process import answer_of

log = structlog.get_logger()

MOST_SECONDS = 300
MOST_BYTES = 10 * 1024 * 1024  # of the file; five minutes of voice are about one
_SECONDS = 10  # of processor time; five minutes of voice take one
_PATIENCE_S = 20.0
_MEGABYTES = 300
_ANSWER_BYTES = MOST_SECONDS * 16_000 * 2 * 4 // 3 + 65_536

Unconverted = Literal["long", "damaged", "busy"]


@dataclass(frozen=True, slots=True)
class Pieces:
    """What is recognised one by one: 16-bit samples of one channel, 16,000 a second, in base64;
    less than 60 seconds each."""

    pieces: tuple[str, ...]


async def convert(data: bytes) -> Pieces | Unconverted:
    """The voice of an Ogg file, or why there is none. Never raises."""
    work = [str(one) for one in (MOST_SECONDS, _SECONDS, _MEGABYTES)]
    try:
        async with asyncio.timeout(_PATIENCE_S):
            answer = await answer_of("bot.files.voice_samples", work, data, _ANSWER_BYTES)
    except (TimeoutError, OSError) as exc:
        log.warning("voice.not_converted", error=type(exc).__name__)
        return "busy"
    fields = answer if isinstance(answer, dict) else {}
    pieces = fields.get("pieces")
    if isinstance(pieces, list) and all(isinstance(one, str) for one in pieces):
        return Pieces(tuple(one for one in pieces if one))
    return "long" if fields.get("refused") == "long" else "damaged"
