"""What one model at one endpoint does not take, found out from its refusals. Held in memory.

Each lesson is forgotten after an hour: a server is set up anew, or a name means another model.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from bot.agents.llm.model import Feature

FORGOTTEN_AFTER_S = 3600.0
_ENOUGH = 3


class Abilities:
    """`clock` gives seconds that only grow."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._learned: dict[Feature, float] = {}
        self._doubts = 0

    def lacking(self) -> frozenset[Feature]:
        """What is known to be refused."""
        if not self._learned:
            return frozenset()
        since = self._clock() - FORGOTTEN_AFTER_S
        self._learned = {name: at for name, at in self._learned.items() if at > since}
        return frozenset(self._learned)

    def learn(self, feature: Feature) -> None:
        """The endpoint said that it does not take `feature`."""
        self._learned[feature] = self._clock()

    def doubt_tools(self) -> None:
        """A request with tools was refused without a reason that we know.

        Several in a row, with no answer to such a request between them, are reason enough.
        """
        self._doubts += 1
        if self._doubts >= _ENOUGH:
            self._doubts = 0
            self.learn("tools")

    def trust_tools(self) -> None:
        """Tools are not the reason: a request with them was answered, or one without was refused
        too."""
        self._doubts = 0
