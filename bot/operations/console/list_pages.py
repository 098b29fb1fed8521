"""Shows the console's lists: people, feedback, the queue, imports, receipts and the audit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import flask
from flask import Flask, abort, request
from werkzeug.wrappers import Response

from bot.operations.console.context import (
    ConsoleContext,
    call_owner_function,
    chat_of_conversation,
    display_names,
    draw_page,
    moment_of_address,
    redirect_to_page,
    signed_in_admin,
    with_memory,
)
from bot.queue.operator_actions import Failed, Reference, Unfinished
from memory.receipts import Receipt, ReceiptStore
from memory.rpc import Rpc
from memory.tables.imports import Chat, HistoryImport, ImportStore

_PAGE = 50

_WANTED_FEEDBACK = """from (
select f.*, t.actor_id as asker_id from public.agent_feedback f
join public.agent_turns t on t.id = f.turn_id
where (%(helpful)s::boolean is null or f.helpful = %(helpful)s)
  and (%(person)s = '' or exists (
    select from public.people p where p.open_id = f.actor_id
      and strpos(lower(p.name), lower(%(person)s)) > 0))
  and (%(chat)s = '' or exists (
    select from public.chats c where c.chat_id = f.chat_id
      and strpos(lower(c.name), lower(%(chat)s)) > 0))) w
"""
_BY_ANSWER = f"""
select turn_id, chat_id, asker_id, max(updated_at) as at,
       jsonb_agg(jsonb_build_object('by', actor_id, 'helpful', helpful, 'source', source)
                 order by updated_at) as voices
{_WANTED_FEEDBACK} group by turn_id, chat_id, asker_id
having %(before)s::timestamptz is null or max(updated_at) < %(before)s
order by at desc, turn_id limit %(limit)s
"""
_COUNTS = f"""
select count(*) filter (where helpful) as helpful, count(*) filter (where not helpful) as unhelpful
{_WANTED_FEEDBACK}
"""
_VERDICTS = {"helped": True, "did_not_help": False}

_MOST = 100

_Act = Callable[[ImportStore, Chat], Awaitable[HistoryImport | None]]
_ACTS: Mapping[str, _Act] = {
    "pause": lambda store, chat: store.pause(chat, None),
    "resume": lambda store, chat: store.resume(chat, None),
    "remove": lambda store, chat: store.remove(chat, None),
}
_DONE_MESSAGES = frozenset({"paused", "resumed", "removing", "import_gone"})
_SAYS = {"pause": "paused", "resume": "resumed", "remove": "removing"}

_LOOKS = """
select a.id, a.at, a.admin, a.action, a.about,
       coalesce(t.conversation_id, a.about) as place, t.actor_id
from feishu_bot.console_audit a left join public.agent_turns t on t.id = a.about
where (%(before)s::bigint is null or a.id < %(before)s) order by a.id desc limit %(limit)s
"""


def add_people_page(app: Flask, desk: ConsoleContext) -> None:
    def show() -> str:
        name = request.args.get("person", "").strip()[:100]
        after = min(max(request.args.get("after", 0, type=int), 0), 10**6)
        rows = call_owner_function(desk.url, "people_in_numbers", name, after, _PAGE + 1)
        more = after + _PAGE if len(rows) > _PAGE else None
        return draw_page("people.html", rows=rows[:_PAGE], person=name, more=more)

    app.add_url_rule("/console/people", "people", show)


def add_feedback_page(app: Flask, desk: ConsoleContext) -> None:
    def show() -> str:
        filters = {
            name: request.args.get(name, "").strip()[:100] for name in ("person", "chat", "verdict")
        }
        query_params = {
            **filters,
            "helpful": _VERDICTS.get(filters["verdict"]),
            "before": moment_of_address(request.args.get("before")),
            "limit": _PAGE + 1,
        }
        with desk.reader.view() as view:
            rows = view.rows(_BY_ANSWER, query_params)
            counts = view.row(_COUNTS, query_params)
            people = [voice["by"] for row in rows for voice in row["voices"]]
            labels = display_names(
                view,
                [*people, *(row["asker_id"] for row in rows)],
                [row["chat_id"] for row in rows],
            )
        more = rows[_PAGE - 1]["at"] if len(rows) > _PAGE else None
        return draw_page("feedback.html", rows=rows[:_PAGE], counts=counts, names=labels,
                    wanted=filters, verdicts=tuple(_VERDICTS), more=more)  # fmt: skip

    app.add_url_rule("/console/feedback", "feedback", show)


def add_queue_pages(app: Flask, desk: ConsoleContext) -> None:
    def show() -> str:
        failed_jobs = desk.queue.failed(limit=_MOST)
        waiting = desk.queue.unfinished_jobs(limit=_MOST)
        with desk.reader.view() as view:
            jobs: list[Failed | Unfinished] = [*failed_jobs, *waiting]
            people = [one.person for one in jobs]
            places = [chat_of_conversation(one.conversation_id) for one in jobs]
            labels = display_names(view, people, places)
        return draw_page(
            "queue.html",
            depth=desk.queue.depth(),
            failed=failed_jobs,
            waiting=waiting,
            names=labels,
            chat_of=chat_of_conversation,
            done=request.args.get("done", ""),
            about=request.args.get("about", "")[:40],
        )

    def retry(name: str) -> Response:
        one = _queue_reference(name)
        there = desk.queue.retry(one, not_sent=request.form.get("not_sent") == "1")
        return _redirect(one, "retried", there)

    def drop(name: str) -> Response:
        one = _queue_reference(name)
        return _redirect(one, "dropped", desk.queue.drop(one))

    def cancel(job: int) -> Response:
        return _redirect(Reference("J", str(job)), "cancelled", desk.queue.cancel(job))

    def retry_all() -> Response:
        references = [
            one.reference for one in desk.queue.failed(limit=_MOST) if _is_safe_to_retry(one.reason)
        ]
        retried_jobs = [one for one in references if desk.queue.retry(one)]
        desk.reader.note(signed_in_admin(), "retried all", ",".join(map(str, retried_jobs)))
        return redirect_to_page("queue", "retried_all", len(retried_jobs))

    def _redirect(one: Reference, what: str, there: bool) -> Response:
        if there:
            desk.reader.note(signed_in_admin(), f"{what} job", str(one))
        return redirect_to_page("queue", what if there else "not_there", one)

    app.add_url_rule("/console/queue", "queue", show)
    app.add_url_rule("/console/queue/retry", "retry_all", retry_all, methods=["POST"])
    app.add_url_rule("/console/queue/<name>/retry", "retry", retry, methods=["POST"])
    app.add_url_rule("/console/queue/<name>/drop", "drop", drop, methods=["POST"])
    app.add_url_rule("/console/queue/J<int:job>/cancel", "cancel", cancel, methods=["POST"])


def _is_safe_to_retry(reason: str | None) -> bool:
    """Nobody has to look into the chat first whether its card is there."""
    return reason != "OutcomeUnknown"


def _queue_reference(name: str) -> Reference:
    try:
        return Reference.parse(name)
    except ValueError:
        abort(404)


@dataclass(frozen=True, slots=True)
class ImportRow:
    """An import as the page shows it; times are aware. `percent`: None where it is not known."""

    chat_import: HistoryImport
    since: datetime | None
    start_at: datetime | None
    end_at: datetime | None
    percent: int | None
    ends: datetime | None
    acts: tuple[str, ...]


def add_import_pages(app: Flask, desk: ConsoleContext) -> None:
    def show() -> str:
        every = with_memory(desk, lambda rpc: ImportStore(rpc).every())
        with desk.reader.view() as view:
            people = [one.started_by for one in every]
            labels = display_names(view, people, [one.chat_id for one in every])
        now, page_s = datetime.now(desk.settings.zone), desk.settings.import_page_s
        rows = [_import_row(one, now, page_s) for one in every]
        done_action = request.args.get("done", "")
        return draw_page(
            "imports.html",
            rows=rows,
            names=labels,
            done=f"import_{done_action}" if done_action in _DONE_MESSAGES else "",
        )

    def act(number: int, name: str) -> Response:
        if name not in _ACTS:
            abort(404)
        chat_import = with_memory(desk, lambda rpc: _act_on_import(rpc, number, name))
        if chat_import is None:
            return redirect_to_page("imports", "import_gone")
        desk.reader.note(signed_in_admin(), f"{name} import", f"feishu:{chat_import.chat_id}:")
        return redirect_to_page("imports", _SAYS[name])

    app.add_url_rule("/console/imports", "imports", show)
    app.add_url_rule("/console/imports/<int:number>/<name>", "import_act", act, methods=["POST"])


async def _act_on_import(rpc: Rpc, number: int, name: str) -> HistoryImport | None:
    """What is to be done next about it, a worker finds within a minute."""
    store = ImportStore(rpc)
    chat_import = await store.get(number)
    return await _ACTS[name](store, chat_import.chat) if chat_import else None


def _import_row(chat_import: HistoryImport, now: datetime, page_s: float) -> ImportRow:
    share = chat_import.share_read
    return ImportRow(
        chat_import,
        _moment_of(chat_import.since_ms),
        _moment_of(chat_import.started_ms),
        _moment_of(chat_import.finished_ms),
        None if share is None else int(share * 100),
        chat_import.expected_end(now, page_s),
        _possible_acts(chat_import),
    )


def _moment_of(ms: int | None) -> datetime | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC)


def _possible_acts(chat_import: HistoryImport) -> tuple[str, ...]:
    match chat_import.state:
        case "running":
            return ("pause", "remove")
        case "paused" | "failed":
            return ("resume", "remove")
        case "removing":
            return ()
        case _:
            return ("remove",)


def add_receipt_pages(app: Flask, desk: ConsoleContext) -> None:
    def show() -> str:
        before = max(0, request.args.get("before", 0, type=int))

        async def work(rpc: Rpc) -> tuple[Receipt, ...]:
            return await ReceiptStore(rpc).page(before=before, limit=_PAGE)

        rows = with_memory(desk, work)
        more = rows[-1].number if rows and rows[-1].number > 1 else None
        return draw_page("receipts.html", rows=rows, more=more)

    def export() -> flask.Response:
        desk.reader.note(signed_in_admin(), "export receipts", "")

        async def work(rpc: Rpc) -> str:
            return "".join([f"{line}\n" async for line in ReceiptStore(rpc).lines()])

        headers = {"Content-Disposition": "attachment; filename=receipts.jsonl"}
        return flask.Response(
            with_memory(desk, work), headers=headers, mimetype="application/jsonl"
        )

    app.add_url_rule("/console/receipts", "receipts", show)
    app.add_url_rule("/console/receipts/export", "receipts_export", export, methods=["POST"])


def add_audit_page(app: Flask, desk: ConsoleContext) -> None:
    def show() -> str:
        before = request.args.get("before", type=int)
        with desk.reader.view() as view:
            rows = view.rows(_LOOKS, {"before": before, "limit": _PAGE + 1})
            people = [row["actor_id"] or row["about"] for row in rows]
            labels = display_names(
                view, people, [chat_of_conversation(row["place"]) for row in rows]
            )
        more = rows[_PAGE - 1]["id"] if len(rows) > _PAGE else None
        return draw_page(
            "audit.html", rows=rows[:_PAGE], names=labels, chat_of=chat_of_conversation, more=more
        )

    app.add_url_rule("/console/audit", "audit", show)
