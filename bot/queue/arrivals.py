"""Which kinds of events have arrived: what the operators' checks know of the subscriptions.

Feishu tells nobody to which events an app is subscribed, so an event proves itself by arriving. The
edge notes each kind at most once an hour, beside the acknowledgement and never before it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta

import structlog

from bot.queue.inbox import Inbox, QueueUnavailable

log = structlog.get_logger()

REFUSED = "refused: "
NOTED_EVERY = timedelta(hours=1)
_LONGEST = 100
_MOST_KINDS = 200


@dataclass
class Arrivals:
    """Notes kinds of events, from any thread. `clock` is monotonic seconds."""

    inbox: Inbox
    clock: Callable[[], float] = time.monotonic
    _noted: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _writer: ThreadPoolExecutor | None = None

    def note(self, kind: str) -> Future[None] | None:
        """Something of this kind has arrived; None when that was noted within the hour."""
        kind = kind[:_LONGEST]
        now = self.clock()
        with self._lock:
            last_noted = self._noted.get(kind)
            if not kind or (
                last_noted is not None and now - last_noted < NOTED_EVERY.total_seconds()
            ):
                return None
            if last_noted is None and len(self._noted) >= _MOST_KINDS:
                return None
            self._noted[kind] = now
            self._writer = self._writer or ThreadPoolExecutor(1, "arrivals")
            return self._writer.submit(self._write, kind)

    def close(self) -> None:
        if self._writer:
            self._writer.shutdown(wait=True)

    def _write(self, kind: str) -> None:
        try:
            self.inbox.note_arrival(kind)
        except QueueUnavailable as exc:
            log.info("arrivals.not_noted", kind=kind, error=str(exc))
            with self._lock:
                self._noted.pop(kind, None)  # with the next one
