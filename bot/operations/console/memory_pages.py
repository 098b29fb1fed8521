"""Memory: facts, notes and summaries of a person or with some words, whence, and who can read them.

Looking at them is kept first.
"""

from __future__ import annotations

from typing import Any

from flask import Flask, request

from bot.operations.console import memory_changes
from bot.operations.console.database import DisplayNames, Row, View, names
from bot.operations.console.page_context import Desk, admin, draw

_PAGE = 30
_MOST_NAMED = 20
_KINDS = ("fact", "note", "summary")
_NAMED = """
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


def add(app: Flask, desk: Desk) -> None:
    def show() -> str:
        filters = {name: _asked(name) for name in ("person", "words", "kind")}
        if filters["kind"] not in _KINDS:
            filters["kind"] = ""
        after = min(max(request.args.get("after", 0, type=int), 0), 10**6)
        with desk.reader.view() as view:
            matches = _meant(view, _asked("of"), filters["person"])
        of = matches[0]["open_id"] if len(matches) == 1 else ""
        rows: list[Row] = []
        labels = DisplayNames({}, {})
        looks = bool(of or ((filters["words"] or filters["kind"]) and not filters["person"]))
        if looks:
            rows, labels = _found(desk, of, filters, after)
        return draw("memory.html", wanted=filters, meant=matches, of=of, looks=looks, names=labels,
                    rows=rows[:_PAGE], more=after + _PAGE if len(rows) > _PAGE else None,
                    done=memory_changes.done(request.args.get("done", "")), kinds=_KINDS,
                    narrowed=desk.settings.sharing == "person")  # fmt: skip

    app.add_url_rule("/console/memory", "memory", show)
    memory_changes.add(app, desk)


def _asked(name: str) -> str:
    return request.args.get(name, "").strip()[:100]


def _found(
    desk: Desk, of: str, filters: dict[str, str], after: int
) -> tuple[list[Row], DisplayNames]:
    """A page of items, one more if there are more; the look is kept."""
    action = "search memory" if filters["words"] else "read memory"
    query_params: dict[str, Any] = {"of": of, "words": filters["words"], "kind": filters["kind"]}
    with desk.reader.looking(admin(), action, of) as view:
        rows = view.rows(_ITEMS, {**query_params, "after": after, "limit": _PAGE + 1})
        return rows, _names(view, rows)


def _meant(view: View, of: str, name: str) -> list[Row]:
    """Whom the page is about: by id as its links give it, else all whose name holds `name`."""
    if of and not name:
        return [{"open_id": of, "name": names(view, [of]).person(of)}]
    return view.rows(_NAMED, {"person": name, "limit": _MOST_NAMED}) if name else []


def _names(view: View, rows: list[Row]) -> DisplayNames:
    people = [one for row in rows for one in (row["actor_id"], row["user_id"])]
    people += [source["by"] for row in rows for source in row["sources"] or ()]
    chats = [one for row in rows for one in (row["chat_id"], row["shared_chat_id"])]
    return names(view, people, chats)
