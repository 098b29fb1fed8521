"""Tracks a turn while it runs: its progress, sources and limits, and whether it was stopped.

Whoever asks for a stop tells the queue's database (`feishu_bot.stop_turn`), which tells every
worker: the click does not wait behind the turn that it stops. A turn that is taken up after a crash
looks there first."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

STOPPED: Final = "stopped"

_NOTED: ContextVar[set[str] | None] = ContextVar("drawn_on", default=None)

# Seconds: a question waits for its vector, so after three slower ones in a row none does.
SLOW_EMBEDDING_S = 0.5

_limits: ContextVar[tuple[asyncio.Timeout, ...]] = ContextVar("limits", default=())


class Stop:
    """Whether one turn is to stop, and who wants to know at once."""

    def __init__(self) -> None:
        self.asked = False
        self._act: Callable[[], None] | None = None

    def ask(self) -> None:
        """The turn is to stop. Asked again, nothing more happens."""
        if not self.asked:
            self.asked = True
            if self._act:
                self._act()

    @contextlib.contextmanager
    def ends(self, act: Callable[[], None]) -> Iterator[None]:
        """While the body runs, `act` is called when the turn is to stop; at once if it was."""
        self._act = act
        if self.asked:
            act()
        try:
            yield
        finally:
            self._act = None


class Stops:
    """The turns that this worker runs, by id."""

    def __init__(self) -> None:
        self._running: dict[str, Stop] = {}

    @contextlib.contextmanager
    def watching(self, turn_id: str) -> Iterator[Stop]:
        """The turn runs while the body does."""
        stop = self._running[turn_id] = Stop()
        try:
            yield stop
        finally:
            if self._running.get(turn_id) is stop:
                del self._running[turn_id]

    def ask(self, turn_ids: Iterable[str]) -> None:
        """Stops those of the turns that run here."""
        for turn_id in turn_ids:
            if stop := self._running.get(turn_id):
                stop.ask()


@dataclass(frozen=True)
class Progress:
    """The whole text so far, or the name of the tool that runs; neither while nothing is said.

    `read` gives what of the text is for people. Pieces come faster than anybody looks, so it is
    called only for those that are shown.
    """

    raw_text: str = ""
    tool: str = ""
    read: Callable[[str], str] = field(default=str, compare=False)

    @cached_property
    def text(self) -> str:
        return self.read(self.raw_text)


OnProgress = Callable[[Progress], Awaitable[None]]


class WrittenSoFar:
    """Passes progress on where somebody watches, and keeps the text that was said last. `begun` is
    called at the first."""

    def __init__(self, on_progress: OnProgress | None = None) -> None:
        self._on_progress = on_progress
        self.begun: Callable[[], None] | None = None
        self._last = Progress()

    @property
    def text(self) -> str:
        return self._last.text

    async def __call__(self, progress: Progress) -> None:
        self._last = progress
        if self.begun:
            self.begun()
            self.begun = None
        if self._on_progress:
            await self._on_progress(progress)


@contextmanager
def noting_sources() -> Iterator[set[str]]:
    """The ids that `note_sources` gets within the body, tools included. May stand in another."""
    sources: set[str] = set()
    around = _NOTED.get()
    token = _NOTED.set(sources)
    try:
        yield sources
    finally:
        _NOTED.reset(token)
        if around is not None:
            around |= sources


def note_sources(ids: Iterable[str | None]) -> None:
    """A model is given what these turns said, or these notes (`note_source`)."""
    sources = _NOTED.get()
    if sources is not None:
        sources.update(filter(None, ids))


class LimitReached(Exception):
    """The turn may not go on. `reason` names the limit, for logs."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Limits:
    """The most requests, tool calls, and tokens in and out, as reported."""

    requests: int = 12
    tool_calls: int = 20
    tokens: int = 120_000


@dataclass(slots=True)
class Spent:
    """Counts what a turn uses. Each method raises `LimitReached` before a limit is exceeded."""

    limits: Limits = Limits()
    requests: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def ask(self) -> None:
        """One more request."""
        if self.requests >= self.limits.requests:
            raise LimitReached("limit_requests")
        if self.input_tokens + self.output_tokens >= self.limits.tokens:
            raise LimitReached("limit_tokens")
        self.requests += 1

    def call(self, count: int) -> None:
        """So many more tool calls."""
        if self.tool_calls + count > self.limits.tool_calls:
            raise LimitReached("limit_tool_calls")
        self.tool_calls += count

    def count(self, input_tokens: int, output_tokens: int) -> None:
        """The tokens of a response."""
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens


@asynccontextmanager
async def time_limit(seconds: float) -> AsyncIterator[asyncio.Timeout]:
    """As `asyncio.timeout`."""
    async with asyncio.timeout(seconds) as limit:
        outer = _limits.set((*_limits.get(), limit))
        try:
            yield limit
        finally:
            _limits.reset(outer)


def time_left() -> float:
    """Seconds until the first of the time limits around this task."""
    now = asyncio.get_running_loop().time()
    ends = (when for limit in _limits.get() if (when := limit.when()) is not None)
    return min(ends, default=math.inf) - now


@contextmanager
def paused_time_limits() -> Iterator[None]:
    """While it is entered the time limits around it do not run, unless somebody sets them anew."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    stopped_limits = [
        (limit, when) for limit in _limits.get() if (when := limit.when()) is not None
    ]
    for limit, _ in stopped_limits:
        limit.reschedule(None)
    try:
        yield
    finally:
        for limit, when in stopped_limits:
            if limit.when() is None:
                limit.reschedule(when + loop.time() - began)
