"""Work on a long text holds up nobody: the loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import threading

import pytest

from bot.process.concurrency import compute_apart

pytestmark = pytest.mark.anyio


async def test_the_loop_goes_on_while_a_long_text_is_read() -> None:
    loop, ticked = asyncio.get_running_loop(), threading.Event()
    loop.call_soon(ticked.set)
    assert await compute_apart(lambda: ticked.wait(10), 20_000)


async def test_a_short_text_is_read_at_once() -> None:
    thread = await compute_apart(threading.get_ident, 500)
    assert thread == threading.get_ident()


async def test_what_goes_wrong_in_a_long_text_is_told() -> None:
    with pytest.raises(ZeroDivisionError):
        await compute_apart(lambda: 1 // 0, 20_000)
