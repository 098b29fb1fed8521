"""How well messages of a busy chat are told apart: who answers whom, on annotated logs.

Scored as the corpus does: every link of every annotated line, including those of the system's lines
(`=== …`, each of which begins a conversation); and those of people's lines alone.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.listening.topics import answer_links
from lab.corpora.logs import ChatLog, Links
from lab.figures import Figure

# The conversations of a log, as annotated and as found.
Parts = tuple[Sequence[frozenset[int]], Sequence[frozenset[int]]]


@dataclass(frozen=True)
class LinkScore:
    """How many links there are, were found, and are right."""

    gold: int = 0
    found: int = 0
    right: int = 0

    @property
    def precision(self) -> float:
        return self.right / (self.found or 1)

    @property
    def recall(self) -> float:
        return self.right / (self.gold or 1)

    @property
    def f1(self) -> float:
        return 2 * self.right / ((self.gold + self.found) or 1)

    def __add__(self, other: LinkScore) -> LinkScore:
        return LinkScore(self.gold + other.gold, self.found + other.found, self.right + other.right)


def score_links(log: ChatLog, found: Mapping[int, int], *, people_only: bool = False) -> LinkScore:
    """The links found, a line → the line it answers; lines that are not among them begin one."""
    lines = [line for line in log.links if not people_only or line in log.messages]
    right = sum(found.get(line, line) in log.links[line] for line in lines)
    return LinkScore(sum(len(log.links[line]) for line in lines), len(lines), right)


def conversations(links: Links) -> list[frozenset[int]]:
    """The annotated lines that hang together, over whatever lines."""
    parents: dict[int, int] = {}

    def root(line: int) -> int:
        while parents.setdefault(line, line) != line:
            line = parents[line]
        return line

    for line, answered in links.items():
        for other in answered:
            parents[root(line)] = root(other)
    grouped: dict[int, set[int]] = {}
    for line in links:
        grouped.setdefault(root(line), set()).add(line)
    return [frozenset(lines) for lines in grouped.values()]


def matched(gold: Sequence[frozenset[int]], found: Sequence[frozenset[int]]) -> LinkScore:
    """Whole conversations of more than one line that were found exactly."""
    whole, told = ({one for one in part if len(one) > 1} for part in (gold, found))
    return LinkScore(len(whole), len(told), len(whole & told))


def best_overlap(parts: Sequence[Parts]) -> float:
    """F1 of each gold conversation with the one found that fits it best, by size (Shen et al.)."""
    total, weighed = 0, 0.0
    for gold, found in parts:
        of_found = {line: number for number, cluster in enumerate(found) for line in cluster}
        for cluster in gold:
            overlaps = Counter(of_found[line] for line in cluster)
            best = max(2 * n / (len(cluster) + len(found[it])) for it, n in overlaps.items())
            total, weighed = total + len(cluster), weighed + len(cluster) * best
    return weighed / (total or 1)


def information_kept(parts: Sequence[Parts]) -> float:
    """1 − the variation of information between gold and found, scaled by its greatest value."""
    total = sum(len(cluster) for gold, _ in parts for cluster in gold)
    if total < 2:
        return 1.0
    apart = 0.0
    for gold, found in parts:
        of_gold = {line: number for number, cluster in enumerate(gold) for line in cluster}
        for cluster in found:
            overlaps = Counter(of_gold[line] for line in cluster)
            for number, n in overlaps.items():
                apart -= n * (math.log2(n / len(cluster)) + math.log2(n / len(gold[number])))
    return 1 - apart / total / math.log2(total)


def topics(logs: Sequence[ChatLog]) -> list[Figure]:
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
    linked = sum(len(log.messages) for log in logs)
    return [
        *_scored("links, all lines", links),
        *_scored("links, people's lines", of_people),
        *_scored("whole conversations", whole),
        Figure("topics: 1 - scaled variation of information", 100 * information_kept(parts), "%"),
        Figure("topics: Shen F1", 100 * best_overlap(parts), "%"),
        Figure("topics: CPU", 1000 * spent / (linked or 1), "ms/message"),
    ]


def _scored(name: str, score: LinkScore) -> list[Figure]:
    note = f"{score.right} right of {score.found} found, {score.gold} annotated"
    return [
        Figure(f"{name}: F1", 100 * score.f1, "%", note=note),
        Figure(f"{name}: precision", 100 * score.precision, "%"),
        Figure(f"{name}: recall", 100 * score.recall, "%"),
    ]


def _linked(log: ChatLog) -> dict[int, int]:
    lines = list(log.messages)
    answered = answer_links(list(log.messages.values()))
    return {lines[index]: lines[other] for index, other in enumerate(answered)}
