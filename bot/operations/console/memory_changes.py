"""Correcting, forgetting and exporting what is kept; each is kept in the audit.

It is done by the same functions as when the person does it, so what an item was made from and what
repeats it goes with it.
"""

from __future__ import annotations

import json
import tempfile
from typing import IO, Any, cast
from urllib.parse import urlencode

from flask import Flask, abort, redirect, request, send_file
from werkzeug.wrappers import Response

from bot.operations.console.database import names
from bot.operations.console.page_context import Desk, admin, with_memory
from memory.errors import BadPatch, NoteInvalid, TextRefused, WorkingMemoryTooLarge
from memory.rpc import Rpc
from memory.scope import AgentMemoryContext, private_context
from memory.tables.items import ItemStore, Kind
from memory.tables.operations import Operations

_IN_MEMORY_BYTES = 1 << 20
_DONE = frozenset({"corrected", "item_forgotten", "item_gone", "not_storable", "too_large"})


def add(app: Flask, desk: Desk) -> None:
    paths = {"forget": _forget, "correct": _correct, "export": _export}
    for name, act in paths.items():
        app.add_url_rule(
            f"/console/memory/{name}",
            f"memory_{name}",
            lambda act=act: act(desk),
            methods=["POST"],
        )


def done(key: str) -> str:
    """What a page says was done, if it is something that can be."""
    return key if key in _DONE else ""


def _forget(desk: Desk) -> Response:
    kind, id = _item()
    person = _owner(kind, "user_id")
    desk.reader.note(admin(), f"forget {kind}", person)

    async def work(rpc: Rpc) -> bool:
        return await ItemStore(rpc).forget(_of(person), kind, id, request.form["key"]) is not None

    return _back("item_forgotten" if with_memory(desk, work) else "item_gone")


def _correct(desk: Desk) -> Response:
    kind, id = _item()
    person = _owner(kind, "actor_id")
    try:
        value = _value(request.form.get("value", ""), as_json=request.form.get("json") == "1")
    except ValueError:
        return _back("not_storable")
    desk.reader.note(admin(), f"correct {kind}", person)

    async def work(rpc: Rpc) -> bool:
        store, key = ItemStore(rpc), request.form["key"]
        return await store.correct(_of(person), kind, id, key, value=value) is not None

    try:
        return _back("corrected" if with_memory(desk, work) else "item_gone")
    except WorkingMemoryTooLarge:
        return _back("too_large")
    except (NoteInvalid, TextRefused, BadPatch):
        return _back("not_storable")


def _export(desk: Desk) -> Response:
    person = _given("of")
    with desk.reader.view() as view:
        name = names(view, [person]).person(person)
    desk.reader.note(admin(), "export memory", person)
    out = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115  (the answer closes it)

    async def work(rpc: Rpc) -> None:
        await _write(out, Operations(rpc), desk, person, name)

    with_memory(desk, work)
    out.seek(0)
    return send_file(out, "application/json", as_attachment=True, download_name="memory.json")


async def _write(
    out: IO[bytes], operations: Operations, desk: Desk, person: str, name: str
) -> None:
    """Everything of a person as one JSON object, row by row."""
    head = json.dumps({"open_id": person, "name": name}, ensure_ascii=False)
    out.write(f'{{"person": {head}, "rows": ['.encode())
    between = ""

    def put(table: str, row: Any) -> None:
        nonlocal between
        text = json.dumps({"table": table, "row": row}, ensure_ascii=False, default=str)
        out.write(f"{between}\n{text}".encode())
        between = ","

    async for table, row in operations.export_person(person):
        put(table, row)
    for table, waiting in desk.queue.export(person):
        put(table, waiting)
    out.write(b"\n]}\n")


def _given(field: str) -> str:
    """A field that the form has to have."""
    return request.form.get(field, "")[:100] or abort(404)


def _owner(kind: Kind, field: str) -> str:
    """Whose item it is; a summary can be everybody's, which is ""."""
    return "" if kind == "summary" and not request.form.get(field) else _given(field)


def _item() -> tuple[Kind, str]:
    """Which item the form is about: a note's id is a text, the others' are numbers."""
    kind, id = request.form.get("kind"), request.form.get("id", "")
    if "key" not in request.form or not id or len(id) > 200:
        abort(404)
    is_number = id.isascii() and id.isdecimal() and len(id) <= 18
    if kind == "note" or (kind in ("fact", "summary") and is_number):
        return cast(Kind, kind), id
    return abort(404)


def _of(person: str) -> AgentMemoryContext:
    """They themselves, in the tenant of the item."""
    return private_context(person, request.form.get("tenant_key", ""))


def _value(text: str, *, as_json: bool) -> Any:
    """What the form holds. Raises ValueError for nothing and for what is no JSON."""
    value = text.replace("\r\n", "\n").strip()
    if not value:
        raise ValueError("nothing")
    return json.loads(value, parse_constant=_refuse) if as_json else value


def _refuse(constant: str) -> None:
    raise ValueError(constant)  # NaN and Infinity are no JSON


def _back(done_action: str) -> Response:
    fields = {name: request.form.get(name, "")[:100] for name in ("of", "words", "only")}
    fields["kind"] = fields.pop("only")
    return redirect(f"/console/memory?{urlencode({**fields, 'done': done_action})}", 303)
