"""Now: how fast people are answered, what goes wrong, what waits, what somebody should look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from flask import Flask, jsonify
from werkzeug.wrappers import Response

from bot.operations.console.database import View
from bot.operations.console.page_context import Desk, draw
from bot.operations.console.texts import CATALOGUE
from bot.operations.console.usage import near_quota
from bot.operations.doctor import health
from bot.operations.doctor.result import Check, findings
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
    health.ANSWERS: "turns",
    health.DELIVERIES: "queue",
    health.QUEUE: "queue",
    health.AWAY: "setup",
    health.SPEED: "setup",
}


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that somebody should look at, on which page, and what to run. `red`: people get no
    answers."""

    sentence: Sentence
    page: str
    red: bool = False
    command: str = ""


def add(app: Flask, desk: Desk) -> None:
    def show() -> str:
        depth = desk.queue.depth()
        failed_jobs = desk.queue.failed()
        given_up = Counter(one.reason or "unknown" for one in failed_jobs if one.kind != "A")
        today, quota = datetime.now(desk.settings.zone).date(), desk.settings.feishu_calls_per_month
        with desk.reader.view() as view:
            figures = _figures(view)
            hour = _hour(view)
            used_calls = near_quota(view, today, quota)
        raised = [*alarms(health.look(desk.url, desk.settings.zone)), *not_ready(desk.ready())]
        raised += quota_alarm(used_calls, quota)
        raised.sort(key=lambda one: not one.red)
        return draw("now.html", zone=desk.settings.zone.key, depth=depth, alarms=raised, hour=hour,
                    red=any(one.red for one in raised), given_up=len(failed_jobs),
                    reasons=given_up, **figures)  # fmt: skip

    def data() -> Response:
        with desk.reader.view() as view:
            return jsonify(_hour(view))

    app.add_url_rule("/console/", "now", show)
    app.add_url_rule("/console/now.json", "now_data", data)


def alarms(checks: Sequence[Check]) -> list[Alarm]:
    """What somebody should look at, the worst first. Pure."""
    return [
        Alarm(check.sentence, _PAGES[check.name], check.state == "fail", check.command)
        for check in findings(checks)
    ]


def not_ready(checks: Sequence[Check]) -> list[Alarm]:
    """What `/readyz` finds wrong besides; red is what the bot does not do without. Pure."""
    return [
        Alarm(_named(check), "setup", check.state == "fail", check.command)
        for check in findings(checks)
        if check.name not in _PAGES
    ]


def _named(check: Check) -> Sentence:
    name, sentence = check.title, check.sentence
    return Sentence(f"{name.en}: {sentence.en}", f"{name.zh}：{sentence.zh}")


def quota_alarm(used_calls: int, quota: int) -> Sequence[Alarm]:
    """One when the `used_calls` calls of the month, if any, are near or at the quota. Pure."""
    if not used_calls:
        return []
    key = "alarm_quota_used_up" if used_calls >= quota else "alarm_quota_near"
    return [_alarm("usage", key, used=f"{used_calls:,}", quota=f"{quota:,}")]


def _alarm(page: str, key: str, **fields: object) -> Alarm:
    return Alarm(CATALOGUE.both(key, **fields), page)


def _figures(view: View) -> dict[str, Any]:
    return {
        "recent": {**(view.row(_RECENT) or {}), **(view.row(_SECONDS) or {})},
        "errors": view.rows(_ERRORS),
        "stages": view.rows(_STAGES),
    }


def _hour(view: View) -> list[dict[str, Any]]:
    """Two minutes each: `at` in s since epoch, answers and failures, seconds to the answer."""
    return [
        {
            name: round(float(value), 2) if name in ("p50", "p95") and value is not None else value
            for name, value in row.items()
        }
        for row in view.rows(_HOUR)
    ]
