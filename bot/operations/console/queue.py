"""Queue: what waits and what was given up; tried again or taken away."""

from __future__ import annotations

from flask import Flask, abort, request
from werkzeug.wrappers import Response

from bot.operations.console.database import chat_of, names
from bot.operations.console.page_context import Desk, admin, back_to, draw
from bot.queue.operator_actions import Failed, Reference, Unfinished

_MOST = 100


def add(app: Flask, desk: Desk) -> None:
    def show() -> str:
        failed_jobs = desk.queue.failed(limit=_MOST)
        waiting = desk.queue.unfinished(limit=_MOST)
        with desk.reader.view() as view:
            jobs: list[Failed | Unfinished] = [*failed_jobs, *waiting]
            people = [one.person for one in jobs]
            places = [chat_of(one.conversation_id) for one in jobs]
            labels = names(view, people, places)
        return draw(
            "queue.html",
            depth=desk.queue.depth(),
            failed=failed_jobs,
            waiting=waiting,
            names=labels,
            chat_of=chat_of,
            done=request.args.get("done", ""),
            about=request.args.get("about", "")[:40],
        )

    def retry(name: str) -> Response:
        one = _reference(name)
        there = desk.queue.retry(one, not_sent=request.form.get("not_sent") == "1")
        return _said(one, "retried", there)

    def drop(name: str) -> Response:
        one = _reference(name)
        return _said(one, "dropped", desk.queue.drop(one))

    def cancel(job: int) -> Response:
        return _said(Reference("J", str(job)), "cancelled", desk.queue.cancel(job))

    def retry_all() -> Response:
        references = [
            one.reference for one in desk.queue.failed(limit=_MOST) if _is_safe(one.reason)
        ]
        retried = [one for one in references if desk.queue.retry(one)]
        desk.reader.note(admin(), "retried all", ",".join(map(str, retried)))
        return back_to("queue", "retried_all", len(retried))

    def _said(one: Reference, what: str, there: bool) -> Response:
        if there:
            desk.reader.note(admin(), f"{what} job", str(one))
        return back_to("queue", what if there else "not_there", one)

    app.add_url_rule("/console/queue", "queue", show)
    app.add_url_rule("/console/queue/retry", "retry_all", retry_all, methods=["POST"])
    app.add_url_rule("/console/queue/<name>/retry", "retry", retry, methods=["POST"])
    app.add_url_rule("/console/queue/<name>/drop", "drop", drop, methods=["POST"])
    app.add_url_rule("/console/queue/J<int:job>/cancel", "cancel", cancel, methods=["POST"])


def _is_safe(reason: str | None) -> bool:
    """Nobody has to look into the chat first whether its card is there."""
    return reason != "OutcomeUnknown"


def _reference(name: str) -> Reference:
    try:
        return Reference.parse(name)
    except ValueError:
        abort(404)
