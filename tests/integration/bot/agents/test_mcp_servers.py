"""Tools of real MCP servers, over stdio and HTTP, alive, hanging and dying."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from structlog.testing import capture_logs

from bot.agents.llm.model import Model, Request
from bot.agents.manager import Manager, Prompt, Stores
from bot.agents.mcp.config import McpServer
from bot.agents.mcp.servers import ActionAlreadyRun, McpServers, ServerDown, TimeLimits
from bot.agents.specialists import Specialist
from lab.doubles.processes import free_port
from memory.models import WorkingMemory
from memory.scope import AgentMemoryContext, memory_context
from memory.store import MemoryStore
from memory.tables.notes import NoteStore
from tests.support.models import Acting, results

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).parents[3] / "data" / "mcp" / "desk_server.py"
LIMITS = TimeLimits(connect_s=60, call_s=3, first_retry_s=0.05, longest_retry_s=0.2)
CONTEXT = memory_context(chat_id="oc_1", root="om_1", subject="ou_a", actor="ou_a")


class NoRpc:
    """A memory that no test here should reach."""

    async def call(self, function: str, params: Any, context: AgentMemoryContext | None) -> Any:
        raise AssertionError(f"{function} was called")

    async def close(self) -> None:
        pass


def _stdio(board: Path, **options: Any) -> McpServer:
    options = {"confirm": False, **options}
    return McpServer(
        "desk", command=sys.executable, args=(str(SERVER), "stdio", str(board)), **options
    )


@asynccontextmanager
async def _running(*servers: McpServer, limits: TimeLimits = LIMITS) -> AsyncIterator[McpServers]:
    mcp = McpServers(servers, limits=limits)
    await mcp.start()
    try:
        await mcp.settled()
        yield mcp
    finally:
        await mcp.close()


@asynccontextmanager
async def _http_server(board: Path) -> AsyncIterator[tuple[int, asyncio.subprocess.Process]]:
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SERVER), "http", str(board), str(port),
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    while b"running on" not in await process.stderr.readline():
        assert process.returncode is None
    drained = asyncio.create_task(process.stderr.read())
    try:
        yield port, process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        await drained


def _calling(*calls: tuple[str, dict[str, Any]], seen: list[list[str]] | None = None) -> Model:
    """A model that makes the calls one after the other and then repeats the last result."""

    def step(request: Request) -> Any:
        if seen is not None:
            seen.append(list(request.tools))
        returned = results(request)
        if len(returned) < len(calls):
            return [calls[len(returned)]]
        return returned[-1] if returned else "nothing"

    return Acting(step)


def _servers(board: Path) -> list[psutil.Process]:
    """The processes below this one that were started with that board; others come and go."""
    found = []
    for one in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            found += [one] if str(board) in one.cmdline() else []
    return found


@pytest.fixture(scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[McpServers]:
    """A server over stdio, for the tests that leave it as they find it."""
    async with _running(_stdio(tmp_path_factory.mktemp("desk") / "board")) as mcp:
        yield mcp


async def _until(condition: Callable[[], bool]) -> None:
    """Waits for what a server does by itself and tells nobody."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def _manager(model: Any, mcp: McpServers, specialists: Sequence[Specialist] = ()) -> Manager:
    rpc = NoRpc()
    stores = Stores(MemoryStore(rpc), NoteStore(rpc))
    return Manager(model, stores=stores, mcp=mcp, specialists=specialists)


def _prompt(question: str = "go") -> Prompt:
    return Prompt(
        bot_name="Bot",
        question=question,
        history=(),
        subject="Alice",
        working_memory=WorkingMemory(),
        now=datetime(2026, 11, 20, tzinfo=UTC),
        context=CONTEXT,
    )


async def test_a_tool_of_a_stdio_server_is_called_and_recorded(desk: McpServers) -> None:
    answer = await _manager(_calling(("desk__add", {"a": 2, "b": 3})), desk).answer(
        _prompt(), timeout_s=20
    )

    assert answer.text == "5"
    [call] = answer.tool_calls
    assert (call["name"], call["arguments"], call["ok"]) == ("desk__add", {"a": 2, "b": 3}, True)


async def test_a_server_that_is_down_is_skipped_and_the_other_works(tmp_path: Path) -> None:
    missing = McpServer("gone", command="/no/such/program")
    seen: list[list[str]] = []
    async with _running(missing, _stdio(tmp_path / "board")) as mcp:
        assert mcp.connected() == {"gone": False, "desk": True}
        answer = await _manager(_calling(("desk__add", {"a": 1, "b": 1}), seen=seen), mcp).answer(
            _prompt(), timeout_s=20
        )

    assert answer.text == "2"
    assert not any(name.startswith("gone__") for name in seen[0])


async def test_an_http_server_that_dies_is_reported_and_skipped_afterwards(tmp_path: Path) -> None:
    async with _http_server(tmp_path / "board") as (port, process):
        web = McpServer("web", url=f"http://127.0.0.1:{port}/mcp", confirm=False)
        async with _running(web) as mcp:
            alive = await _manager(_calling(("web__add", {"a": 20, "b": 3})), mcp).answer(
                _prompt(), timeout_s=20
            )
            process.kill()
            await process.wait()
            dead = await _manager(_calling(("web__add", {"a": 1, "b": 1})), mcp).answer(
                _prompt(), timeout_s=20
            )
            connected = mcp.connected()
            seen: list[list[str]] = []
            await _manager(_calling(seen=seen), mcp).answer(_prompt(), timeout_s=20)

    assert alive.text == "23"
    assert "not reachable" in dead.text
    assert dead.tool_calls[0]["ok"] is False
    assert connected == {"web": False}
    assert not any(name.startswith("web__") for name in seen[0])


async def test_a_stdio_server_that_dies_in_a_call_comes_back(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    async with _running(_stdio(tmp_path / "board")) as mcp:
        died = await _manager(_calling(("desk__die", {}), seen=seen), mcp).answer(
            _prompt(), timeout_s=20
        )
        await asyncio.wait_for(mcp.reached("desk"), 60)
        again = await _manager(_calling(("desk__add", {"a": 4, "b": 4})), mcp).answer(
            _prompt(), timeout_s=20
        )

    assert died.tool_calls[0]["ok"] is False
    assert "desk__add" in seen[0]
    assert seen[0] == seen[1], "a turn has the same tools to its end"
    assert again.text == "8"


async def test_a_stdio_server_that_dies_between_calls_comes_back(tmp_path: Path) -> None:
    board = tmp_path / "board"
    with capture_logs() as logs:
        async with _running(_stdio(board)) as mcp:
            server = _servers(board)[-1]  # below its relay
            server.kill()
            await _until(lambda: [one["event"] for one in logs].count("mcp.connected") == 2)
            answer = await _manager(_calling(("desk__add", {"a": 4, "b": 4})), mcp).answer(
                _prompt(), timeout_s=20
            )

    assert answer.text == "8"


async def test_a_tool_that_a_server_has_learned_is_there_later(tmp_path: Path) -> None:
    limits = replace(LIMITS, watch_s=0.1)
    async with _running(_stdio(tmp_path / "board"), limits=limits) as mcp:
        box = mcp.tools()
        assert mcp.tools() is box, "the same box while nothing changes"
        await _manager(_calling(("desk__learn", {})), mcp).answer(_prompt(), timeout_s=20)
        await _until(lambda: "desk__learned" in mcp.tools())
        answer = await _manager(_calling(("desk__learned", {})), mcp).answer(
            _prompt(), timeout_s=20
        )

    assert answer.text == "I know"


async def test_a_call_that_the_server_does_not_take_leaves_it_connected(desk: McpServers) -> None:
    answer = await _manager(
        _calling(("desk__add", {"a": "x"}), ("desk__add", {"a": 1, "b": 1})), desk
    ).answer(_prompt(), timeout_s=20)
    assert desk.connected() == {"desk": True}

    assert [call["ok"] for call in answer.tool_calls] == [False, True]


async def test_a_call_that_hangs_ends_at_its_time_limit(tmp_path: Path) -> None:
    async with _running(_stdio(tmp_path / "board")) as mcp:
        mcp_call = _manager(_calling(("desk__hang", {})), mcp).answer(_prompt(), timeout_s=20)
        answer = await asyncio.wait_for(mcp_call, 60)

    assert "did not answer within 3 s" in answer.text


async def test_a_tool_that_refuses_is_told_to_the_model(desk: McpServers) -> None:
    answer = await _manager(_calling(("desk__refuse", {})), desk).answer(_prompt(), timeout_s=20)

    assert "closed" in answer.text
    assert answer.tool_calls[0]["ok"] is False


async def test_a_tool_to_confirm_waits_and_is_done_once(tmp_path: Path) -> None:
    board, call = tmp_path / "board", ("desk__publish", {"text": "hello"})
    async with _running(_stdio(board, confirm=True)) as mcp:
        answer = await _manager(_calling(call, call), mcp).answer(
            _prompt("publish hello"), timeout_s=20
        )
        assert not board.exists()
        [action] = answer.pending_actions
        async with _running(McpServer("desk", command="/no/such/program")) as down:
            with pytest.raises(ServerDown):
                await down.run_pending(action)
            with pytest.raises(ServerDown, match="no longer configured"):
                await down.run_pending(replace(action, tool="other__publish"))
        result = await mcp.run_pending(action)
        with pytest.raises(ActionAlreadyRun):
            await mcp.run_pending(action)

    assert (action.tool, action.arguments) == ("desk__publish", {"text": "hello"})
    assert (action.actor_id, action.conversation_id) == ("ou_a", CONTEXT.conversation_id)
    assert "hello" in action.description
    assert answer.tool_calls[0]["result"].startswith("Not done yet")
    assert result.ok
    assert "post_5" in result.text
    assert board.read_text(encoding="utf-8") == "hello\n"


async def test_for_words_of_a_model_only_a_read_only_tool_runs_at_once(tmp_path: Path) -> None:
    board = tmp_path / "board"
    calls = (("desk__add", {"a": 1, "b": 2}), ("desk__publish", {"text": "hello"}))
    async with _running(_stdio(board)) as mcp:
        prompt = replace(_prompt("publish hello"), words_of_model=True)
        answer = await _manager(_calling(*calls), mcp).answer(prompt, timeout_s=20)
        added, published = answer.tool_calls
        assert added["result"] == 3
        assert published["result"].startswith("Not done yet")
        assert not board.exists()
        [action] = answer.pending_actions
        assert (await mcp.run_pending(action)).ok

    assert board.read_text(encoding="utf-8") == "hello\n"


async def test_a_specialist_sees_only_the_tools_it_lists(desk: McpServers) -> None:
    seen: list[list[str]] = []
    helper = Specialist("helper", "helps", "Help.", tools=("desk__add", "current_time"))
    model = _calling(("ask_specialist", {"name": "helper", "task": "t"}), seen=seen)
    await _manager(model, desk, [helper]).answer(_prompt(), timeout_s=20)

    assert ["current_time", "desk__add"] in [sorted(names) for names in seen]
    assert {"desk__add", "desk__publish"} <= set(seen[0])
