"""MCP servers whose names, schemas and sessions are not as models and endpoints need them."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.agents.mcp.config import McpServer
from bot.agents.mcp.servers import McpServers
from bot.agents.prompts.prompt import PendingAction
from bot.operations.doctor.checks import mcp_checks
from bot.settings import Settings
from tests.integration.bot.agents.test_mcp_servers import _calling, _manager, _prompt, _running
from tests.support.forgetful_mcp import forgetful_server

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).parents[3] / "data" / "mcp" / "quirks_server.py"
LONG = "records_of_the_department_for_visitors_and_their_badges_"
OBJECT: dict[str, Any] = {"type": "object", "properties": {}}


def odd(
    *tools: dict[str, Any], answers: dict[str, dict[str, Any]] | None = None, **options: Any
) -> McpServer:
    options = {"confirm": False, **options}
    arguments = (str(SERVER), json.dumps(tools), json.dumps(answers or {}))
    return McpServer("desk", command=sys.executable, args=arguments, **options)


def action(tool: str) -> PendingAction:
    return PendingAction("a1", tool, {}, "Do it", "ou_a", "c1")


def named(*names: str) -> list[dict[str, Any]]:
    return [{"name": one, "description": one, "inputSchema": OBJECT} for one in names]


async def called(mcp: McpServers, public: str) -> str:
    answer = await _manager(_calling((public, {})), mcp).answer(_prompt(), timeout_s=20)
    return answer.text


@pytest.mark.parametrize(
    "names",
    [
        (LONG + "create_one", LONG + "create_all", LONG + "crush"),
        ("badge.get", "badge/get", "badge_get", "badge get"),
        ("查询", "删除", "____"),
        ("x" * 200, "x" * 201),
        ("badge_get_9288eaf9", "badge.get", "badge_get"),
    ],
)
async def test_names_that_would_be_equal_call_their_own_tools(names: tuple[str, ...]) -> None:
    async with _running(odd(*named(*names))) as mcp:
        described = json.loads(mcp.tools().json)
        publics = [one["function"]["name"] for one in described]
        meant = [one["function"]["description"] for one in described]
        done = [await called(mcp, public) for public in publics]

    assert len(set(publics)) == len(names)
    assert all(len(one) <= 64 for one in publics)
    assert meant == list(names)
    assert done == [f"did {one}" for one in names]


async def test_a_name_is_the_same_whatever_else_the_server_has() -> None:
    async with _running(odd(*named("badge.get"))) as alone:
        [public] = alone.tools()
    async with _running(odd(*named("badge_get", "badge.get"))) as together:
        assert await called(together, public) == "did badge.get"


async def test_a_name_that_the_server_no_longer_has_calls_nothing() -> None:
    async with _running(odd(*named("badge.get"))) as mcp:
        result = await mcp.run_pending(action("desk__badge"))
    assert not result.ok
    assert "no longer has the tool" in result.text


async def test_a_tool_that_cannot_be_offered_costs_itself_only() -> None:
    tools = [
        {"name": "good", "inputSchema": OBJECT},
        {"name": "any_of", "inputSchema": {"anyOf": [{"properties": {"id": {"type": "string"}}}]}},
        {"name": "string", "inputSchema": {"type": "string"}},
        {"name": "no_type", "inputSchema": {}},
        {"name": "none"},
        {"name": "no_items", "inputSchema": {"properties": {"list": {"type": "array"}}}},
        {"name": 7, "inputSchema": OBJECT},
        {"name": "odd_text", "description": 7, "annotations": "x", "inputSchema": OBJECT},
    ]
    with capture_logs() as logs:
        async with _running(odd(*tools)) as mcp:
            described = json.loads(mcp.tools().json)
            left_out = mcp.left_out()
            done = await called(mcp, "desk__no_type")

    offered = {one["function"]["name"]: one["function"]["parameters"] for one in described}
    assert list(offered) == [
        f"desk__{one}" for one in ("good", "any_of", "no_type", "none", "no_items", "odd_text")
    ]
    assert all(one["type"] == "object" for one in offered.values())
    assert offered["desk__no_items"]["properties"]["list"]["items"] == {}
    assert done == "did no_type"
    assert left_out == {"desk": {"string": "its input is no object", "(no name)": "it has no name"}}
    assert {one["tool"] for one in logs if one["event"] == "mcp.tool_left_out"} == {
        "string",
        "(no name)",
    }


@pytest.mark.parametrize(
    "refusal",
    [
        (404, "Session not found"),
        (404, ""),
        (400, "Bad Request: No valid session ID provided"),
        (410, "gone"),
    ],
)
async def test_a_server_that_forgot_the_session_is_asked_in_a_new_one(
    refusal: tuple[int, str],
) -> None:
    with forgetful_server(refusal) as server:
        async with _running(McpServer("desk", url=server.url, confirm=False)) as mcp:
            assert await called(mcp, "desk__room") == "room OAK"
            server.sessions.clear()
            assert await called(mcp, "desk__room") == "room OAK"
            server.sessions.clear()
            booked = await mcp.run_pending(action("desk__book"))
            server.sessions.clear()
            both = await asyncio.gather(called(mcp, "desk__room"), called(mcp, "desk__room"))

    assert booked.ok
    assert both == ["room OAK", "room OAK"]
    assert server.done["book"] == 1
    assert server.done["room"] == 4


@pytest.mark.parametrize("way", ["breaks off", "says it with status 200", "says it in an event"])
async def test_where_the_outcome_is_unknown_only_what_reads_is_called_again(way: str) -> None:
    """The server answers a GET with 404, too, as those do that send no messages by themselves."""
    with forgetful_server((200, "Session expired")) as server:
        server.refuses_in_events = way == "says it in an event"

        def trouble() -> None:
            if way == "breaks off":
                server.breaks_off = 1
            else:
                server.sessions.clear()

        async with _running(McpServer("desk", url=server.url, confirm=False)) as mcp:
            trouble()
            assert await called(mcp, "desk__room") == "room OAK"
            trouble()
            booked = await mcp.run_pending(action("desk__book"))

    assert not booked.ok
    assert server.done["book"] == (way == "breaks off")


@pytest.mark.parametrize("cursor", ["", "again"])
async def test_a_server_whose_pages_never_end_is_asked_for_two(cursor: str) -> None:
    with forgetful_server() as server:
        server.listing = {"nextCursor": cursor}
        async with _running(McpServer("desk", url=server.url, confirm=False)) as mcp:
            assert await called(mcp, "desk__room") == "room OAK"
    assert server.done["tools/list"] == 2


async def test_an_error_of_the_server_ends_nothing_and_is_told_whole() -> None:
    error = {"code": -32000, "message": "the desk is closed", "data": {"ask": "Lin"}}
    async with _running(odd(*named("room"), answers={"room": {"error": error}})) as mcp:
        first = await called(mcp, "desk__room")
        assert mcp.connected() == {"desk": True}
    assert 'the desk is closed {"ask": "Lin"}' in first


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"error": {"code": -32603}}, '{"code": -32603}'),
        ({"error": {"code": None, "message": "ask Lin"}}, "ask Lin"),
        ({"error": {"code": "E_CLOSED", "message": "ask Lin", "data": [7]}}, "E_CLOSED"),
        ({"error": {"code": 1.5, "message": ["ask", "Lin"]}}, '["ask", "Lin"]'),
        ({"error": "ask Lin"}, "refused the call: ask Lin"),
        ({"error": ["ask", "Lin"]}, '["ask", "Lin"]'),
        ({"error": None}, "neither a result nor an error"),
        ({"error": "ask Lin", "result": None}, "ask Lin"),
        ({"result": "OAK"}, "OAK"),
        ({"result": ["OAK", 3]}, "OAK"),
        ({"jsonrpc": "1.0", "result": {"content": [{"type": "text", "text": "OAK"}]}}, "OAK"),
    ],
)
async def test_an_answer_of_an_odd_form_is_told_at_once(answer: dict[str, Any], told: str) -> None:
    async with _running(odd(*named("room"), answers={"room": answer})) as mcp:
        begun = asyncio.get_running_loop().time()
        words = await called(mcp, "desk__room")
        assert asyncio.get_running_loop().time() - begun < 10
        assert mcp.connected() == {"desk": True}
    assert told in words


@pytest.mark.parametrize("odd_answer", [{"error": {"code": 7}}, {"result": "OAK"}])
async def test_what_cannot_be_read_over_http_may_have_been_done(odd_answer: dict[str, Any]) -> None:
    with forgetful_server() as server:
        async with _running(McpServer("desk", url=server.url, confirm=False)) as mcp:
            server.odd = odd_answer
            booked = await mcp.run_pending(action("desk__book"))
    assert not booked.ok
    assert "whether it was done is unknown" in booked.text
    assert server.done["book"] == 1


async def test_a_result_of_an_odd_form_arrives_and_ends_nothing() -> None:
    blocks = ["OAK", {"type": "video", "uri": "https://x.test/v"}, {"type": "text", "text": None}]
    result = {"content": blocks, "structuredContent": ["ELM"], "isError": None}
    async with _running(odd(*named("room"), answers={"room": {"result": result}})) as mcp:
        assert "OAK" in (done := await called(mcp, "desk__room"))
        assert "https://x.test/v" in done
        assert "ELM" in done
        assert mcp.connected() == {"desk": True}


def test_the_doctor_names_the_tools_that_cannot_be_offered(tmp_path: Path) -> None:
    tools = [*named("good"), {"name": "bad", "inputSchema": {"type": "string"}}]
    entry = {"command": sys.executable, "args": [str(SERVER), json.dumps(tools)]}
    file = tmp_path / "mcp.json"
    servers = {"desk": entry, "gone": {"command": "/no/such/program"}}
    file.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")

    desk, gone = mcp_checks(Settings(mcp_config=file))

    assert (desk.state, gone.state) == ("warn", "fail")
    assert "bad: its input is no object" in desk.sentence.en
    assert "gone cannot be reached" in gone.sentence.en
