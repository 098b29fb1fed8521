"""What people said of answers, by the buttons below them and by reactions: counts, then the latest.

Examples:
  scripts/feedback                              the last 50
  scripts/feedback --unhelpful --since 7d       what did not help this week
  scripts/feedback --chat oc_a1b2 --json        of one group, with questions and answers
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from bot.settings import load_existing
from bot.text.languages import Sentence
from memory.text import one_line
from scripts.operating.arguments import add_language, add_limit, language, parser, run_script
from scripts.operating.console import Screen, moment, print_json, run
from scripts.operating.desk import OperatorDesk, open_desk

_COLUMNS = ("time", "chat", "message", "by", "helped", "question")
_SHOWN = ("time", "by", "helped", "question")  # of 80 columns
_QUESTION_CHARS = 60


def main() -> int:
    return run(_list, _arguments())


def _arguments() -> argparse.Namespace:
    options = parser("feedback", __doc__)
    options.add_argument("--chat", metavar="oc_…", help="of this chat")
    options.add_argument("--since", type=moment, metavar="TIME", help="30m, 2h, 7d, or a date")
    options.add_argument("--unhelpful", action="store_true", help="only what did not help")
    add_limit(options, 50)
    options.add_argument("--json", action="store_true", help="one JSON document")
    add_language(options)
    return options.parse_args()


async def _list(given: argparse.Namespace) -> int:
    async with open_desk(load_existing()) as desk:
        found = await desk.operations.feedback(
            chat_id=given.chat,
            since=desk.since(given.since),
            helpful=False if given.unhelpful else None,
            limit=given.limit,
        )
    if given.json:
        print_json(found)
        return 0
    screen = Screen(language(given.lang), desk.names_of)
    screen.verdict("feedback", _verdict(found["helpful"], found["unhelpful"]), good=True)
    columns = _SHOWN if screen.is_terminal else _COLUMNS
    rows = [_cells(row, desk, columns) for row in reversed(found["feedback"])]
    screen.table("Feedback", columns, rows)
    return 0


def _verdict(helpful: int, unhelpful: int) -> Sentence:
    if not helpful and not unhelpful:
        return Sentence("nothing recorded yet", "没有记录")
    return Sentence(
        f"{helpful} helped, {unhelpful} did not", f"有帮助 {helpful} 条，没有帮助 {unhelpful} 条"
    )


def _cells(row: Mapping[str, Any], desk: OperatorDesk, columns: Sequence[str]) -> Sequence[object]:
    cells: dict[str, object] = {
        "time": desk.shown(row["updated_at"], timespec="seconds"),
        "chat": row["chat_id"],
        "message": row["turn_id"],
        "by": row["source"],
        "helped": "yes" if row["helpful"] else "no",
        "question": one_line(row["question"] or "")[:_QUESTION_CHARS],
    }
    return [cells[column] for column in columns]


if __name__ == "__main__":
    run_script(main)
