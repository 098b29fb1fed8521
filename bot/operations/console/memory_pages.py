"""Shows, corrects, forgets and exports what is kept of a person, and notes each in the audit.

Changes use the same functions as when the person makes them, so what an item was made from and
what repeats it goes with it."""

from __future__ import annotations

import json
import tempfile
from typing import IO, Any, cast
from urllib.parse import urlencode

from flask import Flask, abort, redirect, request, send_file
from werkzeug.wrappers import Response

from bot.operations.console.context import (
    ConsoleContext,
    ConsoleRow,
    ConsoleView,
    DisplayNames,
    display_names,
    draw_page,
    signed_in_admin,
    with_memory,
)
from memory.errors import BadPatch, NoteInvalid, TextRefused, WorkingMemoryTooLarge
from memory.rpc import Rpc
from memory.scope import AgentMemoryContext, private_context
from memory.tables.items import ItemKind, ItemStore
from memory.tables.operations import Operations

_PAGE = 30
_MOST_NAMED = 20
_KINDS = ("fact", "note", "summary")
_NAME_QUERY = """
select open_id, max(name) as name from public.people
where name <> '' and strpos(lower(name), lower(%(person)s)) > 0
group by open_id order by 2, 1 limit %(limit)s
"""
_ITEMS = """
with items as (
  select 'fact' as kind, w.id::text as id, w.tenant_key, e.key, e.value, w.scope, w.actor_id,
         w.user_id, w.chat_id, w.conversation_id, null as shared_chat_id, null::bigint as until_id,
         null::integer as messages, w.sources #>> array[e.key, 'turn'] as turn_id,
         coalesce((w.sources #>> array[e.key, 'at'])::timestamptz, w.updated_at) as at
  from public.agent_working_memory w, jsonb_each(w.content) e
  union all
  select 'note', n.id, n.tenant_key, n.title, to_jsonb(n.body), 'user', n.user_id, n.user_id,
         n.chat_id, n.conversation_id, n.shared_chat_id, null, null, n.turn_id, n.updated_at
  from public.agent_notes n
  union all
  select 'summary', s.id::text, s.tenant_key, '', to_jsonb(s.content), 'chat', s.user_id, s.user_id,
         s.chat_id, s.conversation_id, null, s.until_message_id, s.messages, null, s.updated_at
  from public.agent_summaries s),
page as (
  select * from items i
  where (%(of)s = '' or %(of)s in (i.user_id, i.actor_id))
    and (%(kind)s = '' or i.kind = %(kind)s)
    and (%(words)s = ''
         or strpos(lower(i.key || ' ' || (i.value #>> '{}')), lower(%(words)s)) > 0)
  order by at desc, kind, id, key offset %(after)s limit %(limit)s)
select p.*, s.sources from page p left join lateral (
  select jsonb_agg(jsonb_build_object('turn', f.turn_id, 'by', f.actor_id, 'at', f.created_at,
                                      'said', left(f.content, 300)) order by f.id) as sources
  from (
    (select m.id, m.turn_id, m.actor_id, m.created_at, m.content from public.agent_messages m
     where m.turn_id = p.turn_id and m.tenant_key = p.tenant_key and m.role = 'user' limit 5)
    union all
    (select m.id, m.turn_id, m.actor_id, m.created_at, m.content
     from public.agent_messages m left join public.agent_chats c
       on c.id = m.conversation_id and c.user_id = p.user_id and c.tenant_key = m.tenant_key
     where p.kind = 'summary' and m.conversation_id = p.conversation_id
       and p.user_id in ('', m.user_id, m.actor_id) and m.tenant_key = p.tenant_key
       and m.id > coalesce(c.history_from, 0) and m.id <= p.until_id and m.role = 'user'
     order by m.id desc limit 30)) f) s on true
order by p.at desc, p.kind, p.id, p.key
"""

_IN_MEMORY_BYTES = 1 << 20
_DONE_MESSAGES = frozenset(
    {"corrected", "item_forgotten", "item_gone", "not_storable", "too_large"}
)


def add_memory_pages(app: Flask, desk: ConsoleContext) -> None:
    def show() -> str:
        filters = {name: _asked_for(name) for name in ("person", "words", "kind")}
        if filters["kind"] not in _KINDS:
            filters["kind"] = ""
        after = min(max(request.args.get("after", 0, type=int), 0), 10**6)
        with desk.reader.view() as view:
            matches = _meant_people(view, _asked_for("of"), filters["person"])
        of = matches[0]["open_id"] if len(matches) == 1 else ""
        rows: list[ConsoleRow] = []
        labels = DisplayNames({}, {})
        looks = bool(of or ((filters["words"] or filters["kind"]) and not filters["person"]))
        if looks:
            rows, labels = _found_items(desk, of, filters, after)
        return draw_page("memory.html", wanted=filters, meant=matches, of=of, looks=looks,
                    names=labels,
                    rows=rows[:_PAGE], more=after + _PAGE if len(rows) > _PAGE else None,
                    done=done_message(request.args.get("done", "")), kinds=_KINDS,
                    narrowed=desk.settings.sharing == "person")  # fmt: skip

    app.add_url_rule("/console/memory", "memory", show)
    add_memory_changes(app, desk)


def _asked_for(name: str) -> str:
    return request.args.get(name, "").strip()[:100]


def _found_items(
    desk: ConsoleContext, of: str, filters: dict[str, str], after: int
) -> tuple[list[ConsoleRow], DisplayNames]:
    """A page of items, one more if there are more; the look is kept."""
    action = "search memory" if filters["words"] else "read memory"
    query_params: dict[str, Any] = {"of": of, "words": filters["words"], "kind": filters["kind"]}
    with desk.reader.looking(signed_in_admin(), action, of) as view:
        rows = view.rows(_ITEMS, {**query_params, "after": after, "limit": _PAGE + 1})
        return rows, _names(view, rows)


def _meant_people(view: ConsoleView, of: str, name: str) -> list[ConsoleRow]:
    """Whom the page is about: by id as its links give it, else all whose name holds `name`."""
    if of and not name:
        return [{"open_id": of, "name": display_names(view, [of]).person(of)}]
    return view.rows(_NAME_QUERY, {"person": name, "limit": _MOST_NAMED}) if name else []


def _names(view: ConsoleView, rows: list[ConsoleRow]) -> DisplayNames:
    people = [one for row in rows for one in (row["actor_id"], row["user_id"])]
    people += [source["by"] for row in rows for source in row["sources"] or ()]
    chats = [one for row in rows for one in (row["chat_id"], row["shared_chat_id"])]
    return display_names(view, people, chats)


def add_memory_changes(app: Flask, desk: ConsoleContext) -> None:
    paths = {"forget": _forget, "correct": _correct, "export": _export}
    for name, act in paths.items():
        app.add_url_rule(
            f"/console/memory/{name}",
            f"memory_{name}",
            lambda act=act: act(desk),
            methods=["POST"],
        )


def done_message(key: str) -> str:
    """What a page says was done, if it is something that can be."""
    return key if key in _DONE_MESSAGES else ""


def _forget(desk: ConsoleContext) -> Response:
    kind, id = _item_of_form()
    person = _owner_of_item(kind, "user_id")
    desk.reader.note(signed_in_admin(), f"forget {kind}", person)

    async def work(rpc: Rpc) -> bool:
        return (
            await ItemStore(rpc).forget(_own_context(person), kind, id, request.form["key"])
            is not None
        )

    return _back_to_memory("item_forgotten" if with_memory(desk, work) else "item_gone")


def _correct(desk: ConsoleContext) -> Response:
    kind, id = _item_of_form()
    person = _owner_of_item(kind, "actor_id")
    try:
        value = _value(request.form.get("value", ""), as_json=request.form.get("json") == "1")
    except ValueError:
        return _back_to_memory("not_storable")
    desk.reader.note(signed_in_admin(), f"correct {kind}", person)

    async def work(rpc: Rpc) -> bool:
        store, key = ItemStore(rpc), request.form["key"]
        return await store.correct(_own_context(person), kind, id, key, value=value) is not None

    try:
        return _back_to_memory("corrected" if with_memory(desk, work) else "item_gone")
    except WorkingMemoryTooLarge:
        return _back_to_memory("too_large")
    except (NoteInvalid, TextRefused, BadPatch):
        return _back_to_memory("not_storable")


def _export(desk: ConsoleContext) -> Response:
    person = _given_field("of")
    with desk.reader.view() as view:
        name = display_names(view, [person]).person(person)
    desk.reader.note(signed_in_admin(), "export memory", person)
    out = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115  (the answer closes it)

    async def work(rpc: Rpc) -> None:
        await _write(out, Operations(rpc), desk, person, name)

    with_memory(desk, work)
    out.seek(0)
    return send_file(out, "application/json", as_attachment=True, download_name="memory.json")


async def _write(
    out: IO[bytes], operations: Operations, desk: ConsoleContext, person: str, name: str
) -> None:
    """Everything of a person as one JSON object, row by row."""
    head = json.dumps({"open_id": person, "name": name}, ensure_ascii=False)
    out.write(f'{{"person": {head}, "rows": ['.encode())
    between = ""

    def add_row(table: str, row: Any) -> None:
        nonlocal between
        text = json.dumps({"table": table, "row": row}, ensure_ascii=False, default=str)
        out.write(f"{between}\n{text}".encode())
        between = ","

    async for table, row in operations.export_person(person):
        add_row(table, row)
    for table, waiting in desk.queue.export(person):
        add_row(table, waiting)
    out.write(b"\n]}\n")


def _given_field(field: str) -> str:
    """A field that the form has to have."""
    return request.form.get(field, "")[:100] or abort(404)


def _owner_of_item(kind: ItemKind, field: str) -> str:
    """Whose item it is; a summary can be everybody's, which is ""."""
    return "" if kind == "summary" and not request.form.get(field) else _given_field(field)


def _item_of_form() -> tuple[ItemKind, str]:
    """Which item the form is about: a note's id is a text, the others' are numbers."""
    kind, id = request.form.get("kind"), request.form.get("id", "")
    if "key" not in request.form or not id or len(id) > 200:
        abort(404)
    is_number = id.isascii() and id.isdecimal() and len(id) <= 18
    if kind == "note" or (kind in ("fact", "summary") and is_number):
        return cast(ItemKind, kind), id
    return abort(404)


def _own_context(person: str) -> AgentMemoryContext:
    """They themselves, in the tenant of the item."""
    return private_context(person, request.form.get("tenant_key", ""))


def _value(text: str, *, as_json: bool) -> Any:
    """What the form holds. Raises ValueError for nothing and for what is no JSON."""
    value = text.replace("\r\n", "\n").strip()
    if not value:
        raise ValueError("nothing")
    return json.loads(value, parse_constant=_refuse_constant) if as_json else value


def _refuse_constant(constant: str) -> None:
    raise ValueError(constant)  # NaN and Infinity are no JSON


def _back_to_memory(done_action: str) -> Response:
    fields = {name: request.form.get(name, "")[:100] for name in ("of", "words", "only")}
    fields["kind"] = fields.pop("only")
    return redirect(f"/console/memory?{urlencode({**fields, 'done': done_action})}", 303)
