"""Reads the text of a file that somebody sent, in a process of its own.

Every file is taken for hostile: the process has limits of memory and time and knows nothing of the
bot's environment. Whatever becomes of it is a reason in one word.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from dataclasses import dataclass
from typing import Literal, get_args

import structlog

from bot.files.extracting import ENDINGS
from bot.files.limited_process import answer_of
from bot.files.reading_slots import Places
from bot.text.file_names import ending_of
from memory.text import storable

log = structlog.get_logger()

Reason = Literal[
    "off", "kind", "size", "empty", "encrypted", "no_text", "other_content", "damaged",
    "too_complex", "time", "many", "busy", "unavailable",
]  # fmt: skip

_MEGABYTES = 200
_MOST_REMARKS = 4
_REMARK = re.compile(r"[\w (),.'-]{1,120}")
_PATIENCE = 2  # times a file's seconds: for a place, and for its work where the machine is busy
_BYTES_OF_A_CHARACTER = 12  # in JSON, at most


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """`megabytes` of a file (0: files are not read), `seconds` of work, characters of its text."""

    megabytes: int
    seconds: int
    characters: int


@dataclass(frozen=True, slots=True)
class Read:
    """`text` of a file; `cut`: it is the beginning. `remarks` say what it may lack or get wrong."""

    text: str
    cut: bool = False
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unread:
    """Why a file gives no text."""

    reason: Reason


def is_readable(name: str) -> bool:
    return ending_of(name) in ENDINGS


class FileReader:
    """Reads files, a few at a time. For one event loop."""

    def __init__(self) -> None:
        self._places = Places()

    def place(
        self, person: str, chat: str, limits: ReadingLimits
    ) -> contextlib.AbstractAsyncContextManager[None]:
        """A fair place for one file. Entering it raises `NoPlace` when others take too long."""
        return self._places.hold(person, chat, within_s=_PATIENCE * limits.seconds)

    async def read(self, name: str, data: bytes, limits: ReadingLimits) -> Read | Unread:
        """The text of `data`, whose kind the ending of `name` tells. Never raises."""
        if not is_readable(name):
            return Unread("kind")
        if not data.strip():
            return Unread("empty")
        try:
            async with asyncio.timeout(_PATIENCE * limits.seconds):
                answer = await _extracted(ending_of(name), data, limits)
        except TimeoutError:  # its limit is processor time, which it was not given
            answer = {"refused": "busy"}
        except OSError as exc:
            log.warning("files.no_process", error=type(exc).__name__)
            answer = {"refused": "unavailable"}
        read = _read(answer, limits.characters)
        log.info(
            "files.read",
            kind=ending_of(name),
            bytes=len(data),
            refused=read.reason if isinstance(read, Unread) else "",
        )
        return read


async def _extracted(ending: str, data: bytes, limits: ReadingLimits) -> object:
    """The answer of the process, None where it gave none."""
    work = [ending, limits.characters, limits.seconds, _MEGABYTES]
    most = limits.characters * _BYTES_OF_A_CHARACTER + 1024
    return await answer_of("bot.files.extracting", [*map(str, work)], data, most)


def _read(answer: object, characters: int) -> Read | Unread:
    """What the process said, of which nothing is taken on trust."""
    fields = answer if isinstance(answer, dict) else {"refused": "too_complex"}
    text = fields.get("text")
    if isinstance(text, str) and (text := storable(text)):
        cut = bool(fields.get("cut")) or len(text) > characters
        return Read(text[:characters], cut, _remarks(fields.get("remarks")))
    reasons: tuple[Reason, ...] = get_args(Reason)
    return Unread(next((one for one in reasons if one == fields.get("refused")), "damaged"))


def _remarks(value: object) -> tuple[str, ...]:
    remarks = value if isinstance(value, list) else []
    return tuple(one for one in remarks[:_MOST_REMARKS] if _REMARK.fullmatch(str(one)))
