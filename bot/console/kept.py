"""Memory: facts, notes and summaries of a person or with some words, whence, and who can read them.

Looking at them is kept first. They are corrected and deleted as the person would do it, by the same
functions, so what an item was made from and what repeats it goes with it.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable
from typing import IO, Any, TypeVar
from urllib.parse import urlencode

from flask import Flask, abort, redirect, request, send_file
from werkzeug.wrappers import Response

from bot.connections import open_rpc
from bot.console.desk import Desk, admin, draw
from bot.console.reading import Names, Row, View, names
from memory.errors import BadPatch, NoteInvalid, TextRefused, WorkingMemoryTooLarge
from memory.kept.items import ItemStore, Kind
from memory.kept.operations import Operations
from memory.rpc import Rpc
from memory.scope import AgentMemoryContext, private_context

Found = TypeVar("Found")

_PAGE = 30
_MOST_NAMED = 20
_TIMEOUT_S = 120.0
_IN_MEMORY_BYTES = 1 << 20
_NAMED = """
select open_id, max(name) as name from public.people
where name <> '' and strpos(lower(name), lower(%(person)s)) > 0
group by open_id order by 2, 1 limit %(limit)s
"""
_ITEMS = """
with items as (
  select 'fact' as kind, w.id::text as id, w.tenant_key, e.key, e.value, w.scope, w.actor_id,
         w.user_id, w.chat_id, w.conversation_id, null as shared_chat_id, null::bigint as until_id,
         w.sources #>> array[e.key, 'turn'] as turn_id,
         coalesce((w.sources #>> array[e.key, 'at'])::timestamptz, w.updated_at) as at
  from public.agent_working_memory w, jsonb_each(w.content) e
  union all
  select 'note', n.id, n.tenant_key, n.title, to_jsonb(n.body), 'user', n.user_id, n.user_id,
         n.chat_id, n.conversation_id, n.shared_chat_id, null, n.turn_id, n.updated_at
  from public.agent_notes n
  union all
  select 'summary', s.id::text, s.tenant_key, '', to_jsonb(s.content), 'chat', s.user_id, s.user_id,
         s.chat_id, s.conversation_id, null, s.until_message_id, null, s.updated_at
  from public.agent_summaries s),
page as (
  select * from items i
  where (%(of)s = '' or %(of)s in (i.user_id, i.actor_id))
    and (%(words)s = ''
         or strpos(lower(i.key || ' ' || (i.value #>> '{}')), lower(%(words)s)) > 0)
  order by at desc, kind, id, key offset %(after)s limit %(limit)s)
select p.*, s.sources from page p left join lateral (
  select jsonb_agg(jsonb_build_object('turn', f.turn_id, 'said', left(f.content, 300))
                   order by f.id) as sources
  from (
    (select m.id, m.turn_id, m.content from public.agent_messages m
     where m.turn_id = p.turn_id and m.tenant_key = p.tenant_key and m.role = 'user' limit 5)
    union all
    (select m.id, m.turn_id, m.content from public.agent_messages m
     where p.kind = 'summary' and m.conversation_id = p.conversation_id and m.user_id = p.user_id
       and m.tenant_key = p.tenant_key and m.id <= p.until_id and m.role = 'user'
     order by m.id desc limit 5)) f) s on true
order by p.at desc, p.kind, p.id, p.key
"""
_DONE = frozenset({"corrected", "item_forgotten", "item_gone", "not_storable", "too_large"})


def add(app: Flask, desk: Desk) -> None:
    def show() -> str:
        wanted = {name: request.args.get(name, "").strip()[:100] for name in ("person", "words")}
        of, after = request.args.get("of", "")[:100], request.args.get("after", 0, type=int)
        after = min(max(after, 0), 10**6)
        with desk.reader.view() as view:
            meant = _meant(view, of, wanted["person"])
        of = meant[0]["open_id"] if len(meant) == 1 else ""
        rows: list[Row] = []
        named = Names({}, {})
        looks = bool(of or (wanted["words"] and not wanted["person"]))
        if looks:
            action = "search memory" if wanted["words"] else "read memory"
            asked = {"of": of, "words": wanted["words"], "after": after, "limit": _PAGE + 1}
            with desk.reader.looking(admin(), action, of) as view:
                rows = view.rows(_ITEMS, asked)
                named = _names(view, rows)
        done = request.args.get("done", "")
        return draw("memory.html", wanted=wanted, meant=meant, of=of, looks=looks, names=named,
                    rows=rows[:_PAGE], more=after + _PAGE if len(rows) > _PAGE else None,
                    done=done if done in _DONE else "",
                    narrowed=desk.settings.sharing == "person")  # fmt: skip

    def forget() -> Response:
        kind, id = _item()
        person = _given("user_id")
        desk.reader.note(admin(), f"forget {kind}", person)

        async def work(rpc: Rpc) -> bool:
            as_them = _of(person)
            return await ItemStore(rpc).forget(as_them, kind, id, request.form["key"]) is not None

        return _back("item_forgotten" if _with_memory(desk, work) else "item_gone")

    def correct() -> Response:
        kind, id = _item()
        person = _given("actor_id")
        try:
            value = _value(request.form.get("value", ""), as_json=request.form.get("json") == "1")
        except ValueError:
            return _back("not_storable")
        desk.reader.note(admin(), f"correct {kind}", person)

        async def work(rpc: Rpc) -> bool:
            store, key = ItemStore(rpc), request.form["key"]
            return await store.correct(_of(person), kind, id, key, value=value) is not None

        try:
            return _back("corrected" if _with_memory(desk, work) else "item_gone")
        except WorkingMemoryTooLarge:
            return _back("too_large")
        except (NoteInvalid, TextRefused, BadPatch):
            return _back("not_storable")

    def export() -> Response:
        person = _given("of")
        with desk.reader.view() as view:
            name = names(view, [person]).person(person)
        desk.reader.note(admin(), "export memory", person)
        out = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115  (the answer closes it)

        async def work(rpc: Rpc) -> None:
            await _write(out, Operations(rpc), desk, person, name)

        _with_memory(desk, work)
        out.seek(0)
        return send_file(out, "application/json", as_attachment=True, download_name="memory.json")

    app.add_url_rule("/console/memory", "memory", show)
    app.add_url_rule("/console/memory/forget", "memory_forget", forget, methods=["POST"])
    app.add_url_rule("/console/memory/correct", "memory_correct", correct, methods=["POST"])
    app.add_url_rule("/console/memory/export", "memory_export", export, methods=["POST"])


def _meant(view: View, of: str, name: str) -> list[Row]:
    """Whom the page is about: by id as its links give it, else all whose name holds `name`."""
    if of and not name:
        return [{"open_id": of, "name": names(view, [of]).person(of)}]
    return view.rows(_NAMED, {"person": name, "limit": _MOST_NAMED}) if name else []


def _names(view: View, rows: list[Row]) -> Names:
    people = [one for row in rows for one in (row["actor_id"], row["user_id"])]
    chats = [one for row in rows for one in (row["chat_id"], row["shared_chat_id"])]
    return names(view, people, chats)


def _with_memory(desk: Desk, work: Callable[[Rpc], Awaitable[Found]]) -> Found:
    """What `work` returns, done as operators do it. Raises `StoreError`."""

    async def connected() -> Found:
        rpc = await open_rpc(desk.settings, desk.url, size=1, timeout_s=_TIMEOUT_S)
        try:
            return await work(rpc)
        finally:
            await rpc.close()

    return asyncio.run(connected())


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


def _item() -> tuple[Kind, str]:
    """Which item the form is about."""
    kind, id = request.form.get("kind"), request.form.get("id", "")
    if "key" not in request.form or not id or len(id) > 200:
        abort(404)
    if kind == "fact" and id.isascii() and id.isdecimal() and len(id) <= 18:
        return "fact", id
    return ("note", id) if kind == "note" else abort(404)


def _of(person: str) -> AgentMemoryContext:
    """They themselves, in the tenant of the item."""
    return private_context(person, "console", request.form.get("tenant_key", ""))


def _value(text: str, *, as_json: bool) -> Any:
    """What the form holds. Raises ValueError for nothing and for what is no JSON."""
    value = text.replace("\r\n", "\n").strip()
    if not value:
        raise ValueError("nothing")
    return json.loads(value, parse_constant=_refuse) if as_json else value


def _refuse(constant: str) -> None:
    raise ValueError(constant)  # NaN and Infinity are no JSON


def _back(done: str) -> Response:
    fields = {name: request.form.get(name, "")[:100] for name in ("of", "words")}
    return redirect(f"/console/memory?{urlencode({**fields, 'done': done})}", 303)
