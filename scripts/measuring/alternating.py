"""The account of several versions, taken run by run in turn: A B A B …"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scripts.measuring.account import run, set_up
from scripts.measuring.bars import figures
from scripts.measuring.checkouts import Checkout
from scripts.measuring.counted import count
from scripts.measuring.figures import Figure, combined
from scripts.measuring.setting import Setting


async def alternate(
    setting: Setting,
    versions: Sequence[Checkout],
    modes: Sequence[bool],
    runs: int,
    progress: Callable[[str], object],
) -> dict[str, list[Figure]]:
    """The figures of each version by its label; `modes`: replies streamed or not.

    Raises `NotMeasured` and what starting a Postgres raises.
    """
    first = {one.label: await set_up(setting, one) for one in versions}
    found: dict[str, list[Figure]] = {one.label: [] for one in versions}
    for number in range(runs):
        for streaming in modes:
            for one in versions:
                progress(f"run {number + 1} of {runs}: {one.title}{_how(streaming)}")
                taken = await run(setting, one, streaming=streaming)
                found[one.label] += figures(taken, first[one.label])
    for streaming in modes:
        for one in versions:
            progress(f"counting what Postgres is asked: {one.title}{_how(streaming)}")
            found[one.label] += await count(setting, one, streaming=streaming)
    return {label: combined(each) for label, each in found.items()}


def _how(streaming: bool) -> str:
    return ", streaming" if streaming else ""
