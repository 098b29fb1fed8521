"""At most so many calls per second and key, in order; keys never wait for each other.

Source: Feishu, "Send message" (5 a second per chat, shared by all bots in it; 50 a second per app),
"Update card" (5 a second per message), "Streaming updates" (10 operations a second per card).

The limits hold for all workers together: those of one machine take their slots from one file, and
each machine keeps to its share. No call waits for an answer about its slot.
"""

import asyncio
import fcntl
import math
import mmap
import os
import struct
import time
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bot.process.concurrency import FewestTurnsQueue

# The platform counts arrivals, which the network may push closer together than departures.
_WINDOW_S = 1.05
_SWEEP_AT = 1024
_MOST = 10  # slots remembered of one key; no limit is higher
_KEYS = 8192
_FUTURE_S = 600.0  # further ahead than anybody waits: of another boot's clock

_PLACE = struct.Struct(f"=q{_MOST}d")


def next_slot(
    slots: tuple[float, ...], now: float, limit: int, window_s: float = _WINDOW_S
) -> tuple[tuple[float, ...], float]:
    """The last slots with the next one taken, and the seconds to wait until it.

    No window of `window_s` seconds ever holds more than `limit` slots, bursts included.
    """
    earliest = slots[-limit] + window_s if len(slots) >= limit else now
    slot = max(now, earliest, slots[-1] if slots else now)
    return (*slots[-(_MOST - 1) :], slot), slot - now


def shared_limit(limit: int, share: float, window_s: float = _WINDOW_S) -> tuple[int, float]:
    """What is left of `limit` calls in a window for one of several senders: (calls, window).

    Less than one call in a window is one in a longer window.
    """
    mine = limit * share
    return (math.floor(mine), window_s) if mine >= 1 else (1, window_s / mine)


class Slots(Protocol):
    """When the calls of each key left or will leave, on the machine's monotonic clock."""

    def take(
        self, key: str, now: float, limit: int, window_s: float, *, later: bool = True
    ) -> float:
        """The seconds to wait until the next slot, which is taken; unless `later`, only if these
        are 0."""
        ...


class OwnSlots:
    """Of this process alone."""

    def __init__(self) -> None:
        self._slots: dict[str, tuple[float, ...]] = {}

    def take(
        self, key: str, now: float, limit: int, window_s: float, *, later: bool = True
    ) -> float:
        self._forget_idle(now - window_s)
        taken_slots, wait_s = next_slot(self._slots.get(key, ()), now, limit, window_s)
        if later or wait_s <= 0:
            self._slots[key] = taken_slots
        return wait_s

    def _forget_idle(self, before: float) -> None:
        if len(self._slots) >= _SWEEP_AT:
            self._slots = {k: s for k, s in self._slots.items() if s[-1] > before}


class SharedSlots:
    """Of all processes that open `file`. A place per hash of a key: two keys that meet in one
    wait for each other, which is rare and breaks no limit."""

    def __init__(self, file: Path) -> None:
        self._file = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(self._file, _KEYS * _PLACE.size)
        self._slots = mmap.mmap(self._file, _KEYS * _PLACE.size)

    def take(
        self, key: str, now: float, limit: int, window_s: float, *, later: bool = True
    ) -> float:
        at = zlib.crc32(key.encode()) % _KEYS * _PLACE.size
        fcntl.flock(self._file, fcntl.LOCK_EX)  # held for microseconds; a killed holder's is freed
        try:
            count, *shared_slots = _PLACE.unpack_from(self._slots, at)
            slots = tuple([s for s in shared_slots[:count] if s < now + _FUTURE_S])
            taken_slots, wait_s = next_slot(slots, now, limit, window_s)
            if later or wait_s <= 0:
                empty_slots = (0.0,) * (_MOST - len(taken_slots))
                _PLACE.pack_into(self._slots, at, len(taken_slots), *taken_slots, *empty_slots)
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        return wait_s


@dataclass
class SharedPace:
    """What all pacers of a process go by. `share`: the part of each limit that is this machine's,
    above 0 and up to 1; it may change at any time."""

    slots: Slots = field(default_factory=OwnSlots)
    share: float = 1.0


class Pacer:
    """Waits for a key's turn: `limit` calls, at most ten, in any `window_s` seconds.

    `name` tells its keys from those of other pacers.
    """

    def __init__(
        self,
        name: str,
        limit: int,
        pace: SharedPace,
        *,
        window_s: float = _WINDOW_S,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._name = name
        self._limit = limit
        self._pace = pace
        self._window_s = window_s
        self._clock = clock
        self._sleep = sleep

    async def turn(self, key: str, whose: str = "") -> None:
        """Return when a call for `key` may leave; turns are handed out in the order asked."""
        wait_s = self._take(key, self._limit)
        if wait_s > 0:
            await self._sleep(wait_s)

    def _take(self, key: str, limit: int, *, later: bool = True) -> float:
        calls, window_s = shared_limit(limit, self._pace.share, self._window_s)
        now = self._clock()
        return self._pace.slots.take(f"{self._name}:{key}", now, calls, window_s, later=later)


class FairPacer(Pacer):
    """A pacer that nobody uses up alone: whoever has had half of a window's calls leaves the rest
    of them to the others. Whoever has had the fewest of late comes first."""

    def __init__(self, name: str, limit: int, pace: SharedPace, **seams: Any) -> None:
        super().__init__(name, limit, pace, **seams)
        self._half = -(-limit // 2)
        self._lines: dict[tuple[str, bool], FewestTurnsQueue] = {}

    async def turn(self, key: str, whose: str = "") -> None:
        """Return when a call of `whose` for `key` may leave."""
        own = f"{key} {whose}"
        has_many = self._take(own, self._half, later=False) > 0
        line = self._lines.setdefault((key, has_many), FewestTurnsQueue(self._clock))
        await line.enter(whose)
        try:
            while (wait_s := self._take(key, self._most(has_many), later=False)) > 0:
                await self._sleep(wait_s)
            if has_many:
                self._take(own, _MOST)  # it counts for them all the same
        finally:
            line.leave()

    def _most(self, has_many: bool) -> int:
        """How many calls of anybody leave in a window."""
        return self._half if has_many else self._limit


def per_second_pacer(name: str, calls: int, pace: SharedPace, **seams: Any) -> Pacer:
    """A pacer for a limit higher than ten: the same rate in a shorter window, so without bursts."""
    return Pacer(name, _MOST, pace, window_s=_WINDOW_S * _MOST / calls, **seams)


def fractional_pacer(name: str, calls: int, of: int, pace: SharedPace, **seams: Any) -> Pacer:
    """A pacer for one call in every `of` of a limit of `calls` a second."""
    limit = min(max(calls // of, 1), _MOST)
    return Pacer(name, limit, pace, window_s=_WINDOW_S * limit * of / calls, **seams)
