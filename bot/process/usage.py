"""Counts what a worker uses, holds the limits of the day and the month as last heard, and knows
how much each person may ask for.

Counts and records of turns are collected in memory and written some at a time: what a killed
worker had not written yet is lost. On its free plan Feishu answers only so many calls a month
to all apps of a tenant together (99991403; Feishu, "Custom app API call limit").

Requests of people count by the time at which their event arrived, so a slow worker lets no more of
them through. Each worker decides by itself and shares its levels with the others once a second
(`bot.operations.maintenance`). Together they may let too much through for that second;
the level then falls below zero, and the person waits for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal, NamedTuple

from bot.process import metrics
from memory.scope import FeishuPerson

UsageService = Literal["feishu", "model"]

_MOST_RECORDS = 5000

NEAR_SHARE = 0.8
WARNING_SHARES = (NEAR_SHARE, 0.9, 1.0)

TokenLimitKind = Literal["person", "chat"]

_MINUTE_S = 60.0
# No backlog of a person pauses this long, so a level that was dropped is not needed for one.
_IDLE_S = 600.0


class UsedCalls(NamedTuple):
    """Calls of `name` of a service; tokens as a model reports them."""

    service: UsageService
    name: str
    calls: int
    tokens_in: int = 0
    tokens_out: int = 0


@dataclass
class UsageCounter:
    """What is not written yet."""

    _used_calls: dict[tuple[UsageService, str], UsedCalls] = field(default_factory=dict)

    def count_call(self, api: str) -> None:
        """A call that Feishu counts."""
        metrics.FEISHU_CALLS.labels(api=api).inc()
        self._add(UsedCalls("feishu", api, 1))

    def count_request(self, kind: str, tokens_in: int, tokens_out: int = 0) -> None:
        """A request to a model that is no answer: `kind` is judge, summary or embedding."""
        metrics.count_tokens(kind, tokens_in, tokens_out)
        self._add(UsedCalls("model", kind, 1, tokens_in, tokens_out))

    def take(self) -> list[UsedCalls]:
        """All of it, to be written."""
        usage = list(self._used_calls.values())
        self._used_calls.clear()
        return usage

    def put_back(self, usage: Iterable[UsedCalls]) -> None:
        """It could not be written."""
        for one in usage:
            self._add(one)

    def _add(self, addition: UsedCalls) -> None:
        key = (addition.service, addition.name)
        had = self._used_calls.get(key)
        if had:
            sums = (had.calls + addition.calls, had.tokens_in + addition.tokens_in)
            addition = UsedCalls(*key, *sums, had.tokens_out + addition.tokens_out)
        self._used_calls[key] = addition


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """What a turn was made of: ids, counts and times; `at` is aware, its zone says which day."""

    turn_id: str
    at: datetime
    fields: Mapping[str, Any]

    def row(self) -> dict[str, Any]:
        """As `keep_turn_records` takes it."""
        day = self.at.date().isoformat()
        return {"turn_id": self.turn_id, "day": day, "record": dict(self.fields)}


@dataclass
class PendingTurnRecords:
    """Those that are not written yet; the oldest go when nobody takes them."""

    _waiting: deque[TurnRecord] = field(default_factory=lambda: deque(maxlen=_MOST_RECORDS))

    def add(self, record: TurnRecord) -> None:
        self._waiting.append(record)

    def take(self) -> list[TurnRecord]:
        """All of them, to be written."""
        records = list(self._waiting)
        self._waiting.clear()
        return records

    def put_back(self, records: list[TurnRecord]) -> None:
        """They could not be written: before those that have come since."""
        self._waiting.extendleft(reversed(records))


@dataclass
class MonthlyQuota:
    """`used_calls` of `calls` a month; 0 calls: there is no such limit."""

    calls: int = 0
    used_calls: int = 0

    def hear(self, used_calls: int) -> float | None:
        """What was used this month: the highest of `LEVELS` that this passes, None for none new."""
        before, self.used_calls = self.used_calls, used_calls
        was, now = used_share(before, self.calls), used_share(used_calls, self.calls)
        passed_levels = [level for level in WARNING_SHARES if was < level <= now]
        return passed_levels[-1] if passed_levels else None

    @property
    def is_short(self) -> bool:
        """Whether to save calls."""
        return is_quota_short(self.used_calls, self.calls)


def used_share(used_calls: int, calls: int) -> float:
    """The part that is used; 0 without a limit."""
    return used_calls / calls if calls else 0.0


def is_quota_short(used_calls: int, calls: int) -> bool:
    """Whether little is left."""
    return used_share(used_calls, calls) >= NEAR_SHARE


@dataclass
class DailyTokenLimit:
    """Nobody has used anything up before `hear`."""

    _day: date | None = None
    _people: frozenset[str] = frozenset()
    _chats: frozenset[str] = frozenset()

    def hear(self, day: date, people: Iterable[str], chats: Iterable[str]) -> None:
        """open_ids and chats that have used up what `day` allows."""
        self._day, self._people, self._chats = day, frozenset(people), frozenset(chats)

    def reached(self, day: date, open_id: str, chat_id: str) -> TokenLimitKind | None:
        """Which limit stands in the way of a question that is asked on `day`."""
        if day != self._day:
            return None
        if open_id in self._people:
            return "person"
        return "chat" if chat_id in self._chats else None


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
    _levels: dict[FeishuPerson, _Level] = field(default_factory=dict)

    @property
    def at_once(self) -> int:
        """As in `sql/functions/person_rates.sql`."""
        return max(1, self.per_minute // 4)

    def take(self, asker: FeishuPerson, at_s: float) -> bool:
        """Whether a request that arrived at `at_s` (s since epoch) is within the rate; it counts
        if so."""
        if not self.per_minute:
            return True
        if self._refill(asker, at_s).requests < 1:
            return False
        self.count(asker, at_s)
        return True

    def count(self, asker: FeishuPerson, at_s: float, requests: int = 1) -> None:
        """Counts requests that are carried out in any case."""
        if self.per_minute and requests:
            level = self._refill(asker, at_s)
            level.requests -= requests
            level.unshared_requests += requests

    def has_plenty(self, asker: FeishuPerson, at_s: float) -> bool:
        """Whether more than half is left."""
        return not self.per_minute or self._refill(asker, at_s).requests > self.at_once / 2

    def is_first_refusal(self, asker: FeishuPerson, at_s: float) -> bool:
        """True once, until the level is full again."""
        level = self._refill(asker, at_s)
        first, level.is_told = not level.is_told, True
        return first

    def knows_refusal(self, asker: FeishuPerson, at_s: float) -> bool:
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
                    {
                        "tenant_key": asker.tenant_key,
                        "open_id": asker.open_id,
                        "requests": level.unshared_requests,
                        "at_ms": at_ms,
                    }
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

    def _refill(self, asker: FeishuPerson, at_s: float) -> _Level:
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


def _asker_of(row: Mapping[str, Any]) -> FeishuPerson:
    return FeishuPerson(row["tenant_key"], row["open_id"])
