"""A queue in which whoever has had the fewest turns of late comes next. For one event loop."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable

_OF_LATE_S = 30.0


class FewestFirst:
    """One at a time holds the turn. However many one person asks for, somebody else's first few
    come before the rest of them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._is_held = False
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._turns: deque[tuple[float, str]] = deque()
        self._counts: Counter[str] = Counter()

    async def enter(self, whose: str) -> None:
        """Returns when it is this one's turn. `leave` has to follow."""
        if self._is_held:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(whose, deque()).append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                self._withdraw(whose, turn)
                raise
        self._is_held = True
        self._turns.append((self._clock(), whose))
        self._counts[whose] += 1

    def leave(self) -> None:
        """Gives the turn to the next."""
        self._forget()
        self._is_held = False
        while self._waiting and not self._is_held:
            whose = min(self._waiting, key=lambda one: self._counts[one])
            turn = self._waiting[whose].popleft()
            self._drop_if_empty(whose)
            if not turn.done():  # nobody has given up
                turn.set_result(None)
                self._is_held = True

    def _withdraw(self, whose: str, turn: asyncio.Future[None]) -> None:
        if not turn.cancelled():  # it was called, and cancelled before it could go on
            self.leave()
        elif turn in self._waiting.get(whose, ()):
            self._waiting[whose].remove(turn)
            self._drop_if_empty(whose)

    def _drop_if_empty(self, whose: str) -> None:
        if not self._waiting[whose]:
            del self._waiting[whose]

    def _forget(self) -> None:
        until = self._clock() - _OF_LATE_S
        while self._turns and self._turns[0][0] < until:
            whose = self._turns.popleft()[1]
            self._counts[whose] -= 1
            if not self._counts[whose]:
                del self._counts[whose]
