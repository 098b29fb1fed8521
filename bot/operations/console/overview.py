"""Now: how fast people are answered, what goes wrong, what waits, what somebody should look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from flask import Flask, jsonify
from werkzeug.wrappers import Response

from bot.operations.console.database import View
from bot.operations.console.page_context import Desk, draw
from bot.operations.console.texts import CATALOGUE
from bot.operations.console.usage import near_quota
from bot.queue.operator_actions import QueueDepth
from bot.text.languages import Sentence

_SLOW_S, _WAITS_S, _STUCK_S, _SPOOLED_S = 30.0, 60.0, 180.0, 300.0

_RECENT = """
select count(*) filter (where state = 'sent') as sent,
       count(*) filter (where state = 'failed') as failed,
       percentile_cont(0.5) within group (order by extract(epoch from updated_at - created_at))
         filter (where state = 'sent') as p50,
       percentile_cont(0.95) within group (order by extract(epoch from updated_at - created_at))
         filter (where state = 'sent') as p95
from public.agent_turns where created_at > now() - interval '15 minutes'
"""
_UNFINISHED = """
select count(*) as count, extract(epoch from now() - min(created_at)) as oldest_s
from public.agent_turns where state in ('open', 'pending')
"""
_HOUR = """
with turns as (
  select date_bin('2 minutes', created_at, 'epoch') as slot, state,
         extract(epoch from updated_at - created_at) as seconds
  from public.agent_turns where created_at > now() - interval '1 hour')
select extract(epoch from s.slot)::bigint as at,
       count(t.slot) filter (where t.state = 'sent') as sent,
       count(t.slot) filter (where t.state = 'failed') as failed,
       percentile_cont(0.5) within group (order by t.seconds)
         filter (where t.state = 'sent') as p50,
       percentile_cont(0.95) within group (order by t.seconds)
         filter (where t.state = 'sent') as p95
from generate_series(date_bin('2 minutes', now() - interval '58 minutes', 'epoch'), now(),
                     interval '2 minutes') s(slot)
left join turns t on t.slot = s.slot
group by s.slot order by s.slot
"""
_ERRORS = """
select coalesce(error, 'unknown') as kind, count(*) as times, max(updated_at) as last_at
from public.agent_turns
where state = 'failed' and updated_at > now() - interval '1 day'
group by 1 order by 2 desc, 1 limit 10
"""
_STAGES = """
select replace(s.key, '_ms', '') as stage, count(*) as times,
       percentile_cont(0.5) within group (order by s.value::text::numeric) as p50,
       percentile_cont(0.95) within group (order by s.value::text::numeric) as p95
from public.agent_turn_records r, jsonb_each(r.record) s
where r.at > now() - interval '1 hour' and s.key like '%%\\_ms'
  and jsonb_typeof(s.value) = 'number'
group by 1 order by 4 desc
"""
_SILENT = """
select count(*) filter (where respond) as spoke, count(*) filter (where not respond) as silent
from public.agent_decisions where created_at > now() - interval '15 minutes'
"""


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that somebody should look at, and on which page."""

    sentence: Sentence
    page: str


def add(app: Flask, desk: Desk) -> None:
    def show() -> str:
        depth = desk.queue.depth()
        given_up = desk.queue.failed()
        today, quota = datetime.now(desk.settings.zone).date(), desk.settings.feishu_calls_per_month
        with desk.reader.view() as view:
            figures = _figures(view)
            hour = _hour(view)
            used = near_quota(view, today, quota)
        reasons: dict[str, int] = {}
        for one in given_up:
            reasons[one.reason or "unknown"] = reasons.get(one.reason or "unknown", 0) + 1
        found = alarms(depth, figures["recent"], figures["unfinished"])
        found = [*found, *quota_alarm(used, quota)]
        zone = desk.settings.zone.key
        return draw(
            "now.html", zone=zone, depth=depth, alarms=found, hour=hour, reasons=reasons, **figures
        )

    def data() -> Response:
        with desk.reader.view() as view:
            return jsonify(_hour(view))

    app.add_url_rule("/console/", "now", show)
    app.add_url_rule("/console/now.json", "now_data", data)


def alarms(
    depth: QueueDepth, recent: Mapping[str, Any], unfinished: Mapping[str, Any]
) -> Sequence[Alarm]:
    """What exceeds its limit, the worst first. Pure."""
    found = []
    oldest, stuck = depth.oldest_waiting_s or 0, float(unfinished["oldest_s"] or 0)
    spooled, slow = depth.oldest_spooled_s or 0, float(recent["p95"] or 0)
    given_up = depth.failed + depth.refused
    if oldest > _WAITS_S:
        found.append(_alarm("queue", "alarm_waiting", seconds=f"{oldest:.0f}"))
    if stuck > _STUCK_S:
        found.append(_alarm("queue", "alarm_stuck", seconds=f"{stuck:.0f}"))
    if spooled > _SPOOLED_S:
        found.append(_alarm("setup", "alarm_memory_away", seconds=f"{spooled:.0f}"))
    if given_up:
        found.append(_alarm("queue", "alarm_given_up", jobs=given_up))
    if slow > _SLOW_S:
        found.append(_alarm("setup", "alarm_slow", seconds=f"{slow:.0f}"))
    return found


def quota_alarm(used: int, quota: int) -> Sequence[Alarm]:
    """One when the `used` calls of the month, if any, are near or at the quota. Pure."""
    if not used:
        return []
    key = "alarm_quota_used_up" if used >= quota else "alarm_quota_near"
    return [_alarm("usage", key, used=f"{used:,}", quota=f"{quota:,}")]


def _alarm(page: str, key: str, **fields: object) -> Alarm:
    return Alarm(CATALOGUE.both(key, **fields), page)


def _figures(view: View) -> dict[str, Any]:
    return {
        "recent": view.row(_RECENT),
        "unfinished": view.row(_UNFINISHED),
        "errors": view.rows(_ERRORS),
        "spoken": view.row(_SILENT),
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
