"""Reads the text of a sent file and converts voice messages, each in a process of its own with
limits.

Every file is taken for hostile: the process has limits of memory and time and knows nothing of the
bot's environment. Whatever becomes of it is a reason in one word. One person reads one file at a
time and one chat two, so nobody's files keep everybody else waiting."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Literal, get_args

import structlog

from bot.files.extracting import ENDINGS
from bot.text.file_names import ending_of
from bot.text.languages import Catalogue, Language
from memory.text import storable

log = structlog.get_logger()
Reason = Literal[
    "off", "kind", "size", "empty", "encrypted", "no_text", "other_content", "damaged",
    "too_complex", "time", "many", "busy", "unavailable",
]  # fmt: skip
_MEGABYTES = 200
FILE_SECONDS = 10  # of processor time; after most of it the text so far is the answer
_MOST_REMARKS = 4
_REMARK = re.compile(r"[\w (),.'-]{1,120}")
_PATIENCE = 2  # times a file's seconds: for a place, and for its work where the machine is busy
_BYTES_OF_A_CHARACTER = 12  # in JSON, at most

MOST_VOICE_SECONDS = 300
MOST_VOICE_BYTES = 10 * 1024 * 1024  # of the file; five minutes of voice are about one
_VOICE_SECONDS = 10  # of processor time; five minutes of voice take one
_VOICE_PATIENCE_S = 20.0
_VOICE_MEGABYTES = 300
_VOICE_ANSWER_BYTES = MOST_VOICE_SECONDS * 16_000 * 2 * 4 // 3 + 65_536
VoiceRefusal = Literal["long", "damaged", "busy"]

_ROOT = Path(__file__).resolve().parents[2]

READING_SLOTS = 3
SLOTS_OF_A_CHAT = 2
SLOTS_OF_A_PERSON = 1

say = Catalogue(__file__).say
MOST_FILES = 4


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
        self._places = ReadingSlots()

    def place(
        self, person: str, chat: str, limits: ReadingLimits
    ) -> contextlib.AbstractAsyncContextManager[None]:
        """Returns a fair place for one file. Entering it raises `NoReadingSlot` when others take
        too long."""
        return self._places.hold(person, chat, within_s=_PATIENCE * limits.seconds)

    async def read(self, name: str, data: bytes, limits: ReadingLimits) -> Read | Unread:
        """The text of `data`, whose kind the ending of `name` tells. Never raises."""
        if not is_readable(name):
            return Unread("kind")
        if not data.strip():
            return Unread("empty")
        try:
            async with asyncio.timeout(_PATIENCE * limits.seconds):
                answer = await _extract(ending_of(name), data, limits)
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


async def _extract(ending: str, data: bytes, limits: ReadingLimits) -> object:
    """The answer of the process, None where it gave none."""
    work = [ending, limits.characters, limits.seconds, _MEGABYTES]
    most = limits.characters * _BYTES_OF_A_CHARACTER + 1024
    return await run_limited("bot.files.extracting", [*map(str, work)], data, most)


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


@dataclass(frozen=True, slots=True)
class VoicePieces:
    """What is recognised one by one: 16-bit samples of one channel, 16,000 a second, in base64;
    less than 60 seconds each."""

    pieces: tuple[str, ...]


async def convert_voice(data: bytes) -> VoicePieces | VoiceRefusal:
    """The voice of an Ogg file, or why there is none. Never raises."""
    work = [str(one) for one in (MOST_VOICE_SECONDS, _VOICE_SECONDS, _VOICE_MEGABYTES)]
    try:
        async with asyncio.timeout(_VOICE_PATIENCE_S):
            answer = await run_limited("bot.files.voice_samples", work, data, _VOICE_ANSWER_BYTES)
    except (TimeoutError, OSError) as exc:
        log.warning("voice.not_converted", error=type(exc).__name__)
        return "busy"
    fields = answer if isinstance(answer, dict) else {}
    pieces = fields.get("pieces")
    if isinstance(pieces, list) and all(isinstance(one, str) for one in pieces):
        return VoicePieces(tuple(one for one in pieces if one))
    return "long" if fields.get("refused") == "long" else "damaged"


async def run_limited(module: str, work: Sequence[str], data: bytes, most: int) -> object:
    """The JSON of at most `most` bytes that `python -m module *work` makes of `data`. None: it gave
    none; `{"refused": "time"}`: it used up its processor time. Ends the process where it is
    cancelled. Raises OSError where there can be no process."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *work,
        cwd=_ROOT,
        env={"LANG": "C.UTF-8"} | {k: v for k, v in os.environ.items() if k == "PYTHONPATH"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        answer = await _exchange(process, data, most)
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


async def _exchange(process: asyncio.subprocess.Process, data: bytes, most: int) -> bytes:
    """Gives the file and takes at most `most` bytes."""
    assert process.stdin is not None  # noqa: S101  pipes were asked for
    assert process.stdout is not None  # noqa: S101
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()
    output = bytearray()
    while len(output) <= most and (part := await process.stdout.read(65536)):
        output += part
    return bytes(output)


class NoReadingSlot(Exception):
    """No place became free in time."""


@dataclass(eq=False, slots=True)
class _SlotRequest:
    person: str
    chat: str
    admitted: asyncio.Future[None]


@dataclass(slots=True)
class ReadingSlots:
    """For one event loop."""

    _waiting: list[_SlotRequest] = field(default_factory=list)
    _holding: list[_SlotRequest] = field(default_factory=list)
    _turns: count[int] = field(default_factory=lambda: count(1))
    _last_turn: dict[tuple[str, str], int] = field(default_factory=dict)

    @contextlib.asynccontextmanager
    async def hold(self, person: str, chat: str, *, within_s: float) -> AsyncIterator[None]:
        """Holds a place while it is entered. Raises `NoReadingSlot` after `within_s` of waiting."""
        request = _SlotRequest(person, chat, asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        self._admit()
        try:
            await self._admission(request, within_s)
            yield
        finally:
            (self._waiting if request in self._waiting else self._holding).remove(request)
            self._admit()

    async def _admission(self, request: _SlotRequest, within_s: float) -> None:
        try:
            async with asyncio.timeout(within_s):
                await request.admitted
        except TimeoutError as exc:
            raise NoReadingSlot from exc

    def _admit(self) -> None:
        while fitting := [one for one in self._waiting if self._fits(one)]:
            request = min(fitting, key=self._rank)
            self._waiting.remove(request)
            self._holding.append(request)
            turn = next(self._turns)
            self._last_turn |= {("person", request.person): turn, ("chat", request.chat): turn}
            if not request.admitted.done():
                request.admitted.set_result(None)
        if not self._waiting and not self._holding:
            self._last_turn.clear()

    def _fits(self, request: _SlotRequest) -> bool:
        of_person = sum(one.person == request.person for one in self._holding)
        of_chat = sum(one.chat == request.chat for one in self._holding)
        return (
            len(self._holding) < READING_SLOTS
            and of_person < SLOTS_OF_A_PERSON
            and of_chat < SLOTS_OF_A_CHAT
        )

    def _rank(self, request: _SlotRequest) -> tuple[int, int]:
        """`min` keeps the order of arrival among equals."""
        person, chat = ("person", request.person), ("chat", request.chat)
        return self._last_turn.get(person, 0), self._last_turn.get(chat, 0)


def refusal_text(name: str, reason: Reason, limits: ReadingLimits, language: Language) -> str:
    """`name` is a `safe_name`; as it is shown, before it is escaped."""
    why = say(
        f"why-{reason}",
        language,
        megabytes=limits.megabytes,
        seconds=limits.seconds,
        files=MOST_FILES,
    )
    return say("not-read", language, name=name, why=why)
