"""Annotated chat logs for telling topics apart, and how well that is done.

The format is that of jkkummerfeld/irc-disentanglement: `NAME.ascii.txt`, a message a line, and
beside it `NAME.annotation.txt`, a link a line (`12 15 -`: line 15 answers line 12; `15 15 -`: it
begins a conversation). Scored is as there: every link of every annotated line, those of the
system's lines (`=== …`, each of which begins one) too; and those of people's lines alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bot.listening.transcript import MessageRecord
from lab.evaluation.chat_log_decisions import spoken

BOTS = ("ubottu", "ubotu")  # as in the corpus's own code

Links = Mapping[int, frozenset[int]]
# Of a log the conversations as annotated, and as found.
Parts = tuple[Sequence[frozenset[int]], Sequence[frozenset[int]]]


@dataclass(frozen=True)
class ChatLog:
    """A log: what people wrote by its line, and what each annotated line answers."""

    name: str
    messages: Mapping[int, MessageRecord]
    links: Links


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


def logs_in(path: Path) -> list[ChatLog]:
    """The annotated logs of a folder, or that of a file. Raises `OSError`, `ValueError`."""
    texts = sorted(path.glob("*.ascii.txt")) if path.is_dir() else [_text_of(path)]
    return [_log_of(text) for text in texts if _annotation_of(text).exists() or not path.is_dir()]


def _text_of(path: Path) -> Path:
    return path.with_name(path.name.replace(".annotation.", ".ascii."))


def _annotation_of(text: Path) -> Path:
    return text.with_name(text.name.replace(".ascii.", ".annotation."))


def _log_of(text: Path) -> ChatLog:
    lines = text.read_text(encoding="utf-8", errors="replace").split("\n")
    messages = {
        line: replace(one, author_id=one.author.casefold(), is_bot=one.author.casefold() in BOTS)
        for line, one in spoken(lines).items()
    }
    annotated = _annotation_of(text).read_text(encoding="utf-8").splitlines()
    return ChatLog(text.name.removesuffix(".ascii.txt"), messages, links_of(annotated))


def links_of(annotated: Iterable[str]) -> Links:
    """The links of an annotation: later line → the lines it answers."""
    links: dict[int, set[int]] = {}
    for row in annotated:
        if row.strip():
            one, other = (int(number) for number in row.split()[:2])
            links.setdefault(max(one, other), set()).add(min(one, other))
    return {line: frozenset(answered) for line, answered in links.items()}


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
