"""What the processes load and do when they start."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from bot import worker
from bot.worker import begin_one_by_one
from tests.support.rows import every_row

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


@every_row(
    ("process", "spared"),
    [
        ("bot.worker", "cryptography"),  # for who has a key for people's tokens
        ("bot.intake.receiving", "psycopg"),  # gunicorn's master asks no database
        ("app", "bot.agents.prompts.prompt"),  # the web process answers nobody
    ],
)
def test_a_process_does_not_load_what_it_does_not_need(process: str, spared: str) -> None:
    asked = f"import sys, {process}; print({spared!r} in sys.modules)"
    said = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)

    assert said.stdout == "False\n"
