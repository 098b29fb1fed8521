"""Shows how the bot is doing: speed, errors and alarms, what it uses, and its set-up."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from flask import Flask, jsonify, redirect, request
from werkzeug.wrappers import Response

from bot.operations.console.context import (
    CATALOGUE,
    ConsoleContext,
    ConsoleRow,
    ConsoleView,
    display_names,
    draw_page,
    signed_in_admin,
)
from bot.operations.doctor import health
from bot.operations.doctor.checks import ExaminationWishes, run_checks
from bot.operations.doctor.result import Check, findings, verdict, without_repetition
from bot.process.usage import is_quota_short
from bot.queue.looking import DatabaseTrouble
from bot.settings import Settings
from bot.text.languages import Sentence

_RECENT = """
select coalesce(sum(times) filter (where outcome = 'answered'), 0)::bigint as answered,
       coalesce(sum(times) filter (where outcome in ('apologised', 'undelivered')), 0)::bigint
         as unanswered,
       coalesce(sum(times) filter (where outcome = 'silent'), 0)::bigint as silent
from bot_private.outcomes(now() - interval '15 minutes')
"""
_SECONDS = """
select percentile_cont(0.5) within group (order by s.seconds) as p50,
       percentile_cont(0.95) within group (order by s.seconds) as p95
from (select extract(epoch from t.updated_at - t.created_at) as seconds
      from public.agent_turns t
      where t.created_at > now() - interval '15 minutes' and t.outcome = 'answered'
        and bot_private.is_question(t.origin)) s
"""
_HOUR = """
with turns as (
  select date_bin('2 minutes', created_at, 'epoch') as slot, outcome,
         extract(epoch from updated_at - created_at) as seconds
  from public.agent_turns t
  where created_at > now() - interval '1 hour' and bot_private.is_question(t.origin))
select extract(epoch from s.slot)::bigint as at,
       count(t.slot) filter (where t.outcome = 'answered') as answered,
       count(t.slot) filter (where t.outcome in ('apologised', 'undelivered')) as unanswered,
       percentile_cont(0.5) within group (order by t.seconds)
         filter (where t.outcome = 'answered') as p50,
       percentile_cont(0.95) within group (order by t.seconds)
         filter (where t.outcome = 'answered') as p95
from generate_series(date_bin('2 minutes', now() - interval '58 minutes', 'epoch'), now(),
                     interval '2 minutes') s(slot)
left join turns t on t.slot = s.slot
group by s.slot order by s.slot
"""
_ERRORS = """
select outcome, outcome_reason as reason, count(*) as times, max(updated_at) as last_at
from public.agent_turns
where outcome in ('apologised', 'undelivered') and created_at > now() - interval '1 day'
group by 1, 2 order by 3 desc, 1, 2 limit 10
"""
_STAGES = """
select replace(s.key, '_ms', '') as stage, count(*) as times,
       percentile_cont(0.5) within group (order by s.value::text::numeric) as p50,
       percentile_cont(0.95) within group (order by s.value::text::numeric) as p95
from public.agent_turn_records r, jsonb_each(bot_private.whole_record(r.short)) s
where r.at > now() - interval '1 hour' and s.key like '%%\\_ms'
  and jsonb_typeof(s.value) = 'number'
group by 1 order by 4 desc
"""

# Where an operator goes on.
_PAGES = {
    health.DATABASE_CHECK: "setup",
    health.DISK_CHECK: "setup",
    health.ANSWERS_CHECK: "turns",
    health.DELIVERIES_CHECK: "queue",
    health.QUEUE_CHECK: "queue",
    health.MEMORY_CHECK: "setup",
    health.SPEED_CHECK: "setup",
}

_DAYS = (1, 7, 30)
_USAGE_BY = """
with used as (
  select {of}, sum(tokens_in)::bigint as tokens_in, sum(tokens_out)::bigint as tokens_out
  from feishu_bot.model_usage
  where day > %(today)s::date - %(days)s::integer group by 1),
told as (
  select {of_turn} as {of}, count(*) as answers from public.agent_turns t
  where bot_private.is_question(t.origin) and t.outcome = 'answered'
    and (t.created_at at time zone %(zone)s)::date > %(today)s::date - %(days)s::integer group by 1)
select {of}, coalesce(answers, 0) as answers, coalesce(tokens_in, 0) as tokens_in,
       coalesce(tokens_out, 0) as tokens_out
from used full join told using ({of}) order by {order} limit {most}
"""
_LARGEST_FIRST = {"order": "tokens_in + tokens_out desc nulls last, answers desc, 1", "most": 30}
_BY_DAY = _USAGE_BY.format(
    of="day", of_turn="(t.created_at at time zone %(zone)s)::date", order="1 desc", most=366
)
_BY_PERSON = _USAGE_BY.format(of="actor_id", of_turn="t.actor_id", **_LARGEST_FIRST)
_BY_CHAT = _USAGE_BY.format(of="chat_id", of_turn="t.chat_id", **_LARGEST_FIRST)
_BY_KIND = """
select 'answer' as kind, sum(turns)::bigint as requests, sum(tokens_in)::bigint as tokens_in,
       sum(tokens_out)::bigint as tokens_out
from feishu_bot.model_usage where day > %(today)s::date - %(days)s::integer
having count(*) > 0
union all
select name, sum(calls)::bigint, sum(tokens_in)::bigint, sum(tokens_out)::bigint
from feishu_bot.calls
where service = 'model' and day > %(today)s::date - %(days)s::integer group by name
order by 1
"""
_USED_UP = """
select actor_id, null as chat_id from feishu_bot.model_usage
where day = %(today)s and %(person)s > 0
group by actor_id having sum(tokens_in + tokens_out) >= %(person)s
union all
select null, chat_id from feishu_bot.model_usage where day = %(today)s and %(chat)s > 0
group by chat_id having sum(tokens_in + tokens_out) >= %(chat)s
"""
_CALLS = """
select name, sum(calls)::bigint as month,
       coalesce(sum(calls) filter (where day = %(today)s), 0)::bigint as today
from feishu_bot.calls
where service = 'feishu' and day between date_trunc('month', %(today)s::date) and %(today)s
group by name order by 2 desc, 1
"""
_FREE_API = "names"  # the address book does not count against Feishu's limit

_FRESH_S = 20.0


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that somebody should look at, on which page, and what to run. `red`: people get no
    answers."""

    sentence: Sentence
    page: str
    red: bool = False
    command: str = ""


def add_overview_pages(app: Flask, desk: ConsoleContext) -> None:
    def show() -> str:
        checks = health.health_checks(desk.url, desk.settings.zone)
        if [one.name for one in checks] == [health.DATABASE_CHECK]:
            raise DatabaseTrouble(checks[0].sentence, checks[0].command)
        depth = desk.queue.depth()
        failed_jobs = desk.queue.failed()
        given_up = Counter(one.reason or "unknown" for one in failed_jobs if one.kind != "A")
        today, quota = datetime.now(desk.settings.zone).date(), desk.settings.feishu_calls_per_month
        with desk.reader.view() as view:
            figures = _figures(view)
            hour = _hour(view)
            used_calls = calls_near_quota(view, today, quota)
        alarms = [
            *alarms_of_checks(checks),
            *readiness_alarms(desk.ready()),
        ]
        alarms += quota_alarms(used_calls, quota)
        alarms.sort(key=lambda one: not one.red)
        return draw_page("now.html", zone=desk.settings.zone.key, depth=depth, alarms=alarms,
                    hour=hour, red=any(one.red for one in alarms), given_up=len(failed_jobs),
                    reasons=given_up, **figures)  # fmt: skip

    def data() -> Response:
        with desk.reader.view() as view:
            return jsonify(_hour(view))

    app.add_url_rule("/console/", "now", show)
    app.add_url_rule("/console/now.json", "now_data", data)


def alarms_of_checks(checks: Sequence[Check]) -> list[Alarm]:
    """What somebody should look at, the worst first. Pure."""
    return [
        Alarm(check.sentence, _PAGES[check.name], check.state == "fail", check.command)
        for check in findings(checks)
    ]


def readiness_alarms(checks: Sequence[Check]) -> list[Alarm]:
    """What `/readyz` finds wrong besides; red is what the bot does not do without. Pure."""
    return [
        Alarm(_named_sentence(check), "setup", check.state == "fail", check.command)
        for check in findings(checks)
        if check.name == health.DATABASE_CHECK or check.name not in _PAGES
    ]


def _named_sentence(check: Check) -> Sentence:
    name, sentence = check.title, check.sentence
    return Sentence(f"{name.en}: {sentence.en}", f"{name.zh}：{sentence.zh}")


def quota_alarms(used_calls: int, quota: int) -> Sequence[Alarm]:
    """One when the `used_calls` calls of the month, if any, are near or at the quota. Pure."""
    if not used_calls:
        return []
    key = "alarm_quota_used_up" if used_calls >= quota else "alarm_quota_near"
    return [_alarm("usage", key, used=f"{used_calls:,}", quota=f"{quota:,}")]


def _alarm(page: str, key: str, **fields: object) -> Alarm:
    return Alarm(CATALOGUE.both(key, **fields), page)


def _figures(view: ConsoleView) -> dict[str, Any]:
    return {
        "recent": {**(view.row(_RECENT) or {}), **(view.row(_SECONDS) or {})},
        "errors": view.rows(_ERRORS),
        "stages": view.rows(_STAGES),
    }


def _hour(view: ConsoleView) -> list[dict[str, Any]]:
    """Two minutes each: `at` in s since epoch, answers and failures, seconds to the answer."""
    return [
        {
            name: round(float(value), 2) if name in ("p50", "p95") and value is not None else value
            for name, value in row.items()
        }
        for row in view.rows(_HOUR)
    ]


def add_usage_page(app: Flask, desk: ConsoleContext) -> None:
    def show() -> str:
        days_asked = request.args.get("days", type=int)
        days = days_asked if days_asked in _DAYS else _DAYS[1]
        today = datetime.now(desk.settings.zone).date()
        query_params = {"days": days, "today": today, "zone": desk.settings.zone.key}
        with desk.reader.view() as view:
            by_day = view.rows(_BY_DAY, query_params)
            people = view.rows(_BY_PERSON, query_params)
            chats = view.rows(_BY_CHAT, query_params)
            kinds = view.rows(_BY_KIND, query_params)
            full = view.rows(_USED_UP, {"today": today, **_limits(desk.settings)})
            calls = view.rows(_CALLS, query_params)
            labels = display_names(
                view,
                [row["actor_id"] for row in (*people, *full)],
                [row["chat_id"] for row in (*chats, *full)],
            )
        quota = desk.settings.feishu_calls_per_month
        return draw_page("usage.html", by_day=by_day, people=people, chats=chats, kinds=kinds,
                    full=full, names=labels, days=days, spans=_DAYS, limits=_limits(desk.settings),
                    calls=calls, counted=counted_calls(calls), free=_FREE_API,
                    quota=quota, short=is_quota_short(counted_calls(calls), quota),
                    zone=desk.settings.zone.key)  # fmt: skip

    app.add_url_rule("/console/usage", "usage", show)


def _limits(settings: Settings) -> dict[str, int]:
    return {"person": settings.usage_limit_person, "chat": settings.usage_limit_chat}


def counted_calls(calls: list[ConsoleRow]) -> int:
    """This month's calls that count against Feishu's limit."""
    return sum(int(row["month"]) for row in calls if row["name"] != _FREE_API)


def calls_near_quota(view: ConsoleView, today: date, quota: int) -> int:
    """This month's calls, when little of the quota (0: none) is left; else 0."""
    used_calls = counted_calls(view.rows(_CALLS, {"today": today})) if quota else 0
    return used_calls if is_quota_short(used_calls, quota) else 0


@dataclass
class _Examination:
    """The last one, made again when somebody looks and it is old; one at a time."""

    checks: list[Check] = field(default_factory=list)
    at: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def latest(self, *, probe: bool = False) -> list[Check]:
        with self._lock:
            if probe or time.monotonic() - self.at > _FRESH_S or not self.checks:
                self.checks = run_checks(ExaminationWishes(probe=probe))
                self.at = time.monotonic()
            return self.checks


def add_setup_pages(app: Flask, desk: ConsoleContext) -> None:
    examination = _Examination()

    def show() -> str:
        return draw_page("setup.html")

    def checks() -> str:
        latest_checks = examination.latest()
        wrong = findings(latest_checks)
        others = [check for check in latest_checks if check not in wrong]
        checks_shown = without_repetition([*wrong, *others])
        return draw_page("setup_checks.html", checks=checks_shown, verdict=verdict(latest_checks),
                    good=not any(check.state == "fail" for check in latest_checks))  # fmt: skip

    def again() -> Response:
        examination.latest(probe=True)
        desk.reader.note(signed_in_admin(), "run doctor", "")
        return redirect("/console/setup", 303)

    app.add_url_rule("/console/setup", "setup", show)
    app.add_url_rule("/console/setup/checks", "setup_checks", checks)
    app.add_url_rule("/console/setup", "setup_again", again, methods=["POST"])
