"""How the groups' conversations with the bot go, day by day, in figures and without text.

Of each chat and day: how many messages were heard and of how many people, conversations with
their usual (median) length and number of people, mentions of the bot, how many answers there
were, and how many of them were about somebody else; why it answered or kept silent; and how many
answers people said were helpful or not.

Examples:
  scripts/conversations                        the last seven days
  scripts/conversations --chat oc_… --people   one chat, and who mentions the bot about whom
  scripts/conversations --since 30d --json     one JSON document, for other programs
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bot.settings import load
from bot.text.languages import Sentence
from scripts.operating.arguments import add_language, language, parser
from scripts.operating.console import Screen, moment, print_json, run
from scripts.operating.desk import open_desk
from scripts.operating.people import names

_COLUMNS = (
    "day", "chat", "heard", "people", "conversations", "messages each", "people each",
    "seconds each", "mentions", "answered", "about another",
    "helpful", "unhelpful",
)  # fmt: skip
_SHOWN = ("day", "chat", "heard", "people", "mentions", "answered", "helpful", "unhelpful")
_LIMIT = 10_000


def main() -> int:
    options = parser("conversations", __doc__)
    options.add_argument("--chat", metavar="oc_…", help="of this chat")
    options.add_argument("--since", type=moment, default="7d", metavar="TIME",
                         help="30m, 2h, 7d, or a date (7d)")  # fmt: skip
    options.add_argument("--people", action="store_true", help="who mentions the bot, about whom")
    options.add_argument("--json", action="store_true", help="one JSON document")
    add_language(options)
    return run(_list, options.parse_args())


async def _list(given: argparse.Namespace) -> int:
    async with open_desk(load()) as desk:
        days = await desk.operations.conversations(
            chat_id=given.chat,
            since=desk.since(given.since),
            zone=desk.settings.zone.key,
            pause_s=desk.settings.conversation_timeout_seconds,
            limit=_LIMIT,
        )
        known = await names(desk) if given.people and not given.json else {}
    if given.json:
        print_json({"days": days})
        return 0
    screen = Screen(language(given.lang))
    screen.verdict("conversations", _verdict(days), good=True)
    columns = _SHOWN if screen.is_terminal else _COLUMNS
    screen.table("By chat and day", columns, [_cells(day, columns) for day in days])
    for title, kind in (("Why answered", "answered_by"), ("Why silent", "silent_by")):
        screen.table(title, ("reason", "count"), _total(days, kind))
    if given.people:
        for title, kind in (("Who mentions", "mentions_by"), ("Whom it is about", "answers_about")):
            told = [(known.get(who) or who, n) for who, n in _total(days, kind)]
            screen.table(title, ("person", "count"), told)
    return 0


def _verdict(days: Sequence[Mapping[str, Any]]) -> Sentence:
    if not days:
        return Sentence("none is recorded", "没有记录")
    answered, heard = (sum(day[kind] for day in days) for kind in ("answered", "heard"))
    held = sum(day["conversations"] for day in days)
    chats = len({(day["tenant_key"], day["chat_id"]) for day in days})
    return Sentence(
        f"{held} in {chats} chats, {answered} of {heard} messages answered",
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
    sys.exit(main())
