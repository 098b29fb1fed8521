"""How far an answer is, while the model writes it; what a reasoning model thinks is no part of it.

Endpoints mark thoughts as parts of their own, or put them in `<think>` tags before the answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from bot.agents.tool_context import without_context

_OPEN, _CLOSE = "<think>", "</think>"


@dataclass(frozen=True, slots=True)
class Progress:
    """The whole text so far, or the name of the tool that runs; neither while nothing is said."""

    text: str = ""
    tool: str = ""


OnProgress = Callable[[Progress], Awaitable[None]]


class Written:
    """Passes progress on, and keeps the text that was said last."""

    def __init__(self, on_progress: OnProgress) -> None:
        self._on_progress = on_progress
        self.text = ""

    async def __call__(self, progress: Progress) -> None:
        self.text = progress.text
        await self._on_progress(progress)


def without_thoughts(text: str) -> str:
    """`text` without a block of thoughts at its beginning, closed or not."""
    start = text.lstrip()
    if not start.startswith(_OPEN):
        return text
    return start.partition(_CLOSE)[2].lstrip()


def said_so_far(parts: Iterable[str]) -> str:
    """What of an unfinished response can be shown already: not the beginning of a think tag."""
    text = without_context(without_thoughts("".join(parts)))
    return "" if _OPEN.startswith(text.strip()) else text
