"""HTTP for MCP servers with a limit on what one answer, or one event of a stream, may have."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2

from bot.agents.mcp.relay import MOST_BYTES

_TIMEOUT = httpx2.Timeout(30.0, read=300.0)  # a server may hold the stream of its answers open


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
