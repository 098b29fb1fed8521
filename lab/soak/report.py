"""What a soak saw: how long answers took, what grew, what stayed behind. Pure but for the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich import box
from rich.table import Table

from lab.benchmark.figures import percentile

Card = tuple[str, str]  # message_id and text


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the processes: `at` s since the beginning; MB, and bytes of log so far."""

    at: float
    answered: int
    pss_mb: dict[str, float]
    connections: int
    log_bytes: int


@dataclass
class Soaked:
    """What was seen. `lines` name nobody. `again`: deliveries that were not acknowledged in time
    and pushed again. `left`: jobs that wait, that failed, and what waits for the memory; `empty_s`:
    until nothing waited after the last answer. `cpu_s`: by part, of what answers and of what
    asks."""

    asked: int = 0
    lines: int = 0
    unanswered: int = 0
    again: int = 0
    doubled: int = 0
    mismatched: int = 0
    replies_s: list[float] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    burst_s: list[float] = field(default_factory=list)
    left: tuple[int, int, int] = (0, 0, 0)
    empty_s: float = 0.0
    cpu_s: dict[str, float] = field(default_factory=dict)

    @property
    def is_clean(self) -> bool:
        return not (self.unanswered or self.doubled or self.mismatched or any(self.left))

    def compare(
        self, shown: Mapping[str, Sequence[Card]], stored: Mapping[str, Sequence[Card]]
    ) -> None:
        """What people see below each question, beside what is stored of its answer."""
        for question, cards in shown.items():
            rows = stored.get(question, ())
            self.doubled += len(cards) > max(1, len(rows))
            self.mismatched += sorted(cards) != sorted(rows)

    def thirds(self) -> tuple[list[Look], list[Look]]:
        """The looks of the second third and of the last."""
        third = max(1, len(self.looks) // 3)
        return self.looks[third : 2 * third] or self.looks, self.looks[-third:]

    def growth(self) -> dict[str, float]:
        """From the second third to the last: MB by part, connections, bytes of log a mention."""
        return {name: after - before for name, (before, after) in self.measures().items()}

    def measures(self) -> dict[str, tuple[float, float]]:
        """In the second third and in the last."""
        before, after = self.thirds()
        parts = sorted({part for look in self.looks for part in look.pss_mb})
        found = {
            f"{part} MB": (
                _mean([look.pss_mb.get(part, 0.0) for look in before]),
                _mean([look.pss_mb.get(part, 0.0) for look in after]),
            )
            for part in parts
        }
        found["connections"] = (float(before[0].connections), float(after[-1].connections))
        return found | {"log bytes a mention": (_log(before), _log(after))}


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _log(looks: list[Look]) -> float:
    answered = looks[-1].answered - looks[0].answered
    return (looks[-1].log_bytes - looks[0].log_bytes) / answered if answered else 0.0


def tables(seen: Soaked) -> list[Table]:
    """What became of the questions; what grew; what it cost."""
    return [_outcome(seen), *([_grown(seen)] if seen.looks else []), _cost(seen)]


def _outcome(seen: Soaked) -> Table:
    drawn = _drawn("questions", "answered", "p50", "p95", "longest")
    for name, times in (("steady", seen.replies_s), ("burst", seen.burst_s)):
        half, most = (f"{percentile(times, part):.2f} s" if times else "–" for part in (0.5, 0.95))
        drawn.add_row(name, str(len(times)), half, most, f"{max(times, default=0.0):.1f} s")
    for name, count in (
        ("asked", seen.asked),
        ("lines said besides, for nobody", seen.lines),
        ("pushed again, for want of an acknowledgement within 3 s", seen.again),
        ("lost", seen.unanswered),
        ("doubled", seen.doubled),
        ("other than stored", seen.mismatched),
        ("left waiting in the queue", seen.left[0]),
        ("failed", seen.left[1]),
        ("left waiting for the memory", seen.left[2]),
    ):
        drawn.add_row(name, str(count))
    drawn.add_row("nothing waits after", f"{seen.empty_s:.0f} s")
    return drawn


def _grown(seen: Soaked) -> Table:
    drawn = _drawn("while it was steady", "second third", "last third", "growth")
    for name, (before, after) in seen.measures().items():
        drawn.add_row(name, f"{before:.1f}", f"{after:.1f}", f"{after - before:+.1f}")
    return drawn


def _cost(seen: Soaked) -> Table:
    drawn = _drawn("processor", "ms a question")
    for part, seconds in sorted(seen.cpu_s.items()):
        drawn.add_row(part, f"{seconds * 1000 / max(1, seen.asked):.1f}")
    return drawn


def _drawn(first: str, *columns: str) -> Table:
    drawn = Table(box=box.SIMPLE_HEAD)
    drawn.add_column(first)
    for column in columns:
        drawn.add_column(column, justify="right")
    return drawn
