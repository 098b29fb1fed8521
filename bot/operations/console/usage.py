"""Usage: tokens of the model by day, person, chat and kind, beside what USAGE_LIMIT_… allows; calls
of Feishu's API, beside FEISHU_CALLS_PER_MONTH."""

from __future__ import annotations

from datetime import date, datetime

from flask import Flask, request

from bot.operations.console.database import Row, View, names
from bot.operations.console.page_context import Desk, draw
from bot.process.quota import is_short
from bot.settings import Settings

_DAYS = (1, 7, 30)
_BY = """
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
_LARGEST = {"order": "tokens_in + tokens_out desc nulls last, answers desc, 1", "most": 30}
_BY_DAY = _BY.format(
    of="day", of_turn="(t.created_at at time zone %(zone)s)::date", order="1 desc", most=366
)
_BY_PERSON = _BY.format(of="actor_id", of_turn="t.actor_id", **_LARGEST)
_BY_CHAT = _BY.format(of="chat_id", of_turn="t.chat_id", **_LARGEST)
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
_FREE = "names"  # the address book does not count against Feishu's limit


def add(app: Flask, desk: Desk) -> None:
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
            labels = names(
                view,
                [row["actor_id"] for row in (*people, *full)],
                [row["chat_id"] for row in (*chats, *full)],
            )
        quota = desk.settings.feishu_calls_per_month
        return draw("usage.html", by_day=by_day, people=people, chats=chats, kinds=kinds,
                    full=full, names=labels, days=days, spans=_DAYS, limits=_limits(desk.settings),
                    calls=calls, counted=counted(calls), free=_FREE,
                    quota=quota, short=is_short(counted(calls), quota),
                    zone=desk.settings.zone.key)  # fmt: skip

    app.add_url_rule("/console/usage", "usage", show)


def _limits(settings: Settings) -> dict[str, int]:
    return {"person": settings.usage_limit_person, "chat": settings.usage_limit_chat}


def counted(calls: list[Row]) -> int:
    """This month's calls that count against Feishu's limit."""
    return sum(int(row["month"]) for row in calls if row["name"] != _FREE)


def near_quota(view: View, today: date, quota: int) -> int:
    """This month's calls, when little of the quota (0: none) is left; else 0."""
    used_calls = counted(view.rows(_CALLS, {"today": today})) if quota else 0
    return used_calls if is_short(used_calls, quota) else 0
