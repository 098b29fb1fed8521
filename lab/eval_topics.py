"""How well messages of a busy chat are told apart: who answers whom, on annotated logs.

PATH is a folder of NAME.ascii.txt and NAME.annotation.txt, or one of these files, in the
format of jkkummerfeld/irc-disentanglement. Needs no database and asks no model.

  scripts/eval_topics data/test             links and conversations, as scored there
  scripts/eval_topics data/dev --json       one JSON document
  scripts/eval_topics data/train --learn > new.json
                                            learns bot/listening/link_weights.json, about five
                                            minutes
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.listening.topics import link
from bot.settings import EXIT_STATUS
from lab.evaluation.annotated_logs import (
    ChatLog,
    LinkScore,
    best_overlap,
    conversations,
    information_kept,
    logs_in,
    matched,
    score_links,
)
from lab.learning.link_weights import file_of, learn
from scripts.operating.arguments import parser, run_script
from scripts.operating.console import Screen, print_json


@dataclass(frozen=True)
class TopicReport:
    """The figures of a set of logs: links of all annotated lines, links of what people wrote, whole
    conversations, how much of the grouping is kept and how well the best fit (1: all of it), CPU ms
    a message."""

    logs: int
    lines: int
    links: LinkScore
    of_people: LinkScore
    whole: LinkScore
    information: float
    overlap: float
    cpu_ms: float


def main() -> int:
    given = _arguments()
    try:
        logs = logs_in(given.path)
    except (OSError, ValueError) as exc:
        print(f"{given.path} cannot be read as annotated logs: {exc}", file=sys.stderr)
        return EXIT_STATUS
    if not logs:
        print(
            f"{given.path} holds no *.ascii.txt with its *.annotation.txt: name such a folder, for"
            " example data/test of github.com/jkkummerfeld/irc-disentanglement",
            file=sys.stderr,
        )
        return EXIT_STATUS
    if given.learn:
        print(file_of(learn(logs, lambda line: print(line, file=sys.stderr))))
        return 0
    report = evaluate(logs)
    print_json(_figures(report)) if given.json else _show(report)
    return 0


def evaluate(logs: Sequence[ChatLog]) -> TopicReport:
    """Links every log by itself, from its first line on."""
    links = of_people = whole = LinkScore()
    parts = []
    started = time.process_time()
    found_in = [_linked(log) for log in logs]
    spent = time.process_time() - started
    for log, found in zip(logs, found_in, strict=True):
        links += score_links(log, found)
        of_people += score_links(log, found, people_only=True)
        told = {line: frozenset([found.get(line, line)]) for line in log.links}
        parts.append((conversations(log.links), conversations(told)))
        whole += matched(*parts[-1])
    lines = sum(len(log.links) for log in logs)
    linked = sum(len(log.messages) for log in logs)
    return TopicReport(
        len(logs), lines, links, of_people, whole,
        information_kept(parts), best_overlap(parts), 1000 * spent / (linked or 1),
    )  # fmt: skip


def _linked(log: ChatLog) -> dict[int, int]:
    lines = list(log.messages)
    answered = link(list(log.messages.values()))
    return {lines[index]: lines[other] for index, other in enumerate(answered)}


def _arguments() -> argparse.Namespace:
    options = parser("eval_topics", __doc__)
    options.add_argument("path", type=Path, metavar="PATH", help="a folder, or one file")
    options.add_argument("--learn", action="store_true", help="print weights learned from PATH")
    options.add_argument("--json", action="store_true", help="one JSON document")
    return options.parse_args()


def _figures(report: TopicReport) -> dict[str, object]:
    scores = {"links": report.links, "links_of_people": report.of_people, "whole": report.whole}
    told: dict[str, object] = {
        name: {
            "gold": one.gold, "found": one.found, "right": one.right,
            "precision": round(one.precision, 4), "recall": round(one.recall, 4),
            "f1": round(one.f1, 4),
        }
        for name, one in scores.items()
    }  # fmt: skip
    return told | {
        "logs": report.logs,
        "lines": report.lines,
        "information_kept": round(report.information, 4),
        "best_overlap": round(report.overlap, 4),
        "cpu_ms_a_message": round(report.cpu_ms, 3),
    }


def _show(report: TopicReport) -> None:
    rows = [
        ("links, all lines", report.links),
        ("links, people's lines", report.of_people),
        ("whole conversations", report.whole),
    ]
    screen = Screen()
    screen.table(
        f"Topics of {report.logs} logs, {report.lines} annotated lines",
        ("of", "gold", "found", "right", "precision", "recall", "F1"),
        [
            (name, one.gold, one.found, one.right, *_percent(one.precision, one.recall, one.f1))
            for name, one in rows
        ],
    )
    screen.table(
        "Conversations",
        ("1 - scaled VI", "Shen F1", "CPU ms a message"),
        [(*_percent(report.information, report.overlap), f"{report.cpu_ms:.2f}")],
    )


def _percent(*shares: float) -> tuple[str, ...]:
    return tuple(f"{100 * share:.1f}" for share in shares)


if __name__ == "__main__":
    run_script(main)
