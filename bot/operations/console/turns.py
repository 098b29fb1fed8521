"""Conversations and one turn: who asked what, why it was answered, from what, and how it went."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import structlog
from flask import Flask, abort, request

from bot.agents.prompts.prompt import manager_instructions
from bot.feishu import markup
from bot.feishu.markup import applink_base
from bot.listening.decisions import Reason
from bot.operations.console.context import (
    ConsoleContext,
    ConsoleRow,
    display_names,
    draw_page,
    moment_of_address,
    signed_in_admin,
)
from bot.operations.replay import TURN_MESSAGES, TURN_ROW, RecordedTurn, prompt_of_turn
from bot.outbox import live_card
from bot.queue.operator_actions import Reference
from bot.text.roster import from_card
from memory.errors import StoreError
from memory.models import OUTCOME_KINDS

log = structlog.get_logger()

_PAGE = 50
_MOST_CHARACTERS = 300  # characters of a question
_TURNS = """
select (select left(m.content, %(shown)s) from public.agent_messages m
        where m.turn_id = t.id and m.tenant_key = t.tenant_key and m.role = 'user'
        order by m.chunk limit 1) as question,
       t.id, t.conversation_id, t.chat_id, t.user_id, t.actor_id, t.created_at,
       coalesce(t.outcome, 'under_way') as outcome, t.outcome_reason,
       extract(epoch from t.updated_at - t.created_at) as seconds,
       (select d.reason from public.agent_decisions d
        where d.message_id = t.id and d.chat_id = t.chat_id and d.tenant_key = t.tenant_key
        order by d.id desc limit 1) as reason
from public.agent_turns t
where (%(before)s::timestamptz is null or t.created_at < %(before)s)
  and (coalesce(t.outcome, 'under_way') = %(outcome)s
       or %(outcome)s = '' and t.outcome is distinct from 'offer')
  and not (t.cause is not distinct from 'undelivered' and t.outcome = 'undelivered')
  and (%(person)s = '' or array[t.actor_id, t.user_id] && array(
    select p.open_id from public.people p where strpos(lower(p.name), lower(%(person)s)) > 0))
  and (%(chat)s = '' or t.chat_id = any (array(
    select c.chat_id from public.chats c where strpos(lower(c.name), lower(%(chat)s)) > 0)))
  and (%(reason)s = '' or exists (
    select from public.agent_decisions d
    where d.message_id = t.id and d.chat_id = t.chat_id and d.tenant_key = t.tenant_key
      and d.reason = %(reason)s))
  and not exists (
    select from unnest(%(words)s::text[]) w where not exists (
      select from public.agent_messages m
      where m.turn_id = t.id and m.tenant_key = t.tenant_key
        and strpos(lower(m.content), lower(w)) > 0))
order by t.created_at desc limit %(limit)s
"""
_SILENT = """
select left(x.content, %(shown)s) as question,
       d.id, d.message_id, d.chat_id, d.actor_id, d.reason, d.tier, d.cue, d.verdict, d.created_at
from public.agent_decisions d
left join public.chat_transcript x using (tenant_key, chat_id, message_id)
where not d.respond
  and not exists (
    select from public.agent_turns t where t.id = d.message_id and t.outcome <> 'silent')
  and (%(before)s::timestamptz is null or d.created_at < %(before)s)
  and (%(person)s = '' or d.actor_id = any (array(
    select p.open_id from public.people p where strpos(lower(p.name), lower(%(person)s)) > 0)))
  and (%(chat)s = '' or d.chat_id = any (array(
    select c.chat_id from public.chats c where strpos(lower(c.name), lower(%(chat)s)) > 0)))
  and (%(reason)s = '' or d.reason = %(reason)s)
  and not exists (select from unnest(%(words)s::text[]) w
                  where strpos(lower(coalesce(x.content, '')), lower(w)) = 0)
order by d.created_at desc limit %(limit)s
"""
_DECISION = """
select d.* from bot_private.first_asked(%(turn)s) f
join public.agent_decisions d on d.message_id = f.id order by d.id desc limit 1
"""
_BUTTONS = """
select chunk, id, label, coalesce(payload -> 'form', '[]') as form,
       coalesce((payload ->> 'entry')::integer, 0) as entry
from public.agent_buttons where turn_id = %(turn)s order by ordinal
"""
_QUESTION_QUERY = """
select b.label from bot_private.first_asked(%(turn)s) f
join public.agent_buttons b on b.turn_id = f.parent_id and b.id = f.cause
where f.origin = 'button' and b.kind = 'follow_up'
"""
OUTCOMES = (*OUTCOME_KINDS, "under_way")


def add_turn_pages(app: Flask, desk: ConsoleContext) -> None:
    def show() -> str:
        filters = {
            name: request.args.get(name, "").strip()[:100]
            for name in ("words", "person", "chat", "reason", "outcome")
        }
        query_params = {
            **filters,
            "words": filters["words"].split(),
            "before": moment_of_address(request.args.get("before") or None),
            "shown": _MOST_CHARACTERS,
            "limit": _PAGE + 1,
        }
        action = "search turns" if filters["words"] else "read turns"
        query = _SILENT if filters["outcome"] == "silent" else _TURNS
        with desk.reader.looking(signed_in_admin(), action, "") as view:
            rows = view.rows(query, query_params)
            labels = display_names(
                view, [row["actor_id"] for row in rows], [row["chat_id"] for row in rows]
            )
        more = rows[_PAGE - 1]["created_at"] if len(rows) > _PAGE else None
        return draw_page("turns.html", rows=rows[:_PAGE], names=labels, reasons=list(Reason),
                    outcomes=OUTCOMES, wanted=filters, more=more)  # fmt: skip

    def one(turn: str) -> str:
        with desk.reader.looking(signed_in_admin(), "read turn", turn) as view:
            turn_row = view.row(TURN_ROW, {"turn": turn})
            if turn_row is None:
                abort(404)
            messages = view.rows(TURN_MESSAGES, {"turn": turn})
            decision = view.row(_DECISION, {"turn": turn})
            buttons = view.rows(_BUTTONS, {"turn": turn})
            question_row = view.row(_QUESTION_QUERY, {"turn": turn})
            labels = display_names(
                view, [turn_row["actor_id"], turn_row["user_id"]], [turn_row["chat_id"]]
            )
            known_people = view.rows("select open_id, name from public.people where name <> ''")
        given_up = desk.queue.failed(Reference("A", turn), limit=1)
        trace = RecordedTurn.of_rows(turn_row, list(messages))
        people = [(row["open_id"], row["name"]) for row in known_people]
        now, link = datetime.now(desk.settings.zone), applink_base(desk.settings.feishu_domain)
        cards = drawn_cards(turn_row, messages, buttons, question_row, now, link)
        return draw_page("turn.html", turn=turn_row, record=trace.record, messages=messages,
                    muted=desk.reader.is_muted(turn_row["chat_id"]),
                    decision=decision, names=labels, visible=_visible(dict(people)), cards=cards,
                    given_up=given_up[0] if given_up else None,
                    addressed=_tag_names(messages, dict(people)), stages=_stages(trace.record),
                    **_prompt(desk, trace, people))  # fmt: skip

    app.add_url_rule("/console/turns", "turns", show)
    app.add_url_rule("/console/turns/<path:turn>", "turn", one)


def _visible(people: Mapping[str, str]) -> Any:
    """A card's text with names for at-tags."""
    return partial(from_card, names=people, unescape=markup.unescape)


def drawn_cards(
    turn: ConsoleRow,
    messages: Sequence[ConsoleRow],
    buttons: Sequence[ConsoleRow],
    question_row: ConsoleRow | None,
    now: datetime,
    link: str,
) -> dict[int, dict[str, Any]]:
    """Card JSON 2.0 of each piece of the answer, as it was sent, by its number. Pure."""
    answer = [one for one in messages if one["role"] == "assistant" and not one["file"]]
    last = max((one["chunk"] for one in answer), default=0)
    return {
        one["chunk"]: live_card.redrawn_card(
            {
                "turn_id": turn["id"],
                "chunk": one["chunk"],
                "content": one["content"],
                "buttons": [{**b, "pressed": None} for b in buttons if b["chunk"] == one["chunk"]],
                "shown": turn["shown"],
                "is_last": one["chunk"] == last,
                "again": True,
                "asked": question_row["label"] if question_row else None,
            },
            now,
            link,
        )
        for one in answer
    }


def _tag_names(messages: Sequence[ConsoleRow], people: Mapping[str, str]) -> dict[str, str]:
    """The names of those whom the cards address, by open_id."""
    person_ids = {tag[1] for one in messages for tag in markup.AT_TAG.finditer(one["content"])}
    return {open_id: people[open_id] for open_id in person_ids if open_id in people}


def _stages(record: ConsoleRow) -> list[tuple[str, float]]:
    stages = [
        (name.removesuffix("_ms"), float(value))
        for name, value in record.items()
        if name.endswith("_ms") and isinstance(value, int | float)
    ]
    return sorted(stages, key=lambda one: -one[1])


def _prompt(
    desk: ConsoleContext, turn: RecordedTurn, people: list[tuple[str, str]]
) -> dict[str, Any]:
    """The prompt as it is built again; nothing where there is no record of it."""
    if not turn.record.get("history_ids"):
        return {"prompt": None, "missing": ()}
    try:
        again = asyncio.run(prompt_of_turn(desk.settings, desk.url, turn, people))
    except StoreError as exc:
        log.warning("console.prompt", error=type(exc).__name__)
        return {"prompt": None, "missing": ()}
    prompt = again.prompt
    return {
        "prompt": prompt,
        "system": manager_instructions(prompt, with_tools=prompt.context is not None),
        "missing": again.missing,
    }
