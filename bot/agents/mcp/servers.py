"""Tools of outside servers (MCP, https://modelcontextprotocol.io), by way of PydanticAI.

Each server has a connection that is opened, watched and reopened in the background. A server that
is down has no tools and costs a turn nothing; a call to it has a time limit. Tools are named
`server__tool`. A tool marked `confirm` is not executed but noted as a pending action.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import structlog
from pydantic_ai import RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from bot.agents.mcp.config import McpServer
from bot.agents.prompt import PendingAction
from bot.agents.tools.confirming import wait_for_confirmation
from bot.agents.tools.deps import ToolDeps
from bot.agents.tools.recording import storable

if TYPE_CHECKING:
    from pydantic_ai.mcp import MCPToolset

log = structlog.get_logger()

Tools = dict[str, ToolsetTool[ToolDeps]]

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64  # OpenAI, function names
_REMEMBERED_ACTIONS = 1000
_CLOSE_S = 5.0


class ActionAlreadyRun(Exception):
    """The pending action was executed before; it is done once."""


class ServerDown(Exception):
    """The server of the tool is not connected, so nothing was executed; try again later."""


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What came of a confirmed action; not `ok`: the server refused, or the outcome is unknown."""

    ok: bool
    text: str


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Seconds. `watch_s` is how often an idle connection is looked at."""

    connect_s: float = 15.0
    list_s: float = 3.0
    call_s: float = 25.0
    watch_s: float = 15.0
    first_retry_s: float = 1.0
    longest_retry_s: float = 120.0


_DEFAULT_LIMITS = TimeLimits()


class McpServers(AbstractToolset[ToolDeps]):
    """The tools of all connected servers. `await start()` once, `await close()` at the end."""

    def __init__(
        self, servers: Sequence[McpServer], *, limits: TimeLimits = _DEFAULT_LIMITS
    ) -> None:
        self._connections = {one.name: _Connection(one, limits) for one in servers}
        self._ran: OrderedDict[str, None] = OrderedDict()

    @property
    def id(self) -> str:
        return "mcp"

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
        return {name: one.toolset is not None for name, one in self._connections.items()}

    async def reached(self, server: str) -> None:
        """Waits until `server` is connected."""
        await self._connections[server].up.wait()

    async def close(self) -> None:
        """Ends all connections and the servers this process started."""
        await asyncio.gather(*(one.close() for one in self._connections.values()))

    async def get_tools(self, ctx: RunContext[ToolDeps]) -> Tools:
        """The same throughout a turn: PydanticAI announces a change in a system message after the
        others, which confuses models and which some endpoints refuse."""
        if ctx.deps.outside is None:
            ctx.deps.outside = await self._tools(ctx)
        return ctx.deps.outside

    async def _tools(self, ctx: RunContext[ToolDeps]) -> Tools:
        tools: Tools = {}
        for connection in self._connections.values():
            for name, tool in (await connection.tools(ctx)).items():
                tools[name] = replace(tool, toolset=self)
        return tools

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[ToolDeps],
        tool: ToolsetTool[ToolDeps],
    ) -> Any:
        connection = self._connection(name)
        if connection.needs_confirmation(name):
            return wait_for_confirmation(name, storable(tool_args), ctx.deps)
        try:
            return await connection.call(name, tool_args)
        except ServerDown as exc:
            raise ToolFailed(f"{exc} Tell the person that this is not possible now.") from exc

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
            result = storable(await connection.call(action.tool, dict(action.arguments)))
        except (ToolFailed, ServerDown) as exc:
            return ActionResult(False, str(exc))
        return ActionResult(True, result if isinstance(result, str) else _json(result))

    def _connection(self, tool: str) -> _Connection:
        server = tool.partition("__")[0]
        if server not in self._connections:
            raise ServerDown(f"The server {server!r} is no longer configured.")
        return self._connections[server]


class _Connection:
    """One server, kept connected by a task of its own."""

    def __init__(self, server: McpServer, limits: TimeLimits) -> None:
        self.tried = asyncio.Event()
        self.up = asyncio.Event()
        self.toolset: MCPToolset[ToolDeps] | None = None
        self._server = server
        self._limits = limits
        self._broken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._listed: Tools = {}
        self._original: dict[str, str] = {}

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep(), name=f"mcp {self._server.name}")

    async def close(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=_CLOSE_S)

    def require(self) -> MCPToolset[ToolDeps]:
        if self.toolset is None:
            raise ServerDown(f"The server {self._server.name} is not reachable.")
        return self.toolset

    def needs_confirmation(self, name: str) -> bool:
        """A name in `confirm` that the server does not have guards all of its tools."""
        confirm = self._server.confirm
        if isinstance(confirm, bool):
            return confirm
        mistyped = not confirm <= set(self._original.values())
        return mistyped or self._original.get(name, name) in confirm

    async def tools(self, ctx: RunContext[ToolDeps]) -> Tools:
        """The tools by their namespaced name; none while the server is down."""
        if self.toolset is None:
            return {}
        try:
            async with asyncio.timeout(self._limits.list_s):
                found = await self.toolset.get_tools(ctx)
        except Exception as exc:  # noqa: BLE001 -- a server may break in any way, a turn may not
            self._lost(exc)
            return {}
        if found.keys() != set(self._original.values()):
            self._original = {self._public(name): name for name in found}
        return {
            public: replace(tool, tool_def=replace(tool.tool_def, name=public))
            for public, name in self._original.items()
            if (tool := found.get(name))
        }

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """The tool's result. Raises `ToolFailed` and `ServerDown`."""
        toolset = self.require()
        try:
            async with asyncio.timeout(self._limits.call_s):
                return await toolset.direct_call_tool(self._original.get(name, name), arguments)
        except ToolFailed:
            raise
        except TimeoutError as exc:
            raise ToolFailed(
                f"{name} did not answer within {self._limits.call_s:g} s; whether it was done is "
                "unknown. Say so."
            ) from exc
        except Exception as exc:
            self._lost(exc)
            raise ToolFailed(
                f"The server {self._server.name} broke off; whether {name} was done is unknown. "
                "Say so."
            ) from exc

    def _public(self, name: str) -> str:
        public = _NOT_IN_NAMES.sub("_", f"{self._server.name}__{name}")
        return public[:_LONGEST_NAME]

    def _lost(self, exc: Exception) -> None:
        log.warning("mcp.connection_lost", server=self._server.name, error=type(exc).__name__)
        self._down()
        self._broken.set()

    def _down(self) -> None:
        self.toolset = None
        self.up.clear()

    async def _keep(self) -> None:
        wait_s = self._limits.first_retry_s
        while True:
            try:
                await self._hold()
                wait_s = self._limits.first_retry_s
            except Exception as exc:  # noqa: BLE001 -- the outermost loop of the connection
                log.warning(
                    "mcp.server_down",
                    server=self._server.name,
                    error=type(exc).__name__,
                    retry_in_s=wait_s,
                    next_step="check the entry in mcp.json and that the server runs",
                )
            finally:
                self._down()
                self.tried.set()
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, self._limits.longest_retry_s)

    async def _hold(self) -> None:
        """Connects and returns when the connection is no more."""
        self._broken.clear()
        toolset = await _toolset(self._server, self._limits)
        async with contextlib.AsyncExitStack() as stack:
            async with asyncio.timeout(self._limits.connect_s):
                await stack.enter_async_context(toolset)
                listed = await toolset.list_tools()
            self._original = {self._public(tool.name): tool.name for tool in listed}
            self.toolset = toolset
            self.up.set()
            log.info("mcp.connected", server=self._server.name, tools=len(listed))
            self.tried.set()
            while toolset.client.is_connected() and not self._broken.is_set():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._limits.watch_s):
                        await self._broken.wait()


async def _toolset(server: McpServer, limits: TimeLimits) -> MCPToolset[ToolDeps]:
    # 40 MB and seconds of imports that a bot without servers does not need.
    mcp = await asyncio.to_thread(importlib.import_module, "pydantic_ai.mcp")
    options: dict[str, Any] = {
        "id": server.name,
        "tool_error_behavior": "failed",
        "init_timeout": limits.connect_s,
        "read_timeout": limits.call_s,
    }
    if server.url:
        made = mcp.MCPToolset(server.url, headers=dict(server.headers) or None, **options)
    else:
        transport = mcp.StdioTransport(
            command=server.command,
            args=list(server.args),
            env=dict(server.env) or None,
            cwd=server.cwd,
            keep_alive=False,
        )
        made = mcp.MCPToolset(transport, **options)
    toolset: MCPToolset[ToolDeps] = made
    return toolset


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
