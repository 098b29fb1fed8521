"""Serves `/healthz`, `/readyz` and `/metrics`, and checks what the web process needs.

A memory that is away does not make the bot unready: it answers without it, and the webhook must go
on taking events. `/readyz` then says 200 with `degraded`.

Anybody may ask whether the bot is ready. What is wrong in detail, and the numbers, are for this
machine and for who knows METRICS_TOKEN.

Each reader of a slow answer holds a thread, and the webhook has only so many."""

from __future__ import annotations

import hmac
import ipaddress
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Generic, NoReturn, Protocol, TypeVar

import psycopg
import structlog
from flask import Flask, Request, Response, jsonify, request

from bot.operations.doctor import feishu, model, supabase
from bot.operations.doctor.health import ANSWERS_CHECK, SPEED_CHECK
from bot.operations.doctor.http_exchange import NoHttpAnswer
from bot.operations.doctor.result import Check, State, fail, findings
from bot.process import metrics
from bot.queue.inbox import Inbox, QueueUnavailable, Unstored
from bot.settings import Settings
from bot.text.languages import Sentence
from memory.errors import KeyRefused, NotMigrated, StoreError

log = structlog.get_logger()
_TIMEOUT_S = 3.0
_REMEMBERED_S = 5.0
_MODEL_WORKS_S, _MODEL_TROUBLE_S = 600.0, 30.0
_WATCH_EVERY_S = 10.0
_OK = Sentence("ok", "正常")
_STATUS_PAGE = Sentence("; look at Supabase's status page", "；请查看 Supabase 状态页")

_FORWARDING_HEADERS = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via")

T = TypeVar("T")
_KEPT_S = 1.0
_STILL_GOOD_S = 30.0
_WAITING = 3
_LOST_S = 30.0


class Workers(Protocol):
    """What readiness asks of the workers beside the web process."""

    def trouble(self, slot: int) -> Sentence | None: ...


class EventConnection(Protocol):
    """What readiness asks of the long connection."""

    @property
    def failure(self) -> str: ...


class NotReady(Exception):
    """A dependency does not answer; the sentence says which and what to look at."""

    def __init__(self, en: str, zh: str, *, command: str = "") -> None:
        super().__init__(en)
        self.sentence = Sentence(en, zh)
        self.command = command


class Degraded(NotReady):
    """The bot does without it; the sentence says what people miss."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """What each check found: ok, warn for what the bot does without, or fail."""

    results: tuple[Check, ...]

    @property
    def ready(self) -> bool:
        return all(check.state != "fail" for check in self.results)

    @property
    def degraded(self) -> tuple[str, ...]:
        return tuple(check.name for check in self.results if check.state == "warn")

    @property
    def checks(self) -> dict[str, str]:
        """By name: "ok", or what is wrong and the next step, in English."""
        return {check.name: _in_english(check) for check in self.results}


@dataclass
class Checks:
    """The dependencies of this process. Results of outside calls are kept for five seconds, those
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
    _cache: dict[str, tuple[float, Check]] = field(default_factory=dict)
    _away_since: float | None = None
    _gives_no_answers: bool = False
    _last_warning: str = ""  # what was last said of questions without an answer

    def run(self) -> Readiness:
        """Looks at everything."""
        database = self._outcome("database", self._database)
        checks: dict[str, Callable[[], None]] = {}
        if self.look and database.state == "ok":
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
        others = (self._outcome(name, check) for name, check in checks.items())
        return Readiness((database, *others))

    def say_at_start(self) -> None:
        """Writes into the log what is wrong with what others run, before anybody asks."""
        checks = {"feishu": self._feishu} | (
            {"model": self._model} if self.settings.openai_api_key else {}
        )
        if self.look:
            checks["answers"] = self._answers
        for name, check in checks.items():
            if (check_outcome := self._outcome(name, check)).state != "ok":
                log.warning("start.not_ready", check=name, problem=_in_english(check_outcome))

    def watch(self) -> NoReturn:
        """Logs what people miss when it begins and when it is over, also while nobody asks."""
        failing: frozenset[str] = frozenset()
        while True:
            failing = self.log_changes(failing)
            time.sleep(_WATCH_EVERY_S)

    def log_changes(self, before: frozenset[str]) -> frozenset[str]:
        """Logs what differs from `before`, the names of what failed; returns what fails now."""
        checks = self.look() if self.look else ()
        failing = {check.name: check for check in checks if check.state == "fail"}
        for name in failing.keys() - before:
            log.warning("health.fail", check=name, problem=_in_english(failing[name]))
        for name in before - failing.keys():
            log.warning("health.over", check=name)
        return frozenset(failing)

    def _outcome(self, name: str, check: Callable[[], None]) -> Check:
        at, last_check = self._cache.get(name, (float("-inf"), None))
        is_fresh = last_check and self.clock() - at < self._kept_s(last_check)
        if last_check and is_fresh and not self._changes(name):
            return last_check
        try:
            check()
            check_outcome = Check(name, "ok", _OK)
        except NotReady as exc:
            state: State = "warn" if isinstance(exc, Degraded) else "fail"
            check_outcome = Check(name, state, exc.sentence, command=exc.command)
        self._cache[name] = (self.clock(), check_outcome)
        return check_outcome

    def _kept_s(self, check: Check) -> float:
        """For how many seconds it is believed; asking a model costs a token, so one that works is
        asked again soon only while people get no answers."""
        if check.name != "model":
            return _REMEMBERED_S if check.state == "ok" else 0.0
        works = check.state == "ok" and not self._gives_no_answers
        return _MODEL_WORKS_S if works else _MODEL_TROUBLE_S

    def _changes(self, name: str) -> bool:
        """What costs nothing to look at is looked at each time, and a memory that may be away."""
        return (
            name.startswith(("worker", "connection", "answers"))
            or (name == "database" and self._is_silent())
            or (name == "memory" and self._is_behind())
        )

    def _is_silent(self) -> bool:
        try:
            self.inbox.ping()
        except QueueUnavailable:
            return True
        return False

    def _database(self) -> None:
        try:
            self.inbox.ping()
        except QueueUnavailable as exc:
            raise self._why_silent(exc) from exc
        try:
            self.migrated()
        except NotMigrated as exc:
            raise _not_migrated(exc) from exc
        except psycopg.Error as exc:
            raise self._why_silent(exc) from exc

    def _why_silent(self, exc: Exception) -> NotReady:
        """Why it does not answer, as far as a look tells."""
        if self.look and (trouble := next(iter(self.look()), None)) and trouble.state == "fail":
            return NotReady(trouble.sentence.en, trouble.sentence.zh, command=trouble.command)
        return _silent_database(type(exc).__name__)

    def _worker(self, workers: Workers, slot: int) -> None:
        """One that is missing is done without, as long as another works."""
        if trouble := workers.trouble(slot):
            others = [n for n in range(1, self.settings.workers + 1) if not workers.trouble(n)]
            raise (Degraded if others else NotReady)(trouble.en, trouble.zh)

    def _connection(self) -> None:
        if self.connection and (failure := self.connection.failure):
            raise NotReady(
                f"the long connection to Feishu is not open ({failure}): look at the log, and at "
                "the subscription mode in the console (Events & Callbacks)",
                f"与飞书的长连接没有建立（{failure}）：请查看日志，以及开发者后台“事件与回调”中的订阅方式",
            )

    def _feishu(self) -> None:
        """A wrong clock is told of here: pushes are refused for it, and tokens expire at once."""
        credentials, app = feishu.credentials_check(self.settings, timeout_s=_TIMEOUT_S)
        _require(credentials)
        clock = feishu.clock_check(
            app.clock if app else "", datetime.fromtimestamp(self.now(), UTC)
        )
        if clock.state in ("warn", "fail"):
            raise Degraded(clock.sentence.en, clock.sentence.zh, command=clock.command)

    def _model(self) -> None:
        """A wrong key is nobody's passing trouble: no question can be answered."""
        model_checks = model.model_checks(self.settings, timeout_s=_TIMEOUT_S)
        working = any(check.state == "ok" for check in model_checks)
        for check in findings(model_checks):
            passes = working or check.state == "warn" or check.passing
            raise (Degraded if passes else NotReady)(check.sentence.en, check.sentence.zh)

    def _memory(self) -> None:
        """Whether Supabase answers, and nothing waits for it. One query in the queue's database."""
        try:
            self._supabase()
            failure = None
            self._away_since = None
        except NotReady as exc:
            failure = exc.sentence
            self._away_since = self._away_since or self.now()
        backlog = self._count_unstored()
        if failure:
            away_since = _time(min(filter(None, (self._away_since, backlog.since))))
            raise Degraded(
                f"away since {away_since} ({failure.en}); {backlog.turns} turns wait to be "
                "written; people are answered without history",
                f"自 {away_since} 起不可用（{failure.zh}）；{backlog.turns} 轮对话等待写入；"
                "回答时没有历史",
            )
        if backlog.refused:
            raise Degraded(
                f"it refused {backlog.refused} writes: scripts/queue list names the reasons, "
                "scripts/queue retry tries them again",
                f"有 {backlog.refused} 次写入被拒绝：scripts/queue list 列出原因，"
                "scripts/queue retry 可重试",
            )
        if backlog.turns:
            away_since = _time(backlog.since)
            raise Degraded(
                f"back; {backlog.turns} turns since {away_since} wait to be written",
                f"已恢复；自 {away_since} 起的 {backlog.turns} 轮对话等待写入",
            )

    def _is_behind(self) -> bool:
        """Whether a worker has found the memory away, or the queue's database is."""
        try:
            return self.inbox.unstored_counts().turns > 0
        except QueueUnavailable:
            return True

    def _count_unstored(self) -> Unstored:
        try:
            return self.inbox.unstored_counts()
        except QueueUnavailable as exc:
            raise _silent_database(str(exc)) from exc

    def _answers(self) -> None:
        """The bot goes on taking questions: what is wrong may be over with the next one."""
        answer_checks = self.look() if self.look else ()
        self._note_unanswered(answer_checks)
        self._gives_no_answers = any(check.state == "fail" for check in answer_checks)
        wrong = [check for check in findings(answer_checks) if check.name != SPEED_CHECK]
        for check in wrong[:1]:  # late answers arrive all the same
            sentence = check.sentence
            raise Degraded(sentence.en, sentence.zh, command=check.next_step or "scripts/doctor")

    def _note_unanswered(self, answer_checks: Sequence[Check]) -> None:
        """Another question without an answer makes what was found of the model old."""
        text = "".join(
            one.sentence.en
            for one in answer_checks
            if one.name == ANSWERS_CHECK and one.state != "ok"
        )
        if text and text != self._last_warning:
            self._cache.pop("model", None)
        self._last_warning = text

    def _supabase(self) -> None:
        try:
            supabase.probe_supabase(self.settings, timeout_s=_TIMEOUT_S)
        except (KeyRefused, NotMigrated) as exc:
            raise NotReady(str(exc), supabase.refusal_check(exc).sentence.zh.rstrip("。")) from exc
        except NoHttpAnswer as exc:
            sentence = exc.sentence
            raise NotReady(sentence.en + _STATUS_PAGE.en, sentence.zh + _STATUS_PAGE.zh) from exc
        except StoreError as exc:
            sentence = Sentence(str(exc), f"出错（{exc.code or type(exc).__name__}）")
            raise NotReady(sentence.en + _STATUS_PAGE.en, sentence.zh + _STATUS_PAGE.zh) from exc


def _in_english(check: Check) -> str:
    return check.sentence.en + (f" Next: {check.command}" if check.command else "")


def _silent_database(why: str) -> NotReady:
    return NotReady(
        f"the queue's database does not answer ({why})", f"队列的数据库没有响应（{why}）"
    )


def _not_migrated(exc: NotMigrated) -> NotReady:
    return NotReady(str(exc), f"数据库不是最新（{exc}）：请运行 scripts/migrate")


def _require(check: Check) -> None:
    """Raises `NotReady` for what only a person can mend."""
    if check.state == "fail":
        raise NotReady(check.sentence.en, check.sentence.zh)


def _time(seconds: float | None) -> str:
    """Seconds since epoch as ISO 8601."""
    return datetime.fromtimestamp(seconds or 0, UTC).isoformat(timespec="seconds")


_BEING_LOOKED_AT = Readiness(
    (fail("readiness", "still being checked: ask again in a moment", "正在检查：请稍后再试"),)
)


def register(app: Flask, checks: Checks) -> None:
    """Adds the three routes; the application keeps the checks for its start and its console."""
    app.extensions["health"] = checks
    flight = SingleFlight(checks.run)
    app.extensions["readiness"] = lambda: (flight.outcome() or _BEING_LOOKED_AT).results
    token = checks.settings.metrics_token

    def healthz() -> Response:
        return jsonify({"status": "up"})

    def readyz() -> tuple[Response, int]:
        outcome = flight.outcome() or _BEING_LOOKED_AT
        answer: dict[str, object] = {"ready": outcome.ready}
        if may_look(request, token):
            answer |= {"degraded": outcome.degraded, "checks": outcome.checks}
        return jsonify(answer), 200 if outcome.ready else 503

    def exposition() -> Response:
        if not may_look(request, token):
            return Response(
                "for this machine, or with METRICS_TOKEN as bearer token\n",
                status=401,
                content_type="text/plain",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return Response(
            metrics.render_metrics(), content_type="text/plain; version=0.0.4; charset=utf-8"
        )

    app.add_url_rule("/healthz", "healthz", healthz)
    app.add_url_rule("/readyz", "readyz", readyz)
    app.add_url_rule("/metrics", "metrics", exposition)


def may_look(asking: Request, token: str) -> bool:
    """Whether the request bears `token`, or comes from this machine and through no proxy.

    A proxy on this machine shows by what it adds, or by the host that was asked for.
    """
    kind, _, credentials = asking.headers.get("Authorization", "").partition(" ")
    if token and kind.lower() == "bearer":
        return hmac.compare_digest(credentials.strip().encode(), token.encode())
    if any(name in asking.headers for name in _FORWARDING_HEADERS):
        return False
    return _is_loopback(asking.remote_addr or "") and _is_loopback(_host(asking))


def _host(asking: Request) -> str:
    """The host that was asked for, without its port."""
    host = asking.headers.get("Host", "")
    return host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0]


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped_address = getattr(address, "ipv4_mapped", None)
    return bool((mapped_address or address).is_loopback)


class SingleFlight(Generic[T]):
    """`look` is called by one thread at a time, and its outcome holds for `_KEPT_S`.

    Who asks meanwhile gets the last outcome; where there is none of the last `_STILL_GOOD_S`, a few
    wait for the one that is coming and the others get None. `clock` is monotonic seconds.
    """

    def __init__(
        self, look: Callable[[], T], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._look = look
        self._clock = clock
        self._change = threading.Condition()
        self._cache: tuple[float, T] | None = None
        self._began: float | None = None
        self._waiting = 0

    def outcome(self) -> T | None:
        """The present state as far as it is known. Raises what `look` raises to who called it."""
        with self._change:
            if (recent := self._younger_than(_KEPT_S)) is not None:
                return recent
            if self._began is not None and self._clock() - self._began < _LOST_S:
                return self._younger_than(_STILL_GOOD_S) or self._await()
            began = self._began = self._clock()
        return self._fly(began)

    def _fly(self, began: float) -> T:
        outcome: T | None = None
        try:
            outcome = self._look()
            return outcome
        finally:
            with self._change:
                if outcome is not None:
                    self._cache = (self._clock(), outcome)
                if self._began == began:
                    self._began = None
                self._change.notify_all()

    def _await(self) -> T | None:
        if self._waiting >= _WAITING:
            return None
        self._waiting += 1
        try:
            self._change.wait_for(lambda: self._began is None, _LOST_S)
        finally:
            self._waiting -= 1
        return self._younger_than(_STILL_GOOD_S)

    def _younger_than(self, seconds: float) -> T | None:
        if self._cache is None or self._clock() - self._cache[0] > seconds:
            return None
        return self._cache[1]
