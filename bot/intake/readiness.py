"""Whether what the web process needs answers; else what does not, and what to look at.

A memory that is away does not make the bot unready: it answers without it, and the webhook must go
on taking events. `/readyz` then says 200 with `degraded`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

import psycopg
import structlog

from bot.operations.doctor import feishu, model, supabase
from bot.operations.doctor.http_exchange import Silent
from bot.operations.doctor.result import Check, findings
from bot.queue.inbox import Inbox, QueueUnavailable, Spooled
from bot.settings import Settings
from memory.errors import KeyRefused, NotMigrated, StoreError

log = structlog.get_logger()

_TIMEOUT_S = 3.0
_REMEMBERED_S = 10.0
_MODEL_WORKS_S, _MODEL_TROUBLE_S = 600.0, 30.0
_STATUS_PAGE = "; look at Supabase's status page"


class Workers(Protocol):
    """What readiness asks of the workers beside the web process."""

    def trouble(self, slot: int) -> str: ...


class EventConnection(Protocol):
    """What readiness asks of the long connection."""

    @property
    def failure(self) -> str: ...


class NotReady(Exception):
    """A dependency does not answer; the message says which and what to look at."""


class Degraded(NotReady):
    """The bot does without it; the message says what people miss."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """Each check's "ok" or what is wrong. `degraded` are those that the bot does without."""

    checks: dict[str, str]
    degraded: tuple[str, ...]

    @property
    def ready(self) -> bool:
        return all(
            outcome == "ok" or name in self.degraded for name, outcome in self.checks.items()
        )


@dataclass
class Checks:
    """The dependencies of this process. Results of outside calls are kept for ten seconds, those
    of the model for ten minutes, or half a minute while something is wrong with it.

    `now` is seconds since epoch, `migrated` raises `NotMigrated`. `look` says whether people get
    answers (`bot.operations.doctor.health`).
    """

    settings: Settings
    inbox: Inbox
    workers: Workers | None = None
    connection: EventConnection | None = None
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    migrated: Callable[[], None] = lambda: None
    look: Callable[[], Sequence[Check]] | None = None
    _kept: dict[str, tuple[float, str]] = field(default_factory=dict)
    _degraded: set[str] = field(default_factory=set)
    _away_since: float | None = None

    def run(self) -> Readiness:
        """Looks at everything."""
        checks: dict[str, Callable[[], None]] = {"database": self._database}
        if self.look:
            checks["answers"] = self._answers
        if self.settings.supabase_url:
            checks["memory"] = self._memory
        checks["feishu"] = self._feishu
        if self.settings.openai_api_key:
            checks["model"] = self._model
        if self.connection:
            checks["connection"] = self._connection
        if self.workers:
            for slot in range(1, self.settings.workers + 1):
                checks[f"worker-{slot}"] = partial(self._worker, self.workers, slot)
        outcomes = {name: self._outcome(name, check) for name, check in checks.items()}
        return Readiness(outcomes, tuple(name for name in outcomes if name in self._degraded))

    def say_at_start(self) -> None:
        """Writes into the log what is wrong with what others run, before anybody asks."""
        looked = {"feishu": self._feishu} | (
            {"model": self._model} if self.settings.openai_api_key else {}
        )
        if self.look:
            looked["answers"] = self._answers
        for name, check in looked.items():
            if (outcome := self._outcome(name, check)) != "ok":
                log.warning("start.not_ready", check=name, problem=outcome)

    def _outcome(self, name: str, check: Callable[[], None]) -> str:
        at, kept = self._kept.get(name, (float("-inf"), ""))
        if self.clock() - at < _kept_s(name, kept) and not self._changes(name):
            return kept
        self._degraded.discard(name)
        try:
            check()
            outcome = "ok"
        except NotReady as exc:
            outcome = str(exc)
            if isinstance(exc, Degraded):
                self._degraded.add(name)
        self._kept[name] = (self.clock(), outcome)
        return outcome

    def _changes(self, name: str) -> bool:
        """What costs nothing to look at is looked at each time, and a memory that may be away."""
        return name.startswith(("worker", "connection", "answers")) or (
            name == "memory" and self._spooling()
        )

    def _database(self) -> None:
        try:
            self.inbox.ping()
        except QueueUnavailable as exc:
            raise NotReady(f"the queue's database does not answer ({exc})") from exc
        try:
            self.migrated()
        except NotMigrated as exc:
            raise NotReady(str(exc)) from exc
        except psycopg.Error as exc:
            raise NotReady(f"the queue's database does not answer ({type(exc).__name__})") from exc

    def _worker(self, workers: Workers, slot: int) -> None:
        """One that is missing is done without, as long as another works."""
        if trouble := workers.trouble(slot):
            others = [n for n in range(1, self.settings.workers + 1) if not workers.trouble(n)]
            raise (Degraded if others else NotReady)(trouble)

    def _connection(self) -> None:
        if self.connection and (failure := self.connection.failure):
            raise NotReady(
                f"the long connection to Feishu is not open ({failure}): look at the log, and at "
                "the subscription mode in the console (Events & Callbacks)"
            )

    def _feishu(self) -> None:
        _require(feishu.credentials(self.settings, timeout_s=_TIMEOUT_S)[0])

    def _model(self) -> None:
        """A wrong key is nobody's passing trouble: no question can be answered."""
        found = model.models(self.settings, timeout_s=_TIMEOUT_S)
        working = any(check.state == "ok" for check in found)
        for check in findings(found):
            raise (Degraded if working or check.state == "warn" else NotReady)(check.sentence.en)

    def _memory(self) -> None:
        """Whether Supabase answers, and nothing waits for it. One query in the queue's database."""
        try:
            self._supabase()
            failure = ""
            self._away_since = None
        except NotReady as exc:
            failure = str(exc)
            self._away_since = self._away_since or self.now()
        spooled = self._spooled()
        if failure:
            since = min(filter(None, (self._away_since, spooled.since)))
            raise Degraded(
                f"away since {_time(since)} ({failure}); {spooled.turns} turns wait to be written; "
                "people are answered without history"
            )
        if spooled.refused:
            raise Degraded(
                f"{spooled.refused} writes were refused: look for spool.refused in the worker's "
                "log, then restart the worker to try them again"
            )
        if spooled.turns:
            raise Degraded(
                f"back; {spooled.turns} turns since {_time(spooled.since)} wait to be written"
            )

    def _spooling(self) -> bool:
        """Whether a worker has found the memory away, or the queue's database is."""
        try:
            return self.inbox.spooled().turns > 0
        except QueueUnavailable:
            return True

    def _spooled(self) -> Spooled:
        try:
            return self.inbox.spooled()
        except QueueUnavailable as exc:
            raise NotReady(f"the queue's database does not answer ({exc})") from exc

    def _answers(self) -> None:
        """The bot goes on taking questions: what is wrong may be over with the next one."""
        try:
            found = self.look() if self.look else ()
        except QueueUnavailable:
            return  # the database's check says so
        for check in found:
            if check.state == "fail":
                raise Degraded(f"{check.sentence.en} Next: {check.next_step or 'look at the log'}")

    def _supabase(self) -> None:
        try:
            supabase.asked(self.settings, timeout_s=_TIMEOUT_S)
        except (KeyRefused, NotMigrated) as exc:
            raise NotReady(str(exc)) from exc
        except (Silent, StoreError) as exc:
            raise NotReady(f"{exc}{_STATUS_PAGE}") from exc


def _require(check: Check) -> None:
    """Raises `NotReady` for what only a person can mend."""
    if check.state == "fail":
        raise NotReady(check.sentence.en)


def _kept_s(name: str, outcome: str) -> float:
    """For how many seconds an outcome is believed; asking a model costs a token."""
    if name == "model":
        return _MODEL_WORKS_S if outcome == "ok" else _MODEL_TROUBLE_S
    return _REMEMBERED_S if outcome == "ok" else 0.0


def _time(since: float | None) -> str:
    """Seconds since epoch as ISO 8601."""
    return datetime.fromtimestamp(since or 0, UTC).isoformat(timespec="seconds")
