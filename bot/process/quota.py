"""How much of a month's calls of Feishu's API is left, as a worker last heard. Pure.

On its free plan Feishu answers only so many calls a month to all custom apps of a tenant together,
and refuses the rest with 99991403 until the first of the next one (Feishu, "Custom app API call
limit"). It warns at 90 and 100 %.
"""

from __future__ import annotations

from dataclasses import dataclass

NEAR = 0.8
LEVELS = (NEAR, 0.9, 1.0)


@dataclass
class Quota:
    """`used` of `calls` a month; 0 calls: there is no such limit."""

    calls: int = 0
    used: int = 0

    def hear(self, used_calls: int) -> float | None:
        """What was used this month: the highest of `LEVELS` that this passes, None for none new."""
        before, self.used = self.used, used_calls
        was, now = share(before, self.calls), share(used_calls, self.calls)
        passed_levels = [level for level in LEVELS if was < level <= now]
        return passed_levels[-1] if passed_levels else None

    @property
    def is_short(self) -> bool:
        """Whether to save calls."""
        return is_short(self.used, self.calls)


def share(used_calls: int, calls: int) -> float:
    """The part that is used; 0 without a limit."""
    return used_calls / calls if calls else 0.0


def is_short(used_calls: int, calls: int) -> bool:
    """Whether little is left."""
    return share(used_calls, calls) >= NEAR
