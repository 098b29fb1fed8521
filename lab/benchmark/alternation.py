"""The account of several versions, taken run by run in turn: A B A B …"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from lab.benchmark.account import run, set_up
from lab.benchmark.checkouts import Checkout
from lab.benchmark.figures import FailedMeasure, Figure
from lab.benchmark.processes import EXPECTED
from lab.benchmark.setting import Setting
from lab.benchmark.statement_counts import count
from lab.benchmark.targets import figures


@dataclass(frozen=True, slots=True)
class VersionFigures:
    """The figures of all runs by the label of their version, and the runs that failed."""

    figures: dict[str, list[Figure]]
    failed: list[FailedMeasure] = field(default_factory=list)


async def alternate(
    setting: Setting,
    versions: Sequence[Checkout],
    modes: Sequence[bool],
    runs: int,
    progress: Callable[[str], object],
) -> VersionFigures:
    """Every version, `runs` times in each mode (replies streamed or not), then what it asks of
    Postgres. A run that fails is left out. Raises what a first start raises."""
    first = {one.label: await set_up(setting, one, setting.folder / one.label) for one in versions}
    taken = VersionFigures({one.label: [] for one in versions})

    async def measured(one: Checkout, streaming: bool) -> list[Figure]:
        return figures(await run(setting, one, streaming=streaming), first[one.label])

    async def counted(one: Checkout, streaming: bool) -> list[Figure]:
        return await count(setting, one, streaming=streaming)

    steps: list[tuple[str, Callable[[Checkout, bool], Awaitable[list[Figure]]]]]
    steps = [(f"run {number + 1} of {runs}", measured) for number in range(runs)]
    for title, step in [*steps, ("counting what Postgres is asked", counted)]:
        for streaming in modes:
            for one in versions:
                name = f"{title}: {one.title}{', streaming' if streaming else ''}"
                progress(name)
                try:
                    taken.figures[one.label] += await step(one, streaming)
                except EXPECTED as exc:
                    taken.failed.append(FailedMeasure.by(name, exc))
    return taken
