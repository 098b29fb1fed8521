"""Time limits that hold on an idle machine and give way on a busy one."""

from __future__ import annotations

import os

_SPARE = 1.5  # the load of the last minute says little about a moment


def limit_s(seconds: float) -> float:
    """Returns `seconds` with something to spare, or more the more processes wait for a core."""
    waiting = os.getloadavg()[0] / (os.cpu_count() or 1)
    return seconds * max(_SPARE, waiting)
