"""Why the bot spoke or kept silent: the log of decisions, with counts by reason.

Examples:
  scripts/decisions                                 the last 50
  scripts/decisions --chat oc_a1b2 --since 2h       of one group, lately
  scripts/decisions --json --limit 1000 | jq .      for other programs
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bot.settings import load_existing
from bot.text.languages import Sentence
from scripts.operating.arguments import add_language, add_limit, language, parser, run_script
from scripts.operating.console import Screen, moment, print_json, run
from scripts.operating.desk import OperatorDesk, open_desk


def main() -> int:
    return run(_list, _arguments())


def _arguments() -> argparse.Namespace:
    options = parser("decisions", __doc__)
    options.add_argument("--chat", metavar="oc_…", help="of this chat")
    options.add_argument("--since", type=moment, metavar="TIME", help="30m, 2h, 7d, or a date")
    add_limit(options, 50)
    options.add_argument("--json", action="store_true", help="one JSON document")
    add_language(options)
    return options.parse_args()


async def _list(given: argparse.Namespace) -> int:
    async with open_desk(load_existing()) as desk:
        decisions = await desk.operations.decisions(
            chat_id=given.chat, since=desk.since(given.since), limit=given.limit
        )
    counts = Counter((row["reason"], bool(row["respond"])) for row in decisions)
    if given.json:
        reasons = Counter(row["reason"] for row in decisions)
        print_json({"reasons": reasons, "decisions": decisions})
        return 0
    screen = Screen(language(given.lang), desk.names_of)
    answered = sum(bool(row["respond"]) for row in decisions)
    screen.verdict("decisions", _verdict(len(decisions), answered), good=True)
    columns = _SHOWN if screen.is_terminal else _COLUMNS
    rows = [_cells(row, desk, screen, columns) for row in reversed(decisions)]
    screen.table("Decisions", columns, rows)
    screen.table(
        "By reason",
        ("reason", "answered", "count"),
        [(reason, screen.said(_yes(respond)), n) for (reason, respond), n in counts.most_common()],
    )
    return 0


_COLUMNS = ("time", "chat", "message", "answered", "reason", "tier", "cue", "s since bot", "judge")
_SHOWN = ("time", "chat", "message", "answered", "reason", "cue", "judge")  # of 80 columns


def _verdict(total: int, answered: int) -> Sentence:
    if not total:
        return Sentence("nothing recorded yet", "没有记录")
    return Sentence(
        f"{answered} answered, {total - answered} silent",
        f"回答 {answered} 条，沉默 {total - answered} 条",
    )


def _cells(
    row: Mapping[str, Any], desk: OperatorDesk, screen: Screen, columns: Sequence[str]
) -> Sequence[object]:
    since = row["since_bot_ms"]
    cells: dict[str, object] = {
        "time": desk.shown(row["created_at"], timespec="seconds"),
        "chat": row["chat_id"],
        "message": row["message_id"],
        "answered": screen.said(_yes(row["respond"])),
        "reason": row["reason"],
        "tier": row["tier"],
        "cue": row["cue"],
        "s since bot": None if since is None else round(since / 1000, 1),
        "judge": f"{row['verdict']} in {row['judge_ms']} ms" if row["verdict"] else None,
    }
    return [cells[column] for column in columns]


def _yes(respond: bool) -> str:
    return "yes" if respond else "no"


if __name__ == "__main__":
    run_script(main)
