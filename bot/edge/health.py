"""`/healthz` (the process is up), `/readyz` (what it needs answers; else what), `/metrics`.

A memory that is away does not make the bot unready: it answers without it, and the webhook must go
on taking events. `/readyz` then says 200 with `degraded`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

import psycopg
import requests
from flask import Flask, Response, jsonify

from bot.queue.inbox import Inbox, QueueUnavailable, Spooled
from bot.settings import Settings
from bot.telemetry import metrics
from memory.away.probe import PROBE
from memory.backends.refusals import refusal
from memory.errors import KeyRefused, NotMigrated

_TIMEOUT_S = 3.0
_REMEMBERED_S = 10.0
_STATUS_PAGE = "; look at Supabase's status page"


class Workers(Protocol):
    """What readiness asks of the workers beside the web process."""

    def trouble(self, slot: int) -> str: ...


class Connection(Protocol):
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
    """The dependencies of this process. Results of outside calls are kept for ten seconds.

    `now` is seconds since epoch, `migrated` raises `NotMigrated`.
    """

    settings: Settings
    inbox: Inbox
    workers: Workers | None = None
    connection: Connection | None = None
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    migrated: Callable[[], None] = lambda: None
    _kept: dict[str, tuple[float, str]] = field(default_factory=dict)
    _degraded: set[str] = field(default_factory=set)
    _away_since: float | None = None

    def run(self) -> Readiness:
        """Looks at everything."""
        checks: dict[str, Callable[[], None]] = {"database": self._database}
        if self.settings.supabase_url:
            checks["memory"] = self._memory
        checks["feishu"] = self._feishu
        if self.connection:
            checks["connection"] = self._connection
        if self.workers:
            for slot in range(1, self.settings.workers + 1):
                checks[f"worker-{slot}"] = partial(self._worker, self.workers, slot)
        outcomes = {name: self._outcome(name, check) for name, check in checks.items()}
        return Readiness(outcomes, tuple(name for name in outcomes if name in self._degraded))

    def _outcome(self, name: str, check: Callable[[], None]) -> str:
        at, kept = self._kept.get(name, (float("-inf"), ""))
        fresh = self.clock() - at < _REMEMBERED_S and not self._changes(name)
        if kept == "ok" and fresh:
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
        return name.startswith(("worker", "connection")) or (name == "memory" and self._spooling())

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
        answer = _post(
            f"{self.settings.domain}/open-apis/auth/v3/tenant_access_token/internal",
            {"app_id": self.settings.feishu_app_id, "app_secret": self.settings.feishu_app_secret},
            {},
        )
        code = _json(answer).get("code")
        if code != 0:
            raise NotReady(f"Feishu refuses the app's credentials (code {code})")

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

    def _supabase(self) -> None:
        from memory.backends.credentials import Credentials  # signs; only for who uses Supabase
        from memory.backends.signing import signing_key

        settings = self.settings
        credentials = Credentials(
            settings.supabase_publishable_key,
            settings.supabase_secret_key,
            signing_key(
                secret=settings.supabase_jwt_secret, private_key=settings.supabase_jwt_private_key
            ),
        )
        for function, params, context in PROBE:
            headers = credentials.headers(context)
            url = f"{settings.supabase_url.rstrip('/')}/rest/v1/rpc/{function}"
            answer = _post(url, params, headers)
            if not answer.ok:
                named = credentials.named(headers)
                problem = refusal(function, answer.status_code, answer.content, named)
                status_page = "" if isinstance(problem, KeyRefused | NotMigrated) else _STATUS_PAGE
                raise NotReady(f"{problem}{status_page}")


def _time(since: float | None) -> str:
    """Seconds since epoch as ISO 8601."""
    return datetime.fromtimestamp(since or 0, UTC).isoformat(timespec="seconds")


def _post(url: str, body: Mapping[str, object], headers: Mapping[str, str]) -> requests.Response:
    try:
        return requests.post(url, json=body, headers=headers, timeout=_TIMEOUT_S)
    except requests.RequestException as exc:
        raise _silent(url, exc) from exc


def _json(answer: requests.Response) -> dict[str, Any]:
    try:
        answer.raise_for_status()
        found = answer.json()
    except (requests.RequestException, ValueError) as exc:
        raise _silent(answer.url, exc) from exc
    return found if isinstance(found, dict) else {}


def _silent(url: str, exc: Exception) -> NotReady:
    return NotReady(f"{url.split('/')[2]} does not answer ({type(exc).__name__})")


def register(app: Flask, checks: Checks) -> None:
    """Adds the three routes."""

    def healthz() -> Response:
        return jsonify({"status": "up"})

    def readyz() -> tuple[Response, int]:
        found = checks.run()
        answer = {"ready": found.ready, "degraded": found.degraded, "checks": found.checks}
        return jsonify(answer), 200 if found.ready else 503

    def exposition() -> Response:
        return Response(metrics.render(), content_type="text/plain; version=0.0.4; charset=utf-8")

    app.add_url_rule("/healthz", "healthz", healthz)
    app.add_url_rule("/readyz", "readyz", readyz)
    app.add_url_rule("/metrics", "metrics", exposition)
