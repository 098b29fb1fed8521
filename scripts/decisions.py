"""Why the bot spoke or kept silent: the log of decisions, with counts by reason.

Examples:
  scripts/decisions                                 the last 50
  scripts/decisions --chat oc_a1b2 --since 2h       of one group, lately
  scripts/decisions --json --limit 1000 | jq .      for other programs
  scripts/decisions --evaluate tests/data/followups.jsonl
                                                    how well the rules do on labelled messages
  scripts/decisions --chat-logs irc-disentanglement/data/test --window 120
                                                    the same, on annotated logs of people
  scripts/decisions --learn tests/data/*.jsonl tests/data/*.talk > new.py
                                                    learns bot/group/hearing_weights.py
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bot.languages import Sentence
from bot.settings import EXIT_STATUS, load
from scripts.measuring.hearing_learning import learn, source_of
from scripts.operating.arguments import add_language, add_limit, language, parser
from scripts.operating.chat_log_decisions import LogRow, rows_of, rule_answers, score
from scripts.operating.console import Screen, moment, print_json, run
from scripts.operating.desk import Desk, open_desk
from scripts.operating.labelled_messages import Report, evaluate
from scripts.operating.written_talk import rows_of_talk


def main() -> int:
    given = _arguments()
    if given.chat_logs:
        return _evaluate_logs(given)
    if given.learn:
        return _learn(given)
    return _evaluate(given) if given.evaluate else run(_list, given)


def _arguments() -> argparse.Namespace:
    options = parser("decisions", __doc__)
    options.add_argument("--chat", metavar="oc_…", help="of this chat")
    options.add_argument("--since", type=moment, metavar="TIME", help="30m, 2h, 7d, or a date")
    add_limit(options, 50)
    options.add_argument(
        "--evaluate", type=Path, metavar="FILE", help="a labelled .jsonl or .talk file"
    )
    options.add_argument(
        "--chat-logs", type=Path, metavar="FOLDER", help="*.ascii.txt and their *.annotation.txt"
    )
    options.add_argument(
        "--learn", type=Path, nargs="+", metavar="FILE", help="print weights learned from these"
    )
    options.add_argument("--window", type=float, default=60, help="follow-up window in s (60)")
    options.add_argument("--json", action="store_true", help="one JSON document")
    add_language(options)
    return options.parse_args()


async def _list(given: argparse.Namespace) -> int:
    async with open_desk(load()) as desk:
        decisions = await desk.operations.decisions(
            chat_id=given.chat, since=desk.since(given.since), limit=given.limit
        )
    counts = Counter((row["reason"], bool(row["respond"])) for row in decisions)
    if given.json:
        reasons = Counter(row["reason"] for row in decisions)
        print_json({"reasons": reasons, "decisions": decisions})
        return 0
    screen = Screen(language(given.lang))
    answered = sum(bool(row["respond"]) for row in decisions)
    screen.verdict("decisions", _verdict(len(decisions), answered), good=True)
    columns = _SHOWN if screen.is_terminal else _COLUMNS
    rows = [_cells(row, desk, columns) for row in reversed(decisions)]
    screen.table("Decisions", columns, rows)
    screen.table(
        "By reason",
        ("reason", "answered", "count"),
        [(reason, _yes(respond), n) for (reason, respond), n in counts.most_common()],
    )
    return 0


_COLUMNS = ("time", "chat", "message", "answered", "reason", "tier", "cue", "s since bot", "judge")
_SHOWN = ("time", "chat", "message", "answered", "reason", "cue", "judge")  # of 80 columns


def _verdict(total: int, answered: int) -> Sentence:
    if not total:
        return Sentence("none is recorded", "没有记录")
    return Sentence(
        f"{answered} answered, {total - answered} silent",
        f"回答 {answered} 条，沉默 {total - answered} 条",
    )


def _cells(row: Mapping[str, Any], desk: Desk, columns: Sequence[str]) -> Sequence[object]:
    since = row["since_bot_ms"]
    cells: dict[str, object] = {
        "time": desk.shown(row["created_at"], timespec="seconds"),
        "chat": row["chat_id"],
        "message": row["message_id"],
        "answered": _yes(row["respond"]),
        "reason": row["reason"],
        "tier": row["tier"],
        "cue": row["cue"],
        "s since bot": None if since is None else round(since / 1000, 1),
        "judge": f"{row['verdict']} in {row['judge_ms']} ms" if row["verdict"] else None,
    }
    return [cells[column] for column in columns]


def _learn(given: argparse.Namespace) -> int:
    """Of the rows that are held out nothing is learned, nor of those of other files."""
    rows: list[Mapping[str, Any]] = []
    for path in given.learn:
        read = _labelled_rows(path)
        if read is None:
            return EXIT_STATUS
        labelled = (row for row in read if {"context", "expect", "mentions"} <= row.keys())
        rows += [row for row in labelled if row.get("split") != "held"]
    print(source_of(learn(rows, lambda line: print(line, file=sys.stderr))))
    return 0


def _labelled_rows(path: Path) -> list[Mapping[str, Any]] | None:
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".talk":
            return list(rows_of_talk(text))
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except (OSError, ValueError) as exc:
        print(f"{path} cannot be read as labelled messages: {exc}", file=sys.stderr)
        return None


def _evaluate(given: argparse.Namespace) -> int:
    rows = _labelled_rows(given.evaluate)
    if rows is None:
        return EXIT_STATUS
    parts = {"all": rows}
    for name in sorted({row["split"] for row in rows if "split" in row}):
        parts[name] = [row for row in rows if row.get("split") == name]
    reports = {name: evaluate(part, window_seconds=given.window) for name, part in parts.items()}
    if given.json:
        print_json(reports)
    else:
        _show(reports, {name: len(part) for name, part in parts.items()})
    return 0


def _evaluate_logs(given: argparse.Namespace) -> int:
    rows: list[LogRow] = []
    try:
        for path in sorted(given.chat_logs.glob("*.ascii.txt")):
            links = path.with_name(path.name.replace(".ascii.", ".annotation."))
            log = path.read_text(encoding="utf-8", errors="replace").split("\n")
            rows += rows_of(log, links.read_text(encoding="utf-8").splitlines())
    except OSError as exc:
        print(f"{given.chat_logs} cannot be read: {exc}", file=sys.stderr)
        return EXIT_STATUS
    if not rows:
        print(f"{given.chat_logs} holds no annotated *.ascii.txt", file=sys.stderr)
        return EXIT_STATUS
    expected = [row.answered for row in rows]
    window_ms = int(given.window * 1000)
    rules = {
        "the rules": [rule_answers(row, window_ms) for row in rows],
        "who spoke last answers": [row.spoke_last for row in rows],
        "nobody answers": [False for _ in rows],
    }
    scores = {name: score(said, expected) for name, said in rules.items()}
    if given.json:
        print_json({"rows": len(rows), "answered": sum(expected), "scores": scores})
        return 0
    cells = [
        (name, f"{one.precision:.3f}", f"{one.recall:.3f}", f"{one.macro_f1:.3f}")
        for name, one in scores.items()
    ]
    title = f"Would this person answer? {len(rows)} rows, {sum(expected)} answered"
    Screen().table(title, ("rule", "precision", "recall", "macro F1"), cells)
    return 0


def _show(reports: Mapping[str, Report], sizes: Mapping[str, int]) -> None:
    screen = Screen()
    screen.table(
        "How the rules do",
        ("part", "messages", "precision", "recall"),
        [
            (name, sizes[name], f"{report.precision:.3f}", f"{report.recall:.3f}")
            for name, report in reports.items()
        ],
    )
    whole = reports["all"]
    reasons = [(reason, right, wrong) for reason, (right, wrong) in whole.by_reason.items()]
    screen.table("By reason", ("reason", "right", "wrong"), reasons)
    mistakes = [(mistake.id, mistake.expected, mistake.reason) for mistake in whole.mistakes]
    screen.table("Decided otherwise than labelled", ("message", "label", "reason"), mistakes)


def _yes(respond: bool) -> str:
    return "yes" if respond else "no"


if __name__ == "__main__":
    sys.exit(main())
