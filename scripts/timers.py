"""What the bot will do at a time: reminders, per chat, with those that are late first.

Examples:
  scripts/timers                              all that is still to come
  scripts/timers --chat oc_a1b2 --over        of one group, also what is over
  scripts/timers --json | jq '.[].due_ms'     for other programs
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bot.settings import load_existing
from bot.text.languages import Sentence
from memory.tables.timers import TimerStore
from scripts.operating.arguments import add_language, add_limit, language, parser, run_script
from scripts.operating.console import Screen, print_json, run
from scripts.operating.desk import OperatorDesk, open_desk

_LATE_S = 300
_TEXT_CHARS = 60
_COLUMNS = ("due", "repeats", "state", "chat", "author", "for", "text", "timer")
_SHOWN = ("due", "repeats", "state", "chat", "author", "text")  # of 80 columns


def main() -> int:
    return run(_list, _arguments())


def _arguments() -> argparse.Namespace:
    options = parser("timers", __doc__)
    options.add_argument("--chat", metavar="oc_…", help="of this chat")
    options.add_argument("--over", action="store_true", help="also what is done or cancelled")
    add_limit(options, 100)
    options.add_argument("--json", action="store_true", help="one JSON document")
    add_language(options)
    return options.parse_args()


async def _list(given: argparse.Namespace) -> int:
    async with open_desk(load_existing()) as desk:
        rows = await TimerStore(desk.rpc).inspect(
            chat_id=given.chat, over=given.over, limit=given.limit
        )
        if given.json:
            print_json(rows)
            return 0
        screen = Screen(language(given.lang), desk.names_of)
        late = sum((row["late_s"] or 0) > _LATE_S for row in rows)
        screen.verdict("timers", _verdict(len(rows), late), good=not late)
        columns = _SHOWN if screen.is_terminal else _COLUMNS
        screen.table("Timers", columns, [_cells(row, desk, screen, columns) for row in rows])
    return 0


def _verdict(total: int, late: int) -> Sentence:
    if late:
        return Sentence(
            f"{late} of {total} should have been shown: does a worker run?",
            f"{total} 项中有 {late} 项早该发出：worker 在运行吗？",
        )
    return Sentence(f"{total}, none late", f"{total} 项，没有迟到的")


def _cells(
    row: Mapping[str, Any], desk: OperatorDesk, screen: Screen, columns: Sequence[str]
) -> Sequence[object]:
    due = datetime.fromtimestamp(row["due_ms"] / 1000, UTC).isoformat()
    people = [screen.said("everybody")] if row["for_all"] else row["for_people"]
    cells: dict[str, object] = {
        "due": desk.shown(due),
        "repeats": screen.said(row["repeats"]),
        "state": screen.said(row["state"]),
        "chat": row["chat_id"],
        "author": row["actor_id"],
        "for": ", ".join(people),
        "text": row["content"][:_TEXT_CHARS],
        "timer": row["id"],
    }
    return [cells[column] for column in columns]


if __name__ == "__main__":
    run_script(main)
