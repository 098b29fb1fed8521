"""How far an answer is, while the model writes it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """The whole text so far, or the name of the tool that runs; neither while nothing is said."""

    text: str = ""
    tool: str = ""


OnProgress = Callable[[Progress], Awaitable[None]]


class WrittenSoFar:
    """Passes progress on where somebody watches, and keeps the text that was said last. `begun` is
    called at the first."""

    def __init__(self, on_progress: OnProgress | None = None) -> None:
        self._on_progress = on_progress
        self.begun: Callable[[], None] | None = None
        self.text = ""

    async def __call__(self, progress: Progress) -> None:
        self.text = progress.text
        if self.begun:
            self.begun()
            self.begun = None
        if self._on_progress:
            await self._on_progress(progress)
