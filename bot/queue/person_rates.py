"""How much each person may ask for: a level that every request lowers and that fills evenly. Pure.

Requests count by the time at which their event arrived, so a slow worker lets no more of them
through. Each worker decides by itself and shares its levels with the others once a second
(`bot.operations.maintenance.person_rates`). Together they may let too much through for that second;
the level then falls below zero, and the person waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_MINUTE_S = 60.0


class Asker(NamedTuple):
    tenant_key: str
    open_id: str


@dataclass(slots=True)
class _Level:
    requests: float
    at_s: float
    unshared: int = 0
    told: bool = False


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
        if self._filled(asker, at_s).requests < 1:
            return False
        self.count(asker, at_s)
        return True

    def count(self, asker: Asker, at_s: float, requests: int = 1) -> None:
        """Counts requests that are carried out in any case."""
        if self.per_minute and requests:
            level = self._filled(asker, at_s)
            level.requests -= requests
            level.unshared += requests

    def has_plenty(self, asker: Asker, at_s: float) -> bool:
        """Whether more than half is left."""
        return not self.per_minute or self._filled(asker, at_s).requests > self.at_once / 2

    def is_first_refusal(self, asker: Asker, at_s: float) -> bool:
        """True once, until the level is full again."""
        level = self._filled(asker, at_s)
        first, level.told = not level.told, True
        return first

    def take_unshared(self) -> list[dict[str, Any]]:
        """What the other workers are to learn, as `share_person_rates` takes it."""
        rows = []
        for asker, level in self._levels.items():
            if level.unshared:
                at_ms = int(level.at_s * 1000)
                rows.append({**asker._asdict(), "requests": level.unshared, "at_ms": at_ms})
                level.unshared = 0
        return rows

    def put_back(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """These could not be shared."""
        for row in rows:
            if level := self._levels.get(_asker_of(row)):
                level.unshared += row["requests"]

    def hear(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """The levels as all workers know them."""
        for row in rows:
            if level := self._levels.get(_asker_of(row)):
                level.requests = row["level"] - level.unshared
                level.at_s = row["at_ms"] / 1000

    def forget_full(self, now_s: float) -> None:
        """Keeps no level that would be full by now."""
        for asker in list(self._levels):
            level = self._filled(asker, now_s)
            if level.requests >= self.at_once and not level.unshared:
                del self._levels[asker]

    def _filled(self, asker: Asker, at_s: float) -> _Level:
        level = self._levels.setdefault(asker, _Level(self.at_once, at_s))
        if at_s > level.at_s:
            gained = (at_s - level.at_s) * self.per_minute / _MINUTE_S
            level.requests = min(self.at_once, level.requests + gained)
            level.at_s = at_s
        if level.requests >= self.at_once:
            level.told = False
        return level


def _asker_of(row: Mapping[str, Any]) -> Asker:
    return Asker(row["tenant_key"], row["open_id"])
