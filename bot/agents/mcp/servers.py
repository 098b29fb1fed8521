"""Tools of outside servers (MCP, https://modelcontextprotocol.io), by the official `mcp` package.

A server that is down has no tools and costs a turn nothing; a call to it has a time limit. Tools
are named `server__tool`. A tool marked `confirm` is not executed but noted as a pending action.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bot.agents.mcp.config import McpServer
from bot.agents.mcp.connection import ServerConnection, ServerDown, TimeLimits
from bot.agents.prompts.prompt import PendingAction
from bot.agents.tool_types.tool import NO_TOOLS, Toolbox, ToolFailed
from bot.agents.tools.confirming import wait_for_confirmation
from bot.agents.tools.recording import as_stored

if TYPE_CHECKING:
    from bot.agents.tools.deps import ToolDeps

__all__ = ["ActionAlreadyRun", "ActionResult", "McpServers", "ServerDown", "TimeLimits"]

_REMEMBERED_ACTIONS = 1000
_DEFAULT_LIMITS = TimeLimits()


class ActionAlreadyRun(Exception):
    """The pending action was executed before; it is done once."""


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What came of a confirmed action; not `ok`: the server refused, or the outcome is unknown."""

    ok: bool
    text: str


class McpServers:
    """The tools of all connected servers. `await start()` once, `await close()` at the end."""

    def __init__(
        self, servers: Sequence[McpServer], *, limits: TimeLimits = _DEFAULT_LIMITS
    ) -> None:
        self._connections = {one.name: ServerConnection(one, limits, self._call) for one in servers}
        self._ran: OrderedDict[str, None] = OrderedDict()
        self._boxes: list[Toolbox] = []
        self._all = NO_TOOLS

    async def start(self) -> None:
        """Begins to connect and returns at once: a server that is down holds nothing up."""
        for connection in self._connections.values():
            connection.start()

    async def settled(self) -> dict[str, bool]:
        """Waits until each server was tried once; whether it is connected, by name."""
        for connection in self._connections.values():
            await connection.tried.wait()
        return self.connected()

    def connected(self) -> dict[str, bool]:
        """Whether each server is connected right now."""
        return {name: one.connected for name, one in self._connections.items()}

    def left_out(self) -> dict[str, dict[str, str]]:
        """The tools that cannot be offered to a model, and why, by server and name."""
        reasons = {name: one.left_out for name, one in self._connections.items()}
        return {name: tools for name, tools in reasons.items() if tools}

    async def reached(self, server: str) -> None:
        """Waits until `server` is connected."""
        await self._connections[server].up.wait()

    async def close(self) -> None:
        """Ends all connections and the servers this process started."""
        await asyncio.gather(*(one.close() for one in self._connections.values()))

    def tools(self) -> Toolbox:
        """The tools there are now; the same box as before unless they have changed."""
        boxes = [connection.tools for connection in self._connections.values()]
        if boxes != self._boxes:
            self._boxes = boxes
            self._all = Toolbox(box[name] for box in boxes for name in box)
        return self._all

    async def run_pending(self, action: PendingAction) -> ActionResult:
        """Executes a confirmed action, once. Who may confirm it is checked by who keeps it.

        Raises `ActionAlreadyRun`, and `ServerDown` when nothing was executed.
        """
        connection = self._connection(action.tool)
        if action.id in self._ran:
            raise ActionAlreadyRun(action.id)
        connection.require()
        self._ran[action.id] = None
        if len(self._ran) > _REMEMBERED_ACTIONS:
            self._ran.popitem(last=False)
        try:
            result = as_stored(await connection.call(action.tool, dict(action.arguments)))
        except (ToolFailed, ServerDown) as exc:
            return ActionResult(False, str(exc))
        return ActionResult(True, result if isinstance(result, str) else _json(result))

    async def _call(self, name: str, deps: ToolDeps, arguments: dict[str, Any]) -> Any:
        connection = self._connection(name)
        if connection.needs_confirmation(name):
            return wait_for_confirmation(name, as_stored(arguments), deps)
        try:
            return await connection.call(name, arguments)
        except ServerDown as exc:
            raise ToolFailed(f"{exc} Tell the person that this is not possible now.") from exc

    def _connection(self, tool: str) -> ServerConnection:
        server = tool.partition("__")[0]
        if server not in self._connections:
            raise ServerDown(f"The server {server!r} is no longer configured.")
        return self._connections[server]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
