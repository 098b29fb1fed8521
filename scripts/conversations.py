"""How the groups' conversations with the bot go, day by day, in figures; or how they began.

Of each chat and day: how many messages were heard and of how many people, conversations with
their usual (median) length and number of people, mentions of the bot, how many answers there
were, and how many of them were about somebody else; why it answered or kept silent; and how many
answers people said were helpful or not. What people wrote is shown with --questions and --words
only, and the console's audit keeps who looked.

Examples:
  scripts/conversations                        the last seven days
  scripts/conversations --chat oc_… --people   one chat, and who mentions the bot about whom
  scripts/conversations --since 30d --json     one JSON document, for other programs
  scripts/conversations --questions            each conversation with its first question
  scripts/conversations --words "launch date"  those in which all these words were said
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from bot.operations.console.context import ConsoleDatabase, ConsoleRow
from bot.queue.inbox import QueueUnavailable
from bot.settings import load_existing
from bot.text.languages import Sentence
from memory.text import one_line
from scripts.operating.arguments import add_language, add_limit, language, parser, run_script
from scripts.operating.console import Screen, moment, print_json, run
from scripts.operating.desk import OperatorDesk, open_desk, script_user
from scripts.operating.words import counted

_COLUMNS = (
    "day", "chat", "heard", "people", "conversations", "messages each", "people each",
    "seconds each", "mentions", "answered", "about another",
    "helpful", "unhelpful",
)  # fmt: skip
_SHOWN = ("day", "chat", "heard", "people", "mentions", "answered", "helpful", "unhelpful")
_QUESTION = ("last", "conversation", "person", "questions", "first question")
_QUESTION_CHARS = 80
_LIMIT = 10_000
_READ = 300  # characters of a question
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


def main() -> int:
    options = parser("conversations", __doc__)
    options.add_argument("--chat", metavar="oc_…", help="of this chat")
    options.add_argument("--since", type=moment, default="7d", metavar="TIME",
                         help="30m, 2h, 7d, or a date (7d)")  # fmt: skip
    options.add_argument("--people", action="store_true", help="who mentions the bot, about whom")
    options.add_argument("--questions", action="store_true", help="how each conversation began")
    options.add_argument(
        "--words", default="", metavar="TEXT", help="the same, where these were said"
    )
    add_limit(options, 100)
    options.add_argument("--json", action="store_true", help="one JSON document")
    add_language(options)
    given = options.parse_args()
    return run(_list_questions if given.questions or given.words else _list_days, given)


async def _list_days(given: argparse.Namespace) -> int:
    async with open_desk(load_existing()) as desk:
        days = await desk.operations.conversations(
            chat_id=given.chat,
            since=desk.since(given.since),
            zone=desk.settings.zone.key,
            pause_s=desk.settings.conversation_timeout_seconds,
            limit=_LIMIT,
        )
    if given.json:
        print_json({"days": days})
        return 0
    screen = Screen(language(given.lang), desk.names_of)
    screen.verdict("conversations", _verdict(days), good=True)
    columns = _SHOWN if screen.is_terminal else _COLUMNS
    screen.table("By chat and day", columns, [_cells(day, columns) for day in days])
    for title, kind in (("Why answered", "answered_by"), ("Why silent", "silent_by")):
        screen.table(title, ("reason", "count"), _total(days, kind))
    if given.people:
        for title, kind in (("Who mentions", "mentions_by"), ("Whom it is about", "answers_about")):
            screen.table(title, ("person", "count"), _total(days, kind))
    return 0


async def _list_questions(given: argparse.Namespace) -> int:
    async with open_desk(load_existing()) as desk:
        rows = _questions(
            desk.url,
            words=given.words,
            chat=given.chat,
            since=desk.since(given.since),
            limit=given.limit,
        )
    if given.json:
        kept = [{**row, "updated_at": row["updated_at"].isoformat()} for row in rows]
        print_json({"conversations": kept})
        return 0
    screen = Screen(language(given.lang), desk.names_of)
    count = len(rows)
    told = Sentence(f"{count} conversation{'s' if count != 1 else ''}", f"共 {count} 个")
    screen.verdict("conversations", told, good=True)
    screen.table("Conversations", _QUESTION, [_question_cells(desk, row) for row in reversed(rows)])
    return 0


def _questions(
    url: str, *, words: str, chat: str | None, since: str | None, limit: int
) -> Sequence[ConsoleRow]:
    """Conversations in which all the words were said, each with its first question: null where its
    words are gone. Raises `QueueUnavailable`."""
    action = "search turns" if words else "read turns"
    asked = {"words": words.split(), "chat": chat, "since": since, "limit": limit, "shown": _READ}
    try:
        with ConsoleDatabase(url).looking(script_user(), action, "") as view:
            return view.rows(_CONVERSATIONS, asked)
    except psycopg.Error as exc:
        raise QueueUnavailable(f"{type(exc).__name__}: check DATABASE_URL") from exc


def _question_cells(desk: OperatorDesk, row: Mapping[str, Any]) -> Sequence[object]:
    return (
        desk.shown(row["updated_at"].isoformat()),
        row["conversation_id"],
        row["user_id"],
        row["questions"],
        one_line(row["question"])[:_QUESTION_CHARS] if row["question"] else None,
    )


def _verdict(days: Sequence[Mapping[str, Any]]) -> Sentence:
    if not days:
        return Sentence("nothing recorded yet", "没有记录")
    answered, heard = (sum(day[kind] for day in days) for kind in ("answered", "heard"))
    held = sum(day["conversations"] for day in days)
    chats = len({(day["tenant_key"], day["chat_id"]) for day in days})
    groups = counted(chats, "chat")
    return Sentence(
        f"{held} in {groups}, {answered} of {counted(heard, 'message')} answered",
        f"{chats} 个群共 {held} 段，{heard} 条消息中回答 {answered} 条",
    )


def _cells(day: Mapping[str, Any], columns: Sequence[str]) -> Sequence[object]:
    cells = {
        "day": day["day"],
        "chat": day["chat_id"],
        "heard": day["heard"],
        "people": day["people"],
        "conversations": day["conversations"],
        "messages each": _rounded(day["median_messages"]),
        "people each": _rounded(day["median_people"]),
        "seconds each": _rounded(day["median_seconds"]),
        "mentions": day["mentions"],
        "answered": day["answered"],
        "about another": day["about_another"],
        "helpful": day["helpful"],
        "unhelpful": day["unhelpful"],
    }
    return [cells[column] for column in columns]


def _rounded(figure: float | None) -> float | None:
    return None if figure is None else round(float(figure), 1)


def _total(days: Sequence[Mapping[str, Any]], kind: str) -> list[tuple[str, int]]:
    counts: Counter[str] = Counter()
    for day in days:
        counts.update(day[kind])
    return counts.most_common()


if __name__ == "__main__":
    run_script(main)
