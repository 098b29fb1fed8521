"""Judges from the turns and the queue whether people get answers.

The console, `/readyz`, `scripts/doctor` and `scripts/monitor` show these checks. `fail` is red:
somebody gets no answer now."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

from bot.answering.texts import failure_cause
from bot.operations.doctor.result import Check, State, fail, ok, warn
from bot.queue.looking import DatabaseTrouble, embedded_folder, find_lock_holder, looking
from bot.text import times
from bot.text.languages import LANGUAGES, Catalogue, Language, Sentence

DATABASE_CHECK, ANSWERS_CHECK, DELIVERIES_CHECK, QUEUE_CHECK, MEMORY_CHECK, SPEED_CHECK = (
    "database",
    "answers",
    "undelivered",
    "queue",
    "memory away",
    "speed",
)
DISK_CHECK = "disk"
_FIGURES = b"select feishu_bot.health()"
_SLOW_DATABASE_S, _HELD_S = 2.0, 5.0
_SLOW_S, _WAITS_S, _STUCK_S, _UNSTORED_S = 30.0, 60.0, 180.0, 300.0
_NO_WORKER_S, _RETRIED_S = 10.0, 15.0

_MB = 1024 * 1024
_FULL_BYTES = 200 * _MB
_NEARLY_FULL_BYTES = 1024 * _MB

# Why a job is tried again (`Later`), by what it waits for.
_WAITING_FOR = {
    "feishu": {"Unreachable", "Unintelligible"},
    "memory": {"StoreUnavailable", "StoreConnectionLost", "the memory is away"},
    "queue": {"QueueUnavailable", "StoreQueueAway"},
    "keys": {"KeyRefused"},
    "migrations": {"NotMigrated"},
    "nothing": {""},
}

# What does not pass until an operator mends it.
_MENDED_BY_HAND = frozenset(
    {
        "wrong_key",
        "not_allowed",
        "no_such_model",
        "quota_used_up",
        "no_completion",
        "only_thoughts",
    }
)

CATALOGUE = Catalogue(__file__)


def health_checks(url: str, zone: tzinfo = UTC) -> list[Check]:
    """What there is to say now; times are those of `zone`. Of a database that does not answer in
    time that is one check, which says why."""
    try:
        start_s = time.monotonic()
        with looking(url) as connection:
            holder = find_lock_holder(connection)
            row = connection.execute(_FIGURES).fetchone()
    except DatabaseTrouble as exc:
        return [trouble_check(exc)]
    checks = _full_disk(url)
    checks += judge_figures(row[0] if row else {}, time.monotonic() - start_s, datetime.now(zone))
    if holder and holder.waiting and holder.seconds > _HELD_S:
        checks.insert(0, trouble_check(DatabaseTrouble(holder.sentence, holder.ending(url))))
    return checks


def _full_disk(url: str) -> list[Check]:
    """The embedded database reads on while its disk is full, and writes nothing."""
    folder = embedded_folder(url)
    checks = [disk_check(folder.parent)] if folder else []
    return [check for check in checks if check.state == "fail"]


def disk_check(folder: Path, *, free: int | None = None) -> Check:
    """Of the disk on which the folder is; `free` in bytes, as it is found unless given."""
    folder = folder.absolute()
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free_bytes = shutil.disk_usage(there).free if free is None else free
    size, path = f"{free_bytes / _MB / 1024:,.1f} GB", _short_path(folder)
    if free_bytes < _FULL_BYTES:
        return fail(DISK_CHECK, f"Only {free_bytes / _MB:,.0f} MB are left for {path}: make room.",
                    f"{path} 只剩 {free_bytes / _MB:,.0f} MB：请清理磁盘。")  # fmt: skip
    if free_bytes < _NEARLY_FULL_BYTES:
        return warn(DISK_CHECK, f"{free_bytes / _MB:,.0f} MB are left for {path}.",
                    f"{path} 剩余 {free_bytes / _MB:,.0f} MB。")  # fmt: skip
    return ok(DISK_CHECK, f"{size} are free for {path}.", f"{path} 可用 {size}。")


def _short_path(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def trouble_check(trouble: DatabaseTrouble) -> Check:
    """What keeps the database from answering, as a check."""
    en, zh = trouble.sentence.en, trouble.sentence.zh
    sentence = Sentence(en[:1].upper() + en[1:], zh)
    return Check(DATABASE_CHECK, "fail", sentence, command=trouble.command)


def judge_figures(figures: Mapping[str, Any], took_s: float, now: datetime) -> list[Check]:
    """The checks of what `feishu_bot.health` gave at `now` after `took_s` seconds. Pure."""
    return [
        _answers(figures, now),
        _deliveries(figures, now),
        _queue(figures, now),
        _memory(figures),
        _speed(figures, took_s),
    ]


def _answers(figures: Mapping[str, Any], now: datetime) -> Check:
    row, failed_turns, asked_turns = (
        figures[name] for name in ("in_a_row", "failed_turns", "asked_turns")
    )
    reasons: Sequence[Mapping[str, Any]] = figures["reasons"]
    if row:
        lasts = row > 1 or any(one["reason"] in _MENDED_BY_HAND for one in reasons)
        since = datetime.fromisoformat(figures["since"])
        sentence = _since("no-answers", since, now, reasons, n=row)
        return Check(
            ANSWERS_CHECK, "fail" if lasts else "warn", sentence, command=_next_step(reasons)
        )
    if failed_turns:
        sentence = _sentence("some-unanswered", reasons, n=failed_turns, asked=asked_turns)
        return Check(ANSWERS_CHECK, "warn", sentence, command=_next_step(reasons))
    return _health_check(ANSWERS_CHECK, "ok", "answers")


def _next_step(reasons: Sequence[Mapping[str, Any]]) -> str:
    """The doctor asks the model and Feishu; why Feishu refuses answers, the queue says."""
    all_undelivered = all(one["outcome"] == "undelivered" for one in reasons)
    return "scripts/queue list" if all_undelivered else "scripts/doctor"


def _deliveries(figures: Mapping[str, Any], now: datetime) -> Check:
    if not (count := figures["undelivered"]):
        return _health_check(DELIVERIES_CHECK, "ok", "deliveries")
    since = datetime.fromisoformat(figures["undelivered_since"])
    sentence = _since("undelivered", since, now, n=count)
    return Check(DELIVERIES_CHECK, "warn", sentence, command="scripts/queue retry --all")


def _queue(figures: Mapping[str, Any], now: datetime) -> Check:
    stuck_jobs, retried = figures["unfinished"], figures.get("tried_again") or {}
    oldest_s = figures["oldest_waiting_s"] or 0
    held_s = max(oldest_s, figures.get("oldest_in_hand_s") or 0)
    if not figures["workers"] and held_s > _NO_WORKER_S:
        jobs = figures["waiting"] + figures["running"]
        return _standing("waits-for-worker", now - timedelta(seconds=held_s), now, jobs)
    if (retried_s := retried.get("oldest_s") or 0) > _RETRIED_S:
        since = now - timedelta(seconds=retried_s)
        return _standing("waits-for-others", since, now, retried["jobs"], retried["reasons"])
    if oldest_s > _WAITS_S:
        return _standing("waits", now - timedelta(seconds=oldest_s), now, figures["waiting"])
    if given_up := figures["failed"]:
        sentence = CATALOGUE.both("given-up", n=given_up)
        return Check(QUEUE_CHECK, "warn", sentence, command="scripts/queue list")
    if stuck_jobs and stuck_jobs["seconds"] > _STUCK_S:
        sentence = CATALOGUE.both(
            "stuck", turn=stuck_jobs["turn"], minutes=round(stuck_jobs["seconds"] / 60)
        )
        return Check(
            QUEUE_CHECK, "warn", sentence, command=f"scripts/replay {stuck_jobs['turn']} --prompt"
        )
    return _health_check(QUEUE_CHECK, "ok", "queue")


def _standing(
    key: str, since: datetime, now: datetime, jobs: int, reasons: Sequence[str] = ()
) -> Check:
    en, zh = (
        CATALOGUE.say(
            key,
            language,
            n=jobs,
            since=times.moment_text(since, language, now=now),
            why=_wait_causes(reasons, language),
        )
        for language in LANGUAGES
    )
    return Check(QUEUE_CHECK, "fail", Sentence(en, zh), command="scripts/queue list")


def _wait_causes(reasons: Sequence[str], language: Language) -> str:
    """What jobs that are tried again wait for, as clauses."""
    causes = dict.fromkeys(_wait_cause(reason, language) for reason in reasons or [""])
    return ("；" if language == "zh" else "; ").join(causes)


def _wait_cause(reason: str, language: Language) -> str:
    if code := re.fullmatch(r"feishu (\d+)", reason):
        return CATALOGUE.say("cause-feishu-code", language, code=code[1])
    key = next((key for key, of in _WAITING_FOR.items() if reason in of), "")
    return CATALOGUE.say(f"cause-{key or 'unknown'}", language, reason=reason)


def _memory(figures: Mapping[str, Any]) -> Check:
    oldest_s = figures["oldest_unstored_s"] or 0
    if oldest_s > _UNSTORED_S:
        return _health_check(
            MEMORY_CHECK, "warn", "memory-away", n=figures["unstored"], seconds=f"{oldest_s:.0f}"
        )
    return _health_check(MEMORY_CHECK, "ok", "memory")


def _speed(figures: Mapping[str, Any], took_s: float) -> Check:
    slow, took = figures["p95"] or 0, max(took_s, (figures.get("memory_p95_ms") or 0) / 1000)
    if took > _SLOW_DATABASE_S:
        return _health_check(
            SPEED_CHECK, "warn", "slow-database", took=f"{took:.0f}", seconds=f"{slow:.0f}"
        )
    if slow > _SLOW_S:
        return _health_check(SPEED_CHECK, "warn", "slow", seconds=f"{slow:.0f}")
    return _health_check(SPEED_CHECK, "ok", "speed")


def _health_check(name: str, state: State, key: str, **fields: object) -> Check:
    return Check(name, state, CATALOGUE.both(key, **fields))


def _since(
    key: str,
    since: datetime,
    now: datetime,
    reasons: Sequence[Mapping[str, Any]] = (),
    **fields: object,
) -> Sentence:
    """The sentence with the time since when, in the zone of `now`, as people write it."""
    local = since.astimezone(now.tzinfo or UTC)
    en, zh = (
        CATALOGUE.say(
            key,
            language,
            since=times.moment_text(local, language, now=now),
            reasons=_reasons(reasons, language),
            **fields,
        )
        for language in LANGUAGES
    )
    return Sentence(en, zh)


def _sentence(key: str, reasons: Sequence[Mapping[str, Any]], **fields: object) -> Sentence:
    """The sentence with the reasons, each with how often it was one."""
    en, zh = (
        CATALOGUE.say(key, language, reasons=_reasons(reasons, language), **fields)
        for language in LANGUAGES
    )
    return Sentence(en, zh)


def _reasons(reasons: Sequence[Mapping[str, Any]], language: Language) -> str:
    """The latest first; how often, where there are several."""
    between = "；" if language == "zh" else "; "
    return between.join(
        failure_cause(one["outcome"], one["reason"], language)
        + (f" × {one['times']}" if reasons[1:] else "")
        for one in reasons
    )
