"""Feishu's own MCP server between this bot and the stand-in platform. None of its tools declares
that it only reads, so each waits for a person's consent.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.agents.mcp.config import McpServer
from bot.agents.mcp.servers import McpServers
from lab.doubles.processes import APP, PlatformDouble
from tests.contract.test_official_long_connection import install_from_npm, platform
from tests.integration.bot.agents.test_mcp_servers import _calling, _manager, _prompt, _running

pytestmark = pytest.mark.anyio
__all__ = ["platform"]

PACKAGE = "@larksuiteoapi/lark-mcp@0.5.1"
TOOLS = ("im.v1.chat.list", "im.v1.message.create", "im.v1.message.list")


@pytest.fixture
def lark_mcp(platform: PlatformDouble, tmp_path: Path) -> McpServer:
    program = Path(install_from_npm(tmp_path, PACKAGE), "@larksuiteoapi/lark-mcp/dist/cli.js")
    app = ("-a", APP["FEISHU_APP_ID"], "-s", APP["FEISHU_APP_SECRET"], "-d", platform.url)
    arguments = (str(program), "mcp", *app, "-t", ",".join(TOOLS))
    return McpServer("lark", command="node", args=arguments, env={"HOME": str(tmp_path)})


async def asked(mcp: McpServers, tool: str, **arguments: Any) -> Any:
    """The action that waits after the model's call of the tool."""
    model = _calling((tool, arguments))
    answer = await _manager(model, mcp).answer(_prompt(), timeout_s=20)
    assert answer.tool_calls[0]["result"].startswith("Not done yet")
    [action] = answer.pending_actions
    return action


async def test_its_tools_are_offered_whole_and_wait_for_consent(
    platform: PlatformDouble, lark_mcp: McpServer
) -> None:
    chat = next(one["chat_id"] for one in platform.state()["chats"] if one["name"] == "Launch team")
    said = {"receive_id": chat, "msg_type": "text", "content": json.dumps({"text": "to all"})}
    async with _running(lark_mcp) as mcp:
        tools, left_out = list(mcp.tools()), mcp.left_out()
        listing = await asked(mcp, "lark__im_v1_chat_list", params={"page_size": 20})
        listed = await mcp.run_pending(listing)
        sending = await asked(
            mcp, "lark__im_v1_message_create", params={"receive_id_type": "chat_id"}, data=said
        )
        before = platform.messages(chat)
        sent = await mcp.run_pending(sending)
        wrong = await asked(
            mcp,
            "lark__im_v1_message_list",
            params={"container_id_type": "chat", "container_id": "oc_none"},
        )
        refused = await mcp.run_pending(wrong)

    assert (sorted(tools), left_out) == (
        [f"lark__{one.replace('.', '_')}" for one in TOOLS],
        {},
    )
    assert listed.ok
    assert chat in listed.text
    assert not any(one["text"] == "to all" for one in before)
    assert sent.ok
    assert any(one["text"] == "to all" for one in platform.messages(chat))
    assert not refused.ok
