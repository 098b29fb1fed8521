"""The cost of one line and one mention, solved from phases that had both. Pure.

A phase costs `idle × time + line × lines + mention × turns`. A line costs the same beside any
model, a mention does not. Phases with many lines to a turn and with few, of one model, give both;
each other model needs one phase more. The solution has the least sum of squared errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Costs = dict[str, float]
"""By part, in ms of the processor."""
_NOTHING = 1e-6


@dataclass(frozen=True, slots=True)
class Counted:
    """A phase of `took_s`: its cost by part, the lines that were only heard, and the turns."""

    spent: Mapping[str, float]
    took_s: float
    lines: int
    turns: int

    def beyond(self, part: str, idle: Mapping[str, float]) -> float:
        """Returns the cost of a part beyond that of a bot at rest (`idle`, a second)."""
        return self.spent.get(part, 0.0) - idle.get(part, 0.0) * self.took_s


def cost_of_a_line(phase: Counted, idle: Mapping[str, float]) -> Costs:
    """Divides a phase without mentions by its lines."""
    return {part: phase.beyond(part, idle) / max(phase.lines, 1) for part in phase.spent}


def costs(
    phases: Mapping[float, Sequence[Counted]], idle: Mapping[str, float]
) -> tuple[Costs, dict[float, Costs]]:
    """Returns the cost of a line, and of a mention by model, from the phases of each model. Raises
    ValueError if all phases have the same ratio of lines to turns."""
    parts = sorted({part for of_one in phases.values() for phase in of_one for part in phase.spent})
    line = {part: _line(phases.values(), part, idle) for part in parts}
    mentions = {
        model: {part: _mention(of_one, line[part], part, idle) for part in parts}
        for model, of_one in phases.items()
    }
    return line, mentions


def _line(models: Iterable[Sequence[Counted]], part: str, idle: Mapping[str, float]) -> float:
    """Least squares, after removing what the turns of each model explain."""
    above, below = 0.0, 0.0
    for phases in models:
        squares = sum(one.turns**2 for one in phases)
        lines_by_turns = sum(one.lines * one.turns for one in phases) / max(squares, 1)
        for one in phases:
            lines = one.lines - one.turns * lines_by_turns
            above += lines * one.beyond(part, idle)
            below += lines * lines
    if below < _NOTHING:
        raise ValueError("all phases had as many lines to a turn: there is nothing to solve")
    return above / below


def _mention(phases: Sequence[Counted], line: float, part: str, idle: Mapping[str, float]) -> float:
    """Divides what the lines leave by the turns."""
    left = sum(one.turns * (one.beyond(part, idle) - one.lines * line) for one in phases)
    return left / max(sum(one.turns**2 for one in phases), 1)
