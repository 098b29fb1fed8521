"""How conversations began, in `scripts/conversations --questions`; who looks is kept."""

from __future__ import annotations

import getpass
import os
from collections.abc import Sequence

import psycopg

from bot.operations.console.database import ConsoleDatabase, Row
from bot.queue.inbox import QueueUnavailable

_SHOWN = 300  # characters of a question
_CONVERSATIONS = """
select c.id as conversation_id, c.chat_id, c.user_id, c.updated_at, q.question, q.questions
from public.agent_chats c
cross join lateral (
  select (array_agg(left(m.content, %(shown)s) order by m.id))[1] as question,
         count(distinct m.turn_id) as questions
  from public.agent_messages m
  where m.conversation_id = c.id and m.user_id = c.user_id and m.tenant_key = c.tenant_key
    and m.role = 'user') q
where (%(chat)s::text is null or c.chat_id = %(chat)s)
  and c.updated_at >= %(since)s::timestamptz
  and not exists (
    select from unnest(%(words)s::text[]) w where not exists (
      select from public.agent_messages m
      where m.conversation_id = c.id and m.user_id = c.user_id and m.tenant_key = c.tenant_key
        and strpos(lower(m.content), lower(w)) > 0))
order by c.updated_at desc limit %(limit)s
"""


def list_questions(
    url: str, *, words: str, chat: str | None, since: str | None, limit: int
) -> Sequence[Row]:
    """Conversations in which all the words were said, each with its first question: null where its
    words are gone. Raises `QueueUnavailable`."""
    action = "search turns" if words else "read turns"
    asked = {"words": words.split(), "chat": chat, "since": since, "limit": limit, "shown": _SHOWN}
    try:
        with ConsoleDatabase(url).looking(script_user(), action, "") as view:
            return view.rows(_CONVERSATIONS, asked)
    except psycopg.Error as exc:
        raise QueueUnavailable(f"{type(exc).__name__}: check DATABASE_URL") from exc


def script_user() -> str:
    """Who looks, as the audit keeps it."""
    try:
        return f"{getpass.getuser()} (script)"
    except (KeyError, OSError):
        return f"uid {os.getuid()} (script)"
