"""What a worker does beside its jobs begins when its rehearsal has ended."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from bot import worker
from bot.worker import begin_one_by_one

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("fails", [False, True])
async def test_what_is_tended_waits_for_the_rehearsal(
    monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    monkeypatch.setattr(worker, "_APART_S", 0.0)
    order: list[str] = []
    rehearses, done = asyncio.Event(), asyncio.Event()

    async def forever() -> None:
        order.append("presence")
        await asyncio.Event().wait()

    async def rehearsal() -> None:
        await rehearses.wait()
        order.append("rehearsed")
        if fails:
            raise RuntimeError

    async def tended() -> None:
        order.append("tended")
        done.set()

    begun = begin_one_by_one([forever, rehearsal], [tended])
    for _ in range(10):
        await asyncio.sleep(0)
    assert order == ["presence"]
    rehearses.set()
    await done.wait()

    assert order == ["presence", "rehearsed", "tended"]
    for task in begun:
        task.cancel()
    await asyncio.gather(*begun, return_exceptions=True)


def test_a_worker_without_a_key_for_tokens_loads_no_cryptography() -> None:
    asked = "import sys, bot.worker; print('cryptography' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)

    assert said.stdout == "False\n"
