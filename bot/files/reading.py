"""Reads the text of a file that somebody sent, in a process of its own.

Every file is taken for hostile: the process has limits of memory and time and knows nothing of the
bot's environment. Whatever becomes of it is a reason in one word.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import structlog

from bot.files.extracting import ENDINGS
from bot.files.reading_slots import Places
from bot.text.file_names import ending_of

log = structlog.get_logger()

Reason = Literal[
    "off", "kind", "size", "empty", "encrypted", "no_text", "other_content", "damaged",
    "too_complex", "time", "many", "busy", "unavailable",
]  # fmt: skip

_ROOT = Path(__file__).resolve().parents[2]
_MEGABYTES = 200
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
    """`text` of a file; `cut`: it is the beginning."""

    text: str
    cut: bool = False


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
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bot.files.extracting", *map(str, work),
        cwd=_ROOT,
        env={"LANG": "C.UTF-8"} | {k: v for k, v in os.environ.items() if k == "PYTHONPATH"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    most = limits.characters * _BYTES_OF_A_CHARACTER + 1024
    try:
        answer = await _exchanged(process, data, most)
        await process.wait()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await asyncio.shield(process.wait())
    if process.returncode == -signal.SIGXCPU:
        return {"refused": "time"}
    try:
        return json.loads(answer)
    except ValueError:
        return None


async def _exchanged(process: asyncio.subprocess.Process, data: bytes, most: int) -> bytes:
    """Gives the file and takes at most `most` bytes."""
    assert process.stdin is not None  # noqa: S101  pipes were asked for
    assert process.stdout is not None  # noqa: S101
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()
    taken = bytearray()
    while len(taken) <= most and (part := await process.stdout.read(65536)):
        taken += part
    return bytes(taken)


def _read(answer: object, characters: int) -> Read | Unread:
    """What the process said, of which nothing is taken on trust."""
    said = answer if isinstance(answer, dict) else {"refused": "too_complex"}
    text = said.get("text")
    if isinstance(text, str) and text:
        return Read(text[:characters], bool(said.get("cut")) or len(text) > characters)
    known: tuple[Reason, ...] = get_args(Reason)
    return Unread(next((one for one in known if one == said.get("refused")), "damaged"))
