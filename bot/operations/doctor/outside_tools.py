"""Checks the MCP servers of `mcp.json`: whether each connects, and which tools it cannot offer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from bot.agents.mcp.config import McpConfigInvalid, McpServer
from bot.agents.mcp.servers import McpServers, TimeLimits
from bot.agents.operator_files import load_own_servers
from bot.operations.doctor.result import Check, fail, ok, warn
from bot.settings import Settings

_LIMITS = TimeLimits(connect_s=10.0, list_s=3.0)
_MOST_NAMED = 5


def outside_tools(settings: Settings) -> Sequence[Check]:
    """One line for each server; none if there are no servers, or the settings name the mistake."""
    try:
        servers = load_own_servers(settings)
    except McpConfigInvalid:
        return []
    return asyncio.run(_looked_at(servers)) if servers else []


async def _looked_at(servers: Sequence[McpServer]) -> list[Check]:
    running = McpServers(servers, limits=_LIMITS)
    await running.start()
    try:
        connected_servers, left_out = await running.settled(), running.left_out()
        return [
            _of(name, there, left_out.get(name, {})) for name, there in connected_servers.items()
        ]
    finally:
        await running.close()


def _of(server: str, there: bool, left_out: Mapping[str, str]) -> Check:
    if not there:
        return fail(
            "tools",
            f"The MCP server {server} cannot be reached. Check its entry in mcp.json.",
            f"连不上 MCP 服务器 {server}。请检查 mcp.json 中的配置。",
        )
    if left_out:
        reasons = "; ".join(f"{name}: {why}" for name, why in [*left_out.items()][:_MOST_NAMED])
        return warn(
            "tools",
            f"The MCP server {server} has tools that models cannot be given, {len(left_out)} in "
            f"all ({reasons}). Its other tools work.",
            f"MCP 服务器 {server} 有 {len(left_out)} 个工具无法提供给模型（{reasons}），"
            "其余工具可用。",
        )
    return ok("tools", f"The MCP server {server} is connected.", f"已连上 MCP 服务器 {server}。")
