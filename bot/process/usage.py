"""Counts what a worker uses, and holds the limits of the day and the month as last heard.

Counts and records of turns are collected in memory and written some at a time: what a killed
worker had not written yet is lost. On its free plan Feishu answers only so many calls a month
to all apps of a tenant together (99991403; Feishu, "Custom app API call limit")."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal, NamedTuple

from bot.process import metrics

UsageService = Literal["feishu", "model"]

_MOST_RECORDS = 5000

NEAR_SHARE = 0.8
WARNING_SHARES = (NEAR_SHARE, 0.9, 1.0)

TokenLimitKind = Literal["person", "chat"]


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
