"""A line in which chats take turns, however many of one chat stand in it. For one event loop."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable


class FairLine:
    """Those who wait, in one queue for each chat. The chats take turns.

    `missed` is called for someone who was called and was cancelled before they could come.
    """

    def __init__(self, on_missed: Callable[[], None]) -> None:
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._length = 0
        self._missed = on_missed

    def __len__(self) -> int:
        return self._length

    async def wait(self, whose: str) -> None:
        """Returns when `call_next` calls this one."""
        turn = asyncio.get_running_loop().create_future()
        self._queues.setdefault(whose, deque()).append(turn)
        self._length += 1
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._leave(whose, turn)
            else:
                self._missed()
            raise

    def call_next(self) -> bool:
        """Calls the next in line. False: nobody waits."""
        while self._queues:
            whose, queue = next(iter(self._queues.items()))
            turn = queue.popleft()
            self._length -= 1
            self._queues.move_to_end(whose)
            if not queue:
                del self._queues[whose]
            if not turn.done():
                turn.set_result(None)
                return True
        return False

    def _leave(self, whose: str, turn: asyncio.Future[None]) -> None:
        queue = self._queues.get(whose)
        if queue and turn in queue:
            queue.remove(turn)
            self._length -= 1
            if not queue:
                del self._queues[whose]
