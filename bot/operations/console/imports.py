"""Imports: which histories of chats were asked for, how far they are; paused, resumed, removed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from flask import Flask, abort, request
from werkzeug.wrappers import Response

from bot.features.history_import.standing import expected_end, seconds_a_page, share_read
from bot.operations.console.database import names
from bot.operations.console.page_context import Desk, admin, back_to, draw, with_memory
from memory.rpc import Rpc
from memory.tables.imports import Chat, HistoryImport, ImportStore

_Act = Callable[[ImportStore, Chat], Awaitable[HistoryImport | None]]
_ACTS: Mapping[str, _Act] = {
    "pause": lambda store, chat: store.pause(chat, None),
    "resume": lambda store, chat: store.resume(chat, None),
    "remove": lambda store, chat: store.remove(chat, None),
}
_DONE = frozenset({"paused", "resumed", "removing", "import_gone"})
_SAYS = {"pause": "paused", "resume": "resumed", "remove": "removing"}


@dataclass(frozen=True, slots=True)
class Row:
    """An import as the page shows it; times are aware. `percent`: None where it is not known."""

    found: HistoryImport
    since: datetime | None
    started: datetime | None
    finished: datetime | None
    percent: int | None
    ends: datetime | None
    acts: tuple[str, ...]


def add(app: Flask, desk: Desk) -> None:
    def show() -> str:
        every = with_memory(desk, lambda rpc: ImportStore(rpc).every())
        with desk.reader.view() as view:
            people = [one.started_by for one in every]
            labels = names(view, people, [one.chat_id for one in every])
        now, page_s = datetime.now(desk.settings.zone), seconds_a_page(desk.settings)
        rows = [_row(one, now, page_s) for one in every]
        done_action = request.args.get("done", "")
        return draw(
            "imports.html",
            rows=rows,
            names=labels,
            done=f"import_{done_action}" if done_action in _DONE else "",
        )

    def act(number: int, name: str) -> Response:
        if name not in _ACTS:
            abort(404)
        chat_import = with_memory(desk, lambda rpc: _act(rpc, number, name))
        if chat_import is None:
            return back_to("imports", "import_gone")
        desk.reader.note(admin(), f"{name} import", f"feishu:{chat_import.chat_id}:")
        return back_to("imports", _SAYS[name])

    app.add_url_rule("/console/imports", "imports", show)
    app.add_url_rule("/console/imports/<int:number>/<name>", "import_act", act, methods=["POST"])


async def _act(rpc: Rpc, number: int, name: str) -> HistoryImport | None:
    """What is to be done next about it, a worker finds within a minute."""
    store = ImportStore(rpc)
    chat_import = await store.get(number)
    return await _ACTS[name](store, chat_import.chat) if chat_import else None


def _row(chat_import: HistoryImport, now: datetime, page_s: float) -> Row:
    share = share_read(chat_import)
    return Row(
        chat_import,
        _at(chat_import.since_ms),
        _at(chat_import.started_ms),
        _at(chat_import.finished_ms),
        None if share is None else int(share * 100),
        expected_end(chat_import, now, page_s),
        _acts(chat_import),
    )


def _at(ms: int | None) -> datetime | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC)


def _acts(chat_import: HistoryImport) -> tuple[str, ...]:
    match chat_import.state:
        case "running":
            return ("pause", "remove")
        case "paused" | "failed":
            return ("resume", "remove")
        case "removing":
            return ()
        case _:
            return ("remove",)
