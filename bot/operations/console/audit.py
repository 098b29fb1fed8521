"""Audit: who looked at what people wrote, and who did what here."""

from __future__ import annotations

from flask import Flask, request

from bot.operations.console.database import chat_of, names
from bot.operations.console.page_context import Desk, draw

_PAGE = 50
_LOOKS = """
select a.id, a.at, a.admin, a.action, a.about,
       coalesce(t.conversation_id, a.about) as place, t.actor_id
from feishu_bot.console_audit a left join public.agent_turns t on t.id = a.about
where (%(before)s::bigint is null or a.id < %(before)s) order by a.id desc limit %(limit)s
"""


def add(app: Flask, desk: Desk) -> None:
    def show() -> str:
        before = request.args.get("before", type=int)
        with desk.reader.view() as view:
            rows = view.rows(_LOOKS, {"before": before, "limit": _PAGE + 1})
            people = [row["actor_id"] or row["about"] for row in rows]
            labels = names(view, people, [chat_of(row["place"]) for row in rows])
        more = rows[_PAGE - 1]["id"] if len(rows) > _PAGE else None
        return draw("audit.html", rows=rows[:_PAGE], names=labels, chat_of=chat_of, more=more)

    app.add_url_rule("/console/audit", "audit", show)
