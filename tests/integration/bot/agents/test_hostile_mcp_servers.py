"""A hostile MCP server costs its own tools, and nobody else anything."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from bot.agents.mcp.config import McpServer
from bot.agents.mcp.servers import McpServers, TimeLimits
from bot.agents.tool_types import ToolFailed

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).parents[3] / "data" / "mcp" / "hostile_server.py"
LIMITS = TimeLimits(connect_s=60, call_s=2, relist_s=0.3, first_retry_s=0.2, longest_retry_s=1)
MOST_MEMORY = 80 << 20
LONGEST = 25_000  # characters, of what a model is given

# What a call comes to, by the manner of the server: a pattern in the result, or in the failure.
TOO_MUCH = "broke off|did not answer within 2 s"  # the latter where a busy machine reads slowly
CALLS = {
    "a line without end": TOO_MUCH,
    "silent before its end": "broke off",
    "a hundred megabytes": TOO_MUCH,
    "many messages without end": "did not answer within 2 s",
    "lines that are no messages": "did not answer within 2 s",
    "drop by drop": "did not answer within 2 s",
    "another id": "did not answer within 2 s",
    "deep text": r"\[\[\[",
    "a long result": r"\(cut:",
    "a pattern that takes for ever": "",
    "a long error": "refused the call",
    "tools that change without end": "done",
    "it asks in turn": "refused: True",
}


def hostile(manner: str, name: str = "evil") -> McpServer:
    return McpServer(name, command=sys.executable, args=(str(SERVER), manner), confirm=False)


@asynccontextmanager
async def running(manner: str) -> AsyncIterator[McpServers]:
    """The hostile server beside one that means well."""
    mcp = McpServers([hostile(manner), hostile("means well", "good")], limits=LIMITS)
    await mcp.start()
    try:
        await mcp.settled()
        yield mcp
    finally:
        await mcp.close()
        assert not servers_left()


def servers_left() -> list[psutil.Process]:
    return [one for one in psutil.Process().children() if str(SERVER) in " ".join(one.cmdline())]


async def called(mcp: McpServers, tool: str, **arguments: Any) -> str:
    """What a model is given of a call, done or failed."""
    try:
        return str(await mcp.tools()[tool].call(None, arguments))
    except ToolFailed as failed:
        return str(failed)


async def longest_pause(stop: asyncio.Event) -> float:
    """The longest time for which the event loop did nothing else, in seconds."""
    longest = 0.0
    while not stop.is_set():
        begun = time.monotonic()
        await asyncio.sleep(0.01)
        longest = max(longest, time.monotonic() - begun)
    return longest


@pytest.mark.parametrize("manner", CALLS)
async def test_a_call_ends_in_time_and_says_what_came_of_it(manner: str) -> None:
    async with running(manner) as mcp:
        before = psutil.Process().memory_info().rss
        stop = asyncio.Event()
        watching = asyncio.create_task(longest_pause(stop))
        begun = time.monotonic()
        evil, good = await asyncio.gather(
            called(mcp, "evil__harmless"), called(mcp, "good__harmless")
        )
        took = time.monotonic() - begun
        stop.set()

        assert re.search(CALLS[manner], evil), evil[:200]
        assert len(evil) < LONGEST
        assert good == "done"
        assert took < LIMITS.call_s + 5
        assert await watching < 2
        assert psutil.Process().memory_info().rss - before < MOST_MEMORY


@pytest.mark.parametrize(
    ("manner", "most"),
    [("ten thousand tools", 100), ("large schemas", 1), ("names with markup", 8)],
)
async def test_tools_are_few_small_and_plainly_named(manner: str, most: int) -> None:
    async with running(manner) as mcp:
        evil = [name for name in mcp.tools() if name.startswith("evil__")]

        assert "evil__harmless" in evil
        assert len(evil) <= most
        assert all(len(name) <= 64 for name in evil)
        assert all(name.replace("_", "").replace("-", "").isalnum() for name in evil)
        assert all(name.isascii() for name in evil)
        assert len(mcp.tools().json) < 100 * 20_000
        assert await called(mcp, "good__harmless") == "done"


async def test_a_server_in_a_folder_of_its_own_is_bounded_too(tmp_path: Path) -> None:
    mcp = McpServers([replace(hostile("a long result"), cwd=str(tmp_path))], limits=LIMITS)
    await mcp.start()
    try:
        assert await mcp.settled() == {"evil": True}
        assert "(cut:" in await called(mcp, "evil__harmless")
    finally:
        await mcp.close()


async def test_tools_that_change_at_each_look_are_looked_at_now_and_then() -> None:
    async with running("tools that change without end") as mcp:
        used = psutil.Process().cpu_times().user
        for _ in range(3):
            # A busy machine can take longer than a call may; then the server is connected again.
            await asyncio.wait_for(mcp.reached("evil"), 60)
            await called(mcp, "evil__harmless")
        await asyncio.sleep(1)

        assert psutil.Process().cpu_times().user - used < 4
        await asyncio.wait_for(mcp.reached("evil"), 60)
        assert "evil__harmless" in mcp.tools()


async def test_a_tool_that_is_to_be_confirmed_cannot_be_had_under_another_name() -> None:
    server = replace(hostile("another tool at each look"), confirm=frozenset({"publish"}))
    mcp = McpServers([server], limits=LIMITS)
    await mcp.start()
    try:
        await mcp.settled()
        assert all(mcp._connections["evil"].needs_confirmation(name) for name in mcp.tools())
    finally:
        await mcp.close()
