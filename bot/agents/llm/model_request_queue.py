"""Requests wait here in front of a model while it has as many as it takes.

The chats take turns. While a request waits, the time limits of its turn stand still, so one that
waited long is not given up as soon as it is its turn.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import structlog

from bot.agents.llm.model import ModelFailed
from bot.agents.llm.request_limit import RequestLimit
from bot.agents.llm.time_limits import standing_still
from bot.process import metrics
from bot.process.fair_line import FairLine
from bot.process.working_places import chat_of_this_job

log = structlog.get_logger()

LONGEST_WAIT_S = 300.0
_SAID_EVERY_S = 10.0
_LOOKS_EVERY_S = 1.0


class ModelRequestQueue:
    """The queue in front of the model `name`. For one event loop; `clock` is monotonic seconds."""

    def __init__(self, name: str = "", *, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._clock = clock
        self._limit = RequestLimit(clock)
        self._line = FairLine(self._leave)
        self._in_flight = 0
        self._under_way: dict[Admission, float] = {}
        self._reopens: asyncio.TimerHandle | None = None
        self._looks: asyncio.TimerHandle | None = None
        self._said_at = -_SAID_EVERY_S

    @asynccontextmanager
    async def admitted(self, waits_s: float = LONGEST_WAIT_S) -> AsyncIterator[Admission]:
        """One request, when it is its turn. Raises `ModelFailed` after `waits_s` of waiting."""
        await self._enter(waits_s)
        admission, sent_at = Admission(self), self._clock()
        self._under_way[admission] = sent_at
        try:
            with metrics.MODEL_REQUESTS.track_inprogress():
                yield admission
        finally:
            del self._under_way[admission]
            self._leave()

    def answered(self, admission: Admission) -> None:
        """The answer to a request has begun."""
        sent_at = self._under_way[admission]
        self._limit.answered(sent_at, self._in_flight, crowded=bool(self._line))
        self._call()

    def refused(self, admission: Admission, retry_after_s: float) -> bool:
        """The model has too many requests. Whether another attempt is worth the wait; nobody asks
        it for a while then."""
        others = self._in_flight - 1
        if not self._limit.refused(others, self._oldest(but=admission)):
            self._call()
            return False
        if self._clock() - self._said_at >= _SAID_EVERY_S:
            self._said_at = self._clock()
            log.warning("model.limited", model=self._name, in_flight=others)
        if self._reopens is None:
            pause_s = self._limit.pause_s(retry_after_s)
            self._reopens = asyncio.get_running_loop().call_later(pause_s, self._reopen)
        return True

    async def _enter(self, waits_s: float) -> None:
        if self._has_room() and not self._line:
            self._in_flight += 1
            return
        with metrics.MODEL_WAITING.track_inprogress(), standing_still():
            self._look_later()
            try:
                async with asyncio.timeout(waits_s):
                    await self._line.wait(chat_of_this_job())  # whoever calls has counted this one
            except TimeoutError as exc:
                raise ModelFailed("rate_limited") from exc

    def _has_room(self) -> bool:
        return self._reopens is None and self._in_flight + 1 <= self._limit.most(self._oldest())

    def _oldest(self, but: Admission | None = None) -> float | None:
        """When the oldest of the requests under way was sent."""
        return next((at for one, at in self._under_way.items() if one is not but), None)

    def _leave(self) -> None:
        self._in_flight -= 1
        self._call()

    def _call(self) -> None:
        while self._line and self._has_room():
            self._in_flight += self._line.call_next()

    def _reopen(self) -> None:
        self._reopens = None
        self._call()

    def _look_later(self) -> None:
        """A limit can be lifted while nothing comes and goes."""
        if self._looks is None:
            self._looks = asyncio.get_running_loop().call_later(_LOOKS_EVERY_S, self._look)

    def _look(self) -> None:
        self._looks = None
        self._call()
        if self._line:
            self._look_later()


class Admission:
    """A request on its way to the model."""

    __slots__ = ("_answered", "_queue")

    def __init__(self, queue: ModelRequestQueue) -> None:
        self._queue = queue
        self._answered = False

    def answered(self) -> None:
        """The answer has begun."""
        if not self._answered:
            self._answered = True
            self._queue.answered(self)

    def refused(self, retry_after_s: float) -> bool:
        """As `ModelRequestQueue.refused`."""
        return self._queue.refused(self, retry_after_s)
