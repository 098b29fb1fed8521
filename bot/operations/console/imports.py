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
            named = names(view, people, [one.chat_id for one in every])
        now, page_s = datetime.now(desk.settings.zone), seconds_a_page(desk.settings)
        rows = [_row(one, now, page_s) for one in every]
        done = request.args.get("done", "")
        return draw(
            "imports.html", rows=rows, names=named, done=f"import_{done}" if done in _DONE else ""
        )

    def act(number: int, name: str) -> Response:
        if name not in _ACTS:
            abort(404)
        found = with_memory(desk, lambda rpc: _act(rpc, number, name))
        if found is None:
            return back_to("imports", "import_gone")
        desk.reader.note(admin(), f"{name} import", f"feishu:{found.chat_id}:")
        return back_to("imports", _SAYS[name])

    app.add_url_rule("/console/imports", "imports", show)
    app.add_url_rule("/console/imports/<int:number>/<name>", "import_act", act, methods=["POST"])


async def _act(rpc: Rpc, number: int, name: str) -> HistoryImport | None:
    """What is to be done next about it, a worker finds within a minute."""
    store = ImportStore(rpc)
    found = await store.get(number)
    return await _ACTS[name](store, found.chat) if found else None


def _row(found: HistoryImport, now: datetime, page_s: float) -> Row:
    share = share_read(found)
    return Row(
        found,
        _at(found.since_ms),
        _at(found.started_ms),
        _at(found.finished_ms),
        None if share is None else int(share * 100),
        expected_end(found, now, page_s),
        _acts(found),
    )


def _at(ms: int | None) -> datetime | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC)


def _acts(found: HistoryImport) -> tuple[str, ...]:
    match found.state:
        case "running":
            return ("pause", "remove")
        case "paused" | "failed":
            return ("resume", "remove")
        case "removing":
            return ()
        case _:
            return ("remove",)
