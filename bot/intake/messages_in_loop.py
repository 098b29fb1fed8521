"""Messages that the loop of the web process verifies and stores itself, without a thread.

Most of what Feishu pushes is a message, and nothing but storing has to be done before it is
acknowledged. A thread, the lock between threads and the application cost several times as much as
that. The loop sends one statement and goes on; messages that arrive meanwhile share the next one.

Everything else goes to a thread and the application, as if it had just arrived: a request that is
refused, another kind of event, a message that the database is slow with or fails on. A message
that is stored twice is harmless, because its key is unique.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from selectors import EVENT_READ, BaseSelector

from bot.queue.inbox import Arrived, QueueUnavailable, Storing

MAX_BODY_BYTES = 64 * 1024
PATIENCE_S = 0.05  # after so long of one statement, messages go to threads and do not wait for it
_GIVEN_UP_S = 0.9  # half of the time that a delivery has

Store = Callable[[Sequence[Arrived]], Storing | None]
Tell = Callable[[bytes | None], object]
"""Gets the answer to a request, or None: a thread has to answer it."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """`received_s` is in seconds of `time.perf_counter`, `ready` when it was to be stored."""

    tell: Tell
    message: Arrived
    received_s: float
    ready: float


class LoopIntake:
    """The messages of one loop, which calls `go` after each of its turns.

    `read` gives the message in a request, by its header fields (names in upper case) and its body,
    or None where it is none or is not genuine. `store` begins to store messages. `taken` gives the
    answer for a stored message: whether it is new, how long storing took, and how long since it
    arrived (s).
    """

    def __init__(
        self,
        read: Callable[[Mapping[str, str], bytes], Arrived | None],
        store: Store,
        took: Callable[[Arrived, bool, float, float], bytes],
    ) -> None:
        self._read_message = read
        self._store = store
        self._on_taken = took
        self._next: list[_Waiting] = []
        self._under_way: list[_Waiting] = []
        self._storing: Storing | None = None
        self._statement_start_s = 0.0
        self._wanted_events = EVENT_READ

    @property
    def is_busy(self) -> bool:
        """Whether something is being stored."""
        return self._storing is not None

    def wait_s(self, longest_s: float) -> float:
        """For so long the loop may wait for something to happen."""
        if self._next and not self.is_busy:
            return 0.0
        return PATIENCE_S if self.is_busy else longest_s

    def offer(self, tell: Tell, headers: Mapping[str, str], body: bytes) -> bool:
        """Whether it is a message that is stored here; `tell` is called in a later turn."""
        received_s = time.perf_counter()
        if len(body) > MAX_BODY_BYTES or (
            self._storing and received_s - self._statement_start_s > PATIENCE_S
        ):
            return False
        message = self._read_message(headers, body)
        if message is None:
            return False
        self._next.append(_Waiting(tell, message, received_s, time.perf_counter()))
        return True

    def go(self, poller: BaseSelector) -> None:
        """Stores what has come together, unless something is being stored."""
        if self._storing is not None:
            took_s = time.perf_counter() - self._statement_start_s
            if took_s > _GIVEN_UP_S:
                self._leave(poller)
            if took_s > PATIENCE_S:
                self._return(self._next)
            return
        if self._next:
            self._begin(poller)

    def _begin(self, poller: BaseSelector) -> None:
        self._under_way, self._next = self._next, []
        self._statement_start_s = time.perf_counter()
        with suppress(Exception):  # a thread meets it again, and answers it
            self._storing = self._store([one.message for one in self._under_way])
        if self._storing is None:
            self._return(self._under_way)
            return
        self._wanted_events = EVENT_READ
        poller.register(self._storing.socket, EVENT_READ, lambda _: self._step(poller))
        self._step(poller)

    def _step(self, poller: BaseSelector) -> None:
        if (storing := self._storing) is None:
            return
        try:
            wanted_events = storing.step()
        except QueueUnavailable:
            self._leave(poller)
            return
        if not wanted_events:
            self._leave(poller, storing.fresh)
        elif wanted_events != self._wanted_events:
            self._wanted_events = wanted_events
            poller.modify(storing.socket, wanted_events, lambda _: self._step(poller))

    def _leave(self, poller: BaseSelector, fresh: Sequence[bool] = ()) -> None:
        """What was being stored is, or it takes too long, or it has failed."""
        storing, self._storing = self._storing, None
        if storing is not None:
            poller.unregister(storing.socket)
            storing.end()
        if fresh:
            now, stored_arrivals = time.perf_counter(), self._under_way
            for one, is_fresh in zip(stored_arrivals, fresh, strict=True):
                answer = None
                with suppress(Exception):  # the loop goes on, whatever it is
                    answer = self._on_taken(
                        one.message, is_fresh, now - one.ready, now - one.received_s
                    )
                one.tell(answer)
            stored_arrivals.clear()
        self._return(self._under_way)

    @staticmethod
    def _return(waiting: list[_Waiting]) -> None:
        for one in waiting:
            one.tell(None)
        waiting.clear()
