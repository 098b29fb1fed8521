"""Turns that can be stopped while they run, in this worker.

Whoever asks for a stop tells the queue's database (`feishu_bot.stop_turn`), which tells every
worker: the click does not wait behind the turn that it stops. A turn that is taken up after a crash
looks there first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Final

STOPPED: Final = "stopped"


class Stop:
    """Whether one turn is to stop, and who wants to know at once."""

    def __init__(self) -> None:
        self.asked = False
        self._act: Callable[[], None] | None = None

    def ask(self) -> None:
        """The turn is to stop. Asked again, nothing more happens."""
        if not self.asked:
            self.asked = True
            if self._act:
                self._act()

    @contextlib.contextmanager
    def ends(self, act: Callable[[], None]) -> Iterator[None]:
        """While the body runs, `act` is called when the turn is to stop; at once if it was."""
        self._act = act
        if self.asked:
            act()
        try:
            yield
        finally:
            self._act = None


class Stops:
    """The turns that this worker runs, by id."""

    def __init__(self) -> None:
        self._running: dict[str, Stop] = {}

    @contextlib.contextmanager
    def watching(self, turn_id: str) -> Iterator[Stop]:
        """The turn runs while the body does."""
        stop = self._running[turn_id] = Stop()
        try:
            yield stop
        finally:
            if self._running.get(turn_id) is stop:
                del self._running[turn_id]

    def ask(self, turn_ids: Iterable[str]) -> None:
        """Stops those of the turns that run here."""
        for turn_id in turn_ids:
            if stop := self._running.get(turn_id):
                stop.ask()
