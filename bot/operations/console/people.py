"""People: who asked the bot, how often, and what is kept of them in numbers."""

from __future__ import annotations

from flask import Flask, request

from bot.operations.console.page_context import Desk, draw
from bot.operations.console.sessions import called

_PAGE = 50


def add(app: Flask, desk: Desk) -> None:
    def show() -> str:
        name = request.args.get("person", "").strip()[:100]
        after = min(max(request.args.get("after", 0, type=int), 0), 10**6)
        rows = called(desk.url, "people_in_numbers", name, after, _PAGE + 1)
        more = after + _PAGE if len(rows) > _PAGE else None
        return draw("people.html", rows=rows[:_PAGE], person=name, more=more)

    app.add_url_rule("/console/people", "people", show)
