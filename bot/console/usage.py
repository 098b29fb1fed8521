"""Usage: tokens of the model by day, person and chat, beside what USAGE_LIMIT_… allows."""

from __future__ import annotations

from datetime import datetime

from flask import Flask, request

from bot.console.desk import Desk, draw
from bot.console.reading import names

_DAYS = (1, 7, 30)
_LARGEST = "order by sum(tokens_in + tokens_out) desc limit 30"
_SUMS = """sum(turns)::bigint as turns, sum(tokens_in)::bigint as tokens_in,
       sum(tokens_out)::bigint as tokens_out"""
_SINCE = "from feishu_bot.model_usage where day > %(today)s::date - %(days)s::integer"
_BY_DAY = f"select day, {_SUMS} {_SINCE} group by day order by day desc"
_BY_PERSON = f"select actor_id, {_SUMS} {_SINCE} group by actor_id {_LARGEST}"
_BY_CHAT = f"select chat_id, {_SUMS} {_SINCE} group by chat_id {_LARGEST}"


def add(app: Flask, desk: Desk) -> None:
    def show() -> str:
        asked = request.args.get("days", type=int)
        days = asked if asked in _DAYS else _DAYS[1]
        today = datetime.now(desk.settings.zone).date()
        wanted = {"days": days, "today": today}
        with desk.reader.view() as view:
            by_day = view.rows(_BY_DAY, wanted)
            people = view.rows(_BY_PERSON, wanted)
            chats = view.rows(_BY_CHAT, wanted)
            named = names(
                view, [row["actor_id"] for row in people], [row["chat_id"] for row in chats]
            )
        limits = (desk.settings.usage_limit_person, desk.settings.usage_limit_chat)
        return draw("usage.html", by_day=by_day, people=people, chats=chats, names=named,
                    days=days, spans=_DAYS, limits=limits)  # fmt: skip

    app.add_url_rule("/console/usage", "usage", show)
