"""How well the bot decides when to answer: its rules on labelled messages, and learning from them.

Examples:
  scripts/eval_listening tests/data/followups.jsonl
                                            how well the rules do
  scripts/eval_listening --chat-logs irc-disentanglement/data/test --window 120
                                            the same, on annotated logs of people
  scripts/eval_listening --learn tests/data/*.jsonl tests/data/*.talk > new.json
                                            learns bot/listening/addressee_weights.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bot.settings import EXIT_STATUS
from lab.evaluation.chat_log_decisions import LogRow, rows_of, rule_answers, score
from lab.evaluation.labelled_messages import DecisionReport, evaluate
from lab.evaluation.written_talk import rows_of_talk
from scripts.operating.arguments import parser, run_script
from scripts.operating.console import Screen, print_json


def main() -> int:
    """Status 2 when nothing can be read."""
    given = _arguments()
    if given.chat_logs:
        return _evaluate_logs(given)
    return _learn(given) if given.learn else _evaluate(given)


def _arguments() -> argparse.Namespace:
    options = parser("eval_listening", __doc__)
    what = options.add_mutually_exclusive_group(required=True)
    what.add_argument("labelled", nargs="?", type=Path, help="a labelled .jsonl or .talk file")
    what.add_argument(
        "--chat-logs", type=Path, metavar="FOLDER", help="*.ascii.txt and their *.annotation.txt"
    )
    what.add_argument(
        "--learn", type=Path, nargs="+", metavar="FILE", help="print weights learned from these"
    )
    options.add_argument("--window", type=float, default=60, help="follow-up window in s (60)")
    options.add_argument("--json", action="store_true", help="one JSON document")
    return options.parse_args()


def _learn(given: argparse.Namespace) -> int:
    """Of the rows that are held out nothing is learned, nor of those of other files."""
    try:
        from lab.learning.addressee_weights import file_of, learn  # with packages of the tests
    except ModuleNotFoundError as exc:
        print(f"{exc}: install requirements-dev.txt to learn weights", file=sys.stderr)
        return EXIT_STATUS
    rows: list[Mapping[str, Any]] = []
    for path in given.learn:
        read = _labelled_rows(path)
        if read is None:
            return EXIT_STATUS
        labelled = (row for row in read if {"context", "expect", "mentions"} <= row.keys())
        rows += [row for row in labelled if row.get("split") != "held"]
    print(file_of(learn(rows, lambda line: print(line, file=sys.stderr))))
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
    rows = _labelled_rows(given.labelled)
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


def _show(reports: Mapping[str, DecisionReport], sizes: Mapping[str, int]) -> None:
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


if __name__ == "__main__":
    run_script(main)
