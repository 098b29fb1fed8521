"""Opens clients of MCP servers with the official `mcp` package. It is loaded only when servers are
configured."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import sys
from asyncio import Event
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any, Self

import httpx2
import structlog
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    ErrorData,
    ToolListChangedNotification,
    jsonrpc_message_adapter,
)
from mcp_types import Tool as Listed
from pydantic import ValidationError

from bot.agents.mcp import relay
from bot.agents.mcp.config import McpServer
from bot.agents.mcp.relay import MOST_BYTES
from bot.agents.mcp.translation import (
    RESULT_FIELDS,
    SchemaUnfit,
    repair_result,
    repaired_answer,
    repaired_schema,
)
from memory.text import visible_line

log = structlog.get_logger()
_SSE = re.compile(r"/sse(?:[/?&]|$)")
_SESSION = "Mcp-Session-Id"
FORGOTTEN = -32090  # of JSON-RPC's range for the implementation
_LONGEST_NAME = 100
_MOST_PAGES = 50
_MOST_TOOLS = 100  # models take 128 in all
_LONGEST_TOOL = 16 * 1024  # bytes of its description and schema: they are in every prompt

# Why each tool, by name, is left out.
LeftOut = Callable[[dict[str, str]], None]

_TIMEOUT = httpx2.Timeout(30.0, read=300.0)  # a server may hold the stream of its answers open


@contextlib.asynccontextmanager
async def opened(
    server: McpServer,
    *,
    ended_event: Event,
    on_changed: Callable[[], None],
    left_out: LeftOut,
) -> AsyncIterator[Client]:
    """A connected client. `ended_event` is set when the connection is no more. `on_changed` is
    called when the server says that its tools have changed, and `left_out` with the tools that
    cannot be offered, and why. A request that was refused because the server no longer knows the
    session raises an error with the code `FORGOTTEN`."""

    async def on_message(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            on_changed()

    forgotten: set[object] = set()
    transport = _watch_transport(_transport(server, forgotten), ended_event, left_out, forgotten)
    async with Client(transport, message_handler=on_message, cache=None) as client:
        yield client


async def listed(client: Client) -> list[Listed]:
    """The server's tools, without those that are for its own pages (MCP Apps, `visibility`).

    Of many only the first, and none that is too large for a prompt.
    """
    tools: list[Listed] = []
    left_out = 0
    cursor: str | None = None
    cursors: set[str | None] = set()  # some servers give the same one again and again
    while cursor not in cursors and len(cursors) < _MOST_PAGES:
        cursors.add(cursor)
        page = await client.list_tools(cursor=cursor)
        fitting = [tool for tool in page.tools if _for_models(tool) and _fits(tool)]
        tools += fitting
        left_out += len(page.tools) - len(fitting)
        if (cursor := page.next_cursor) is None or len(tools) > _MOST_TOOLS:
            break
    left_out += len(tools) - len(tools[:_MOST_TOOLS])
    if left_out:
        log.warning("mcp.tools_left_out", tools=left_out, offered=len(tools[:_MOST_TOOLS]))
    return tools[:_MOST_TOOLS]


def _fits(tool: Listed) -> bool:
    """A schema as Python writes it: no recursion into what a server nests."""
    return len(tool.description or "") + len(repr(tool.input_schema)) <= _LONGEST_TOOL


@contextlib.asynccontextmanager
async def _transport(server: McpServer, forgotten: set[object]) -> AsyncIterator[tuple[Any, Any]]:
    async with contextlib.AsyncExitStack() as stack:
        yield await stack.enter_async_context(await _streams(server, stack, forgotten))


async def _streams(
    server: McpServer, stack: contextlib.AsyncExitStack, forgotten: set[object]
) -> Any:
    headers = dict(server.headers)
    if not server.url:
        # it logs each line that is no message with a traceback, and a server may write thousands
        logging.getLogger("mcp.client.stdio").setLevel(logging.CRITICAL)
        return stdio_client(
            StdioServerParameters(
                command=sys.executable,
                # by its path: in a folder of the server our packages are not found
                args=["-I", relay.__file__, server.command, *server.args],
                env=dict(server.env) or None,
                cwd=server.cwd,
                encoding_error_handler="replace",
            )
        )
    if _SSE.search(server.url):
        return sse_client(server.url, headers=headers, httpx_client_factory=bounded_client)
    http = await stack.enter_async_context(bounded_client(headers))

    async def on_response(response: httpx2.Response) -> None:
        if await _is_forgotten(response):
            forgotten.add(json.loads(response.request.content).get("id"))

    http.event_hooks["response"].append(on_response)
    return streamable_http_client(server.url, http_client=http)


async def _is_forgotten(response: httpx2.Response) -> bool:
    """True if the server refused a request because its session ended, so that nothing was done.

    404 says so (MCP, "Session management"); servers made after the examples of the TypeScript SDK
    say 400, with a sentence. Other requests than POST may not be served at all.
    """
    if response.request.method != "POST" or _SESSION not in response.request.headers:
        return False
    if response.status_code == httpx2.codes.BAD_REQUEST:
        return b"session" in (await response.aread()).lower()
    return response.status_code in (httpx2.codes.NOT_FOUND, httpx2.codes.GONE)


@contextlib.asynccontextmanager
async def _watch_transport(
    transport: Any, ended_event: Event, left_out: LeftOut, forgotten: set[object]
) -> AsyncIterator[tuple[Any, Any]]:
    async with transport as (read, write):
        try:
            yield _Watched(read, ended_event, left_out, forgotten), write
        finally:
            ended_event.set()


class _Watched:
    """A stream of messages that repairs them, and tells when its reader has come to the end."""

    def __init__(
        self, stream: Any, ended_event: Event, left_out: LeftOut, forgotten: set[object]
    ) -> None:
        self._stream = stream
        self._ended = ended_event
        self._left_out = left_out
        self._forgotten = forgotten

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        message = await self._stream.__anext__()
        if isinstance(message, ValidationError):
            message = _read_answer(message)
        content = getattr(message, "message", None)
        if isinstance(error := getattr(content, "error", None), ErrorData):
            self._mark_error(getattr(content, "id", None), error)
        if isinstance(result := getattr(content, "result", None), dict):
            if isinstance(result.get("tools"), list):
                self._left_out(_repair_tools(result))
            elif RESULT_FIELDS & result.keys():
                repair_result(result)
        return message

    def _mark_error(self, id: object, error: ErrorData) -> None:
        """Tells a forgotten session, and a server's own error with the code that the client has for
        the end of a connection, apart from that."""
        if id in self._forgotten:
            self._forgotten.discard(id)
            error.code = FORGOTTEN
        elif error.code == CONNECTION_CLOSED:
            error.code = INTERNAL_ERROR

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        self._ended.set()
        is_stopped: bool | None = await self._stream.__aexit__(kind, exc, traceback)
        return is_stopped


def _read_answer(refused: ValidationError) -> SessionMessage | ValidationError:
    """The answer that could not be read, repaired. An answer lacks `method`, so the whole of it is
    the input of the finding that says so."""
    findings = refused.errors(include_url=False, include_context=False)
    whole = next((one["input"] for one in findings if one["loc"][-1:] == ("method",)), None)
    if (answer := repaired_answer(whole)) is None:
        return refused
    return SessionMessage(jsonrpc_message_adapter.validate_python(answer, by_name=False))


def _repair_tools(result: dict[str, Any]) -> dict[str, str]:
    """Repairs the tools in an answer, and takes out those that cannot be: the client below refuses
    a whole list for one of them. Returns why, by name.

    Output schemas go too: the client would check results against them, and a pattern of a server
    may take forever.
    """
    fit, left_out = [], {}
    for tool in result["tools"]:
        try:
            fit.append(_repair_tool(tool))
        except SchemaUnfit as exc:
            left_out[_name_of(tool)] = str(exc)
    result["tools"] = fit
    return left_out


def _repair_tool(tool: Any) -> dict[str, Any]:
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str) or not tool["name"]:
        raise SchemaUnfit("it has no name")
    fields = {name: value for name, value in tool.items() if name != "outputSchema"}
    for name, kind in (("description", str), ("title", str), ("annotations", dict)):
        if not isinstance(fields.get(name), kind):
            fields.pop(name, None)
    return {**fields, "inputSchema": repaired_schema(tool.get("inputSchema"))}


def _name_of(tool: Any) -> str:
    name = tool.get("name") if isinstance(tool, dict) else None
    return visible_line(name)[:_LONGEST_NAME] if isinstance(name, str) and name else "(no name)"


def _for_models(tool: Listed) -> bool:
    match tool.meta:
        case {"ui": {"visibility": [*visible]}}:
            return "model" in visible
    return True


def bounded_client(
    headers: dict[str, str] | None = None,
    timeout: httpx2.Timeout | None = None,
    auth: httpx2.Auth | None = None,
) -> httpx2.AsyncClient:
    """A client whose answers are bounded, and uncompressed: a bomb is small until it is read."""
    plain = {**(headers or {}), "Accept-Encoding": "identity"}
    return httpx2.AsyncClient(
        headers=plain, timeout=timeout or _TIMEOUT, auth=auth, transport=_Bounded()
    )


class _Bounded(httpx2.AsyncHTTPTransport):
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            await response.aclose()
            raise httpx2.DecodingError("a compressed answer was not asked for", request=request)
        response.stream = _Stream(response.stream)
        return response


class _Stream(httpx2.AsyncByteStream):
    """A body that ends with an error when it, or one of its events, is too long."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._stream:
            end = max(piece.rfind(b"\n\n"), piece.rfind(b"\r\n\r\n"))
            size = size + len(piece) if end < 0 else len(piece) - end
            if size > MOST_BYTES:
                raise httpx2.ReadError(f"more than {MOST_BYTES} bytes in one message")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
