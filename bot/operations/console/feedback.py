"""Feedback: what people said of answers, by button or reaction, without the answers' words."""

from __future__ import annotations

from flask import Flask, request

from bot.operations.console.database import moment_given, names
from bot.operations.console.page_context import Desk, draw

_PAGE = 50
_WANTED = """from (
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
{_WANTED} group by turn_id, chat_id, asker_id
having %(before)s::timestamptz is null or max(updated_at) < %(before)s
order by at desc, turn_id limit %(limit)s
"""
_COUNTS = f"""
select count(*) filter (where helpful) as helpful, count(*) filter (where not helpful) as unhelpful
{_WANTED}
"""
_VERDICTS = {"helped": True, "did_not_help": False}


def add(app: Flask, desk: Desk) -> None:
    def show() -> str:
        filters = {
            name: request.args.get(name, "").strip()[:100] for name in ("person", "chat", "verdict")
        }
        query_params = {
            **filters,
            "helpful": _VERDICTS.get(filters["verdict"]),
            "before": moment_given(request.args.get("before")),
            "limit": _PAGE + 1,
        }
        with desk.reader.view() as view:
            rows = view.rows(_BY_ANSWER, query_params)
            counts = view.row(_COUNTS, query_params)
            people = [voice["by"] for row in rows for voice in row["voices"]]
            labels = names(
                view,
                [*people, *(row["asker_id"] for row in rows)],
                [row["chat_id"] for row in rows],
            )
        more = rows[_PAGE - 1]["at"] if len(rows) > _PAGE else None
        return draw("feedback.html", rows=rows[:_PAGE], counts=counts, names=labels, wanted=filters,
                    verdicts=tuple(_VERDICTS), more=more)  # fmt: skip

    app.add_url_rule("/console/feedback", "feedback", show)
