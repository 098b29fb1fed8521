"""What the evaluation of recall prints: one line for each set and kind, and the bars. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lab.evaluation.recall_asking import Found, RecallReport

BM25, WORDS, VECTORS = "BM25", "words", "vectors"
_WAYS = (BM25, WORDS, VECTORS)
_NEAR = 1e-9


@dataclass(frozen=True, slots=True)
class Measured:
    """One set by one way: plain BM25, by words, or with vectors."""

    way: str
    corpus: str
    questions: int
    found: Found
    kinds: Mapping[str, Found]
    report: RecallReport | None = None

    @classmethod
    def of(cls, way: str, report: RecallReport) -> Measured:
        return cls(way, report.corpus, report.questions, report.found, report.kinds, report)


@dataclass(frozen=True, slots=True)
class _Bar:
    """`way` finds at least `least` at k, or so much more than `over`; of sets named `corpus…`."""

    corpus: str
    way: str
    k: int
    least: float
    over: str = ""

    def text(self) -> str:
        least = f"{100 * self.least:g}"
        return f"≥ {self.over} + {least}" if self.over else f"≥ {least}"


_BARS = (
    _Bar("MemDaily", WORDS, 5, 0.69),
    _Bar("MemDaily", WORDS, 10, 0.90),
    _Bar("MemDaily", VECTORS, 5, 0.03, WORDS),
    _Bar("MemDaily", VECTORS, 10, 0.04, WORDS),
    _Bar("LoCoMo", WORDS, 5, 0.725),
    _Bar("LoCoMo", WORDS, 10, 0.80),
    _Bar("LoCoMo", VECTORS, 5, 0.01, WORDS),
    _Bar("LoCoMo", VECTORS, 10, 0.01, WORDS),
    *(
        _Bar(corpus, VECTORS, k, least)
        for corpus in ("in other words", "across languages")
        for k, least in ((5, 0.85), (10, 0.95))
    ),
)


def found_table(measured: Sequence[Measured]) -> str:
    """Per set and kind the share of the evidence at each k, way beside way."""
    ways = [way for way in _WAYS if any(one.way == way for one in measured)]
    ks = "/".join(f"{k}" for k in measured[0].found)
    rows = [["data", "questions", *(f"{way} R@{ks}" for way in ways)]]
    for corpus, by_way in _by_corpus(measured).items():
        first = next(iter(by_way.values()))
        rows.append([corpus, f"{first.questions}", *_cells(ways, by_way, "")])
        kinds = {kind: None for one in by_way.values() for kind in one.kinds}
        rows += [[f"  {kind}", "", *_cells(ways, by_way, kind)] for kind in kinds]
    return table(rows)


def _by_corpus(measured: Sequence[Measured]) -> dict[str, dict[str, Measured]]:
    sets: dict[str, dict[str, Measured]] = {}
    for one in measured:
        sets.setdefault(one.corpus, {})[one.way] = one
    return sets


def _cells(ways: Sequence[str], by_way: Mapping[str, Measured], kind: str) -> list[str]:
    found = [
        (one.kinds.get(kind) if kind else one.found) if (one := by_way.get(way)) else None
        for way in ways
    ]
    return [
        " / ".join(f"{100 * share:.1f}" for share in by_k.values()) if by_k else ""
        for by_k in found
    ]


def prompt_table(measured: Sequence[Measured]) -> str:
    """What prompts tell, and of a question whose answer is not there."""
    head = ["data", "", "told", "precision", "tokens", "turns elsewhere", "tokens elsewhere"]
    rows = [
        [
            one.corpus,
            one.way,
            f"{told.told:.1%}",
            f"{told.precision:.1%}",
            f"{told.tokens:.0f}",
            f"{told.turns_elsewhere:.1f}",
            f"{told.tokens_elsewhere:.0f}",
        ]
        for one in measured
        if one.report and (told := one.report.prompt)
    ]
    return table([head, *rows])


def bars_table(measured: Sequence[Measured]) -> str:
    """Each bar that can be measured with what there is; "" where there is none."""
    rows = [row for sets in _by_corpus(measured).items() for row in _bars_of(*sets)]
    head = ["data", "", "bar", "measured", ""]
    return table([head, *rows]) if rows else ""


def _bars_of(corpus: str, by_way: Mapping[str, Measured]) -> Iterator[list[str]]:
    for bar in _BARS:
        of, over = by_way.get(bar.way), by_way.get(bar.over) if bar.over else None
        if not corpus.startswith(bar.corpus) or of is None or (bar.over and over is None):
            continue
        share, than = of.found[bar.k], over.found[bar.k] if over else 0.0
        seen = f"{100 * share:.1f}" + (f" ({100 * than:.1f} {bar.over})" if over else "")
        kept = share >= than + bar.least - _NEAR
        yield [corpus, f"{bar.way} R@{bar.k}", bar.text(), seen, "kept" if kept else "missed"]


def table(rows: Sequence[Sequence[str]]) -> str:
    """`rows` in columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
