"""APIs that Feishu refused for want of a scope: not asked again for a while."""

from __future__ import annotations

import time
from collections.abc import Callable

_STANDS_S = 600.0


class Denials:
    """What was refused lately, by the name of the API: less than `stands_s` ago. `clock` is
    monotonic seconds."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, *, stands_s: float = _STANDS_S
    ) -> None:
        self._clock = clock
        self._stands_s = stands_s
        self._until: dict[str, float] = {}

    def stands(self, api: str) -> bool:
        """Whether `api` was refused lately."""
        return self._clock() < self._until.get(api, 0.0)

    def note(self, api: str) -> None:
        """`api` was refused just now."""
        self._until[api] = self._clock() + self._stands_s
