"""Offers the tools of MCP servers and keeps each server connected in the background.

A server that is down has no tools and costs a turn nothing; a call to it has a time limit. Tools
are named `server__tool`. A tool marked `confirm` is not executed but noted as a pending action."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog

from bot.agents.mcp.config import McpServer
from bot.agents.mcp.translation import public_names, result_value
from bot.agents.prompts.prompt import PendingAction
from bot.agents.tool_types import NO_TOOLS, Tool, Toolbox, ToolFailed
from bot.agents.tools.confirming import wait_for_confirmation
from bot.agents.tools.tool_calls import as_stored
from bot.process.concurrency import without_slot

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import Tool as Listed

    from bot.agents.tools.deps import ToolDeps

log = structlog.get_logger()
Call = Callable[[str, "ToolDeps", dict[str, Any]], Awaitable[Any]]
"""Calls a tool by its public name for a turn. Raises `ToolFailed`."""
_LONGEST_REASON = 2000
_CLOSE_S = 10.0  # the package takes up to 6.5 s to end a server
_CONNECTION_CLOSED = -32000  # MCP, JSON-RPC error codes
_UNREADABLE = -32700  # also what the package below makes of an answer that it refuses over HTTP
_FORGOTTEN = -32090  # as `opening` marks it
_NO_SESSION = re.compile(
    r"\bsession\b.{0,20}(?:not found|expired|terminated|ended|closed|invalid|unknown)"
    r"|(?:no valid|invalid|unknown|expired|missing) session",
    re.IGNORECASE,
)

__all__ = ["ActionAlreadyRun", "ActionResult", "McpServers", "ServerDown", "TimeLimits"]
_REMEMBERED_ACTIONS = 1000


class _SessionLost(ToolFailed):
    """The session or the connection ended under a call. `nothing_done`: it was refused for that."""

    def __init__(self, said: str, *, nothing_done: bool = False) -> None:
        super().__init__(said)
        self.nothing_done = nothing_done


def _server_words(exc: Exception) -> str:
    """What a server said of an error, with the data beside it."""
    data = getattr(exc, "data", None)
    words = str(exc) if data is None else f"{exc} {data if isinstance(data, str) else _json(data)}"
    return words[:_LONGEST_REASON]


class ServerDown(Exception):
    """The server of the tool is not connected, so nothing was executed; try again later."""


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Seconds. `renew_s` is how long a call waits for a new session, `watch_s` how often the tools
    of a connection are listed again, `relist_s` how long after a server said that they changed: it
    may say so without end."""

    connect_s: float = 15.0
    list_s: float = 3.0
    call_s: float = 25.0
    renew_s: float = 5.0
    watch_s: float = 300.0
    relist_s: float = 1.0
    first_retry_s: float = 1.0
    longest_retry_s: float = 120.0


class ServerConnection:
    """One server. `tools` are those it has now, none while it is down.

    `call` is what a tool does when a model calls it.
    """

    def __init__(self, server: McpServer, limits: TimeLimits, call: Call) -> None:
        self.tried = asyncio.Event()
        self.up = asyncio.Event()
        self.tools = NO_TOOLS
        self._server = server
        self._limits = limits
        self._call = call
        self._client: Client | None = None
        self._ended = asyncio.Event()
        self._doubted = asyncio.Event()
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.left_out: dict[str, str] = {}
        self._unfit: dict[str, str] = {}
        self._renews = False
        self._original: dict[str, str] = {}
        self._described: Sequence[dict[str, Any]] = ()

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep(), name=f"mcp {self._server.name}")

    async def close(self) -> None:
        """A connection that is ending already is left to end: a cancellation leaks its server."""
        if self._task:
            self._closing.set()
            if not self._ended.is_set():
                self._task.cancel()
            _, pending = await asyncio.wait({self._task}, timeout=_CLOSE_S)
            for task in pending:
                task.cancel()

    @property
    def connected(self) -> bool:
        return self._client is not None

    def require(self) -> Client:
        if self._client is None:
            raise ServerDown(f"The server {self._server.name} is not reachable.")
        return self._client

    def needs_confirmation(self, name: str) -> bool:
        """True if the asker has to confirm a call of this tool.

        Without `confirm` in `mcp.json`, that is every tool that the server does not declare
        read-only. A name in `confirm` that the server does not have guards all of its tools.
        """
        confirm = self._server.confirm
        if confirm is None:
            return not self.tools[name].reads
        if isinstance(confirm, bool):
            return confirm
        is_mistyped = not confirm <= set(self._original.values())
        return is_mistyped or self._original.get(name, name) in confirm

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """The tool's result. Raises `ToolFailed` and `ServerDown`.

        A call is made once more in a new session where nothing was done, because the server no
        longer knew the session, or where it only reads.
        """
        client = self.require()
        reads = name in self.tools and self.tools[name].reads
        try:
            return await self._call_once(client, name, arguments)
        except _SessionLost as exc:
            if not (exc.nothing_done or reads):
                raise
        await self._begin_anew(client)
        return await self._call_once(self.require(), name, arguments)

    async def _begin_anew(self, client: Client) -> None:
        """Ends the session of `client`, and waits for the next one."""
        if self._client is client:
            self._down()
        if self._client is None:
            self._renews = True
            self._ended.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.renew_s):
                await self.up.wait()

    async def _call_once(self, client: Client, name: str, arguments: dict[str, Any]) -> Any:
        original = self._original.get(name)
        if original is None:
            raise ToolFailed(f"The server {self._server.name} no longer has the tool {name}.")
        try:
            async with asyncio.timeout(self._limits.call_s):
                with without_slot():
                    result = await client.call_tool(original, arguments)
        except TimeoutError as exc:
            raise ToolFailed(
                f"{name} did not answer within {self._limits.call_s:g} s; whether it was done is "
                "unknown. Say so."
            ) from exc
        except Exception as exc:
            raise self._call_failure(client, name, exc) from exc
        return result_value(result)

    def _call_failure(self, client: Client, name: str, exc: Exception) -> ToolFailed:
        """An error that the server told, or the end of the session or of the connection."""
        code, reason = getattr(exc, "code", _CONNECTION_CLOSED), _server_words(exc)
        if code == _FORGOTTEN:
            said = f"The server {self._server.name} refused the call: {reason}"
            return _SessionLost(said, nothing_done=True)
        is_lost = bool(self._server.url and _NO_SESSION.search(reason))
        kind = _SessionLost if is_lost else ToolFailed
        if code == _UNREADABLE:
            self._doubted.set()
            return kind(
                f"{name} answered in a form that cannot be read; whether it was done is unknown. "
                f"Say so. {reason}"
            )
        if code != _CONNECTION_CLOSED:
            self._doubted.set()
            return kind(f"The server {self._server.name} refused the call: {reason}")
        log.warning("mcp.connection_lost", server=self._server.name, error=type(exc).__name__)
        if self._client is client:
            self._down()
            self._ended.set()
        return _SessionLost(
            f"The server {self._server.name} broke off; whether {name} was done is unknown. Say so."
        )

    def _down(self) -> None:
        self._client = None
        self.tools = NO_TOOLS
        self.up.clear()

    async def _keep(self) -> None:
        wait_s = self._limits.first_retry_s
        while not self._closing.is_set():
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
            if self._renews:
                self._renews = False
                continue
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), wait_s)
            wait_s = min(wait_s * 2, self._limits.longest_retry_s)

    async def _hold(self) -> None:
        """Connects and returns when the connection is no more."""
        self._ended.clear()
        # 40 MB and a second of imports that a bot without servers does not need.
        mcp = await asyncio.to_thread(importlib.import_module, "bot.agents.mcp.opening")
        self._unfit.clear()
        client_context = mcp.opened(
            self._server,
            ended_event=self._ended,
            on_changed=self._doubted.set,
            left_out=self._unfit.update,
        )
        async with contextlib.AsyncExitStack() as stack:
            async with asyncio.timeout(self._limits.connect_s):
                client: Client = await stack.enter_async_context(client_context)
                self._offer(await mcp.listed(client))
            self._client = client
            self.up.set()
            log.info("mcp.connected", server=self._server.name, tools=len(self.tools))
            self.tried.set()
            while await self._still_there():
                async with asyncio.timeout(self._limits.list_s):
                    self._offer(await mcp.listed(client))

    async def _still_there(self) -> bool:
        """Waits until the tools are to be listed again; False when the connection has ended."""
        waiting = [asyncio.create_task(one.wait()) for one in (self._ended, self._doubted)]
        try:
            await asyncio.wait(
                waiting, timeout=self._limits.watch_s, return_when=asyncio.FIRST_COMPLETED
            )
            if self._doubted.is_set():
                await asyncio.wait(waiting[:1], timeout=self._limits.relist_s)
                self._doubted.clear()
        finally:
            for one in waiting:
                one.cancel()
        return not self._ended.is_set()

    def _offer(self, listed_tools: Sequence[Listed]) -> None:
        """Keeps the tools, as the same box when nothing has changed."""
        self._tell_left_out()
        descriptions = [one.model_dump(mode="json") for one in listed_tools]
        if descriptions == self._described and self.tools is not NO_TOOLS:
            return
        self._described = descriptions
        by_name = {one.name: one for one in reversed(listed_tools)}
        self._original = public_names(self._server.name, [one.name for one in listed_tools])
        self.tools = Toolbox(self._tool(public, by_name[n]) for public, n in self._original.items())

    def _tell_left_out(self) -> None:
        if self._unfit != self.left_out:
            self.left_out = dict(self._unfit)
            for name, reason in self.left_out.items():
                log.warning("mcp.tool_left_out", server=self._server.name, tool=name, reason=reason)

    def _tool(self, public: str, listed_tool: Listed) -> Tool:
        async def call(deps: ToolDeps, arguments: dict[str, Any]) -> Any:
            return await self._call(public, deps, arguments)

        hints = listed_tool.annotations
        return Tool(
            public,
            listed_tool.description or "",
            listed_tool.input_schema,
            call,
            reads=bool(hints and hints.read_only_hint),
        )


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
