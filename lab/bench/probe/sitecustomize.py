"""Notes how long a process's event loops work between two looks at their sockets.

Python imports this by itself where PYTHONPATH names the folder; LOOP_PROBE names the folder of the
notes. A line is JSON: `at` (s since epoch), `cpu_s` of the loop's thread, `wall_s`.
"""

from __future__ import annotations

import json
import os
import selectors
import threading
import time
from pathlib import Path
from typing import Any

_WORTH_A_NOTE_S = 0.02
_folder = Path(os.environ["LOOP_PROBE"])
_looked = threading.local()
_select = selectors.EpollSelector.select


def _timed(self: selectors.EpollSelector, timeout: float | None = None) -> Any:
    if began := getattr(_looked, "began", None):
        cpu_s, wall_s = time.thread_time() - began[0], time.monotonic() - began[1]
        if wall_s > _WORTH_A_NOTE_S:
            _note(at=time.time(), cpu_s=cpu_s, wall_s=wall_s)
    ready = _select(self, timeout)
    _looked.began = time.thread_time(), time.monotonic()
    return ready


def _note(**block: float) -> None:
    with (_folder / f"blocks-{os.getpid()}").open("a", encoding="utf-8") as file:
        file.write(json.dumps(block) + "\n")


selectors.EpollSelector.select = _timed  # type: ignore[assignment, method-assign]
