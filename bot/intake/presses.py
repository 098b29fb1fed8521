"""Clicks at the edge: is this button still good, and who was first? The toast must tell the truth.

Feishu wants the answer to a card callback within 3 s and asks once. The webhook therefore

1. looks whether the press would be accepted, which also names the conversation,
2. puts the click into the queue, in order with that conversation's messages,
3. presses the button, and says what came of it.

The worker presses again before it does anything. A press is idempotent by the click's event_id and
the first in its group wins, so a process that dies between two steps loses no click and asks
nothing twice.

The memory's transports are asynchronous and the webhook is not: they run on an event loop in a
thread of its own, which begins with the first click.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from memory.errors import StoreError
from memory.rpc import Rpc
from memory.tables.buttons import ButtonStore, Click, Press
from memory.tables.handles import HandleStore, Touch, Touched

_LIMIT_S = 1.0
_CLOSE_S = 3.0

T = TypeVar("T")
Opener = Callable[[], Awaitable[Rpc]]


class PressUnavailable(Exception):
    """The memory did not answer in time; whether the button was pressed is not known."""


class Presses:
    """Buttons for threads that wait for an answer. `open_rpc` connects, with the first click."""

    def __init__(self, open_rpc: Opener, *, limit_s: float = _LIMIT_S) -> None:
        self._open_rpc = open_rpc
        self._limit_s = limit_s
        self._starting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._rpc: asyncio.Task[Rpc] | None = None

    def look(self, click: Click) -> Press:
        """What `press` would give; changes nothing. Raises `PressUnavailable` after a second."""
        return self._ask(self._with_buttons(ButtonStore.look, click))

    def press(self, click: Click) -> Press:
        """Presses the button. Raises `PressUnavailable` after a second."""
        return self._ask(self._with_buttons(ButtonStore.press, click))

    def touch(self, touch: Touch) -> Touched:
        """Keeps what was pressed below an answer, or says what `again` leads to. Raises
        `PressUnavailable` after a second."""
        return self._ask(self._touched(touch))

    def close(self) -> None:
        """Ends the connections and the thread."""
        with self._starting:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop and thread:
            asyncio.run_coroutine_threadsafe(self._end(), loop)
            thread.join(_CLOSE_S)

    async def _with_buttons(
        self, step: Callable[[ButtonStore, Click], Awaitable[Press]], click: Click
    ) -> Press:
        return await step(ButtonStore(await self._connected()), click)

    async def _touched(self, touch: Touch) -> Touched:
        return await HandleStore(await self._connected()).press(touch)

    async def _connected(self) -> Rpc:
        if self._rpc is None:
            self._rpc = asyncio.ensure_future(self._open_rpc())
        return await asyncio.shield(self._rpc)

    def _ask(self, question: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(question, self._running_loop())
        try:
            return future.result(self._limit_s)
        except (TimeoutError, StoreError) as exc:
            future.cancel()
            raise PressUnavailable(type(exc).__name__) from exc

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_run, args=(self._loop,), daemon=True)
                self._thread.start()
            return self._loop

    async def _end(self) -> None:
        if self._rpc is not None:
            await (await self._rpc).close()
        asyncio.get_running_loop().stop()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    loop.close()
