"""How much each person may ask for: a level that every request lowers and that fills evenly. Pure.

Requests count by the time at which their event arrived, so a slow worker lets no more of them
through. Each worker decides by itself and shares its levels with the others once a second
(`bot.operations.maintenance`). Together they may let too much through for that second;
the level then falls below zero, and the person waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_MINUTE_S = 60.0
# No backlog of a person pauses this long, so a level that was dropped is not needed for one.
_IDLE_S = 600.0


class Asker(NamedTuple):
    tenant_key: str
    open_id: str


@dataclass(slots=True)
class _Level:
    requests: float
    at_s: float
    unshared_requests: int = 0
    is_told: bool = False
    is_used: bool = True  # since `forget_idle` looked at it
    idle_since_s: float = 0.0


@dataclass
class PersonRates:
    """At most `per_minute` requests (0: no limit), a quarter of them at once."""

    per_minute: int = 0
    _levels: dict[Asker, _Level] = field(default_factory=dict)

    @property
    def at_once(self) -> int:
        """As in `sql/functions/person_rates.sql`."""
        return max(1, self.per_minute // 4)

    def take(self, asker: Asker, at_s: float) -> bool:
        """Whether a request that arrived at `at_s` (s since epoch) is within the rate; it counts
        if so."""
        if not self.per_minute:
            return True
        if self._refill(asker, at_s).requests < 1:
            return False
        self.count(asker, at_s)
        return True

    def count(self, asker: Asker, at_s: float, requests: int = 1) -> None:
        """Counts requests that are carried out in any case."""
        if self.per_minute and requests:
            level = self._refill(asker, at_s)
            level.requests -= requests
            level.unshared_requests += requests

    def has_plenty(self, asker: Asker, at_s: float) -> bool:
        """Whether more than half is left."""
        return not self.per_minute or self._refill(asker, at_s).requests > self.at_once / 2

    def is_first_refusal(self, asker: Asker, at_s: float) -> bool:
        """True once, until the level is full again."""
        level = self._refill(asker, at_s)
        first, level.is_told = not level.is_told, True
        return first

    def knows_refusal(self, asker: Asker, at_s: float) -> bool:
        """Whether another request would be refused, and the person has been told so."""
        level = self._levels.get(asker)
        return level is not None and level.is_told and self._refill(asker, at_s).requests < 1

    def take_unshared(self) -> list[dict[str, Any]]:
        """What the other workers are to learn, as `share_person_rates` takes it."""
        rows = []
        for asker, level in self._levels.items():
            if level.unshared_requests:
                at_ms = int(level.at_s * 1000)
                rows.append(
                    {**asker._asdict(), "requests": level.unshared_requests, "at_ms": at_ms}
                )
                level.unshared_requests = 0
        return rows

    def put_back(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """These could not be shared."""
        for row in rows:
            if level := self._levels.get(_asker_of(row)):
                level.unshared_requests += row["requests"]

    def hear(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """The levels as all workers know them."""
        for row in rows:
            if level := self._levels.get(_asker_of(row)):
                level.requests = row["level"] - level.unshared_requests
                level.at_s = row["at_ms"] / 1000

    def forget_idle(self, now_s: float) -> None:
        """Drops the levels that nobody has used for ten minutes and that are full again.

        Levels fill by the time of requests, which may have waited for long. So this fills none, and
        a person whose requests are still being worked off keeps their level.
        """
        for asker, level in list(self._levels.items()):
            if level.is_used or level.unshared_requests:
                level.is_used, level.idle_since_s = False, now_s
            elif now_s - level.idle_since_s >= _IDLE_S and self._is_full(level, now_s):
                del self._levels[asker]

    def _refill(self, asker: Asker, at_s: float) -> _Level:
        level = self._levels.setdefault(asker, _Level(self.at_once, at_s))
        level.is_used = True
        if at_s > level.at_s:
            level.requests = self._requests_at(level, at_s)
            level.at_s = at_s
        if level.requests >= self.at_once:
            level.is_told = False
        return level

    def _is_full(self, level: _Level, at_s: float) -> bool:
        return self._requests_at(level, at_s) >= self.at_once

    def _requests_at(self, level: _Level, at_s: float) -> float:
        refill = max(at_s - level.at_s, 0) * self.per_minute / _MINUTE_S
        return min(self.at_once, level.requests + refill)


def _asker_of(row: Mapping[str, Any]) -> Asker:
    return Asker(row["tenant_key"], row["open_id"])
