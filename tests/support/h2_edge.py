"""The edge in front of a hosted project: it speaks HTTP/2 over TLS and ends connections while calls
are under way.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import httpx
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, RequestReceived, StreamEnded
from h2.exceptions import ProtocolError

from tests.support.certificates import certificate as certificate_for
from tests.support.certificates import server_tls

Manner = Literal["protocol", "graceful", "reset", "silent"]
_NOT_PASSED_ON = ("connection", "transfer-encoding", "content-length", "content-encoding")


@dataclass
class H2Edge:
    """Ends the connection of every `every`-th call.

    protocol: GOAWAY that disowns this call and fails all others under way. graceful: this call is
    answered first. reset: RST_STREAM for this call. silent: the socket closes.
    """

    upstream: httpx.AsyncClient
    manner: Manner
    every: int
    certificate: Path
    port: int = 0
    seen: int = 0
    connections: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        call = _Connection(self, writer)
        with suppress(ConnectionError, ProtocolError, ssl.SSLError):
            while not writer.is_closing() and (data := await reader.read(65536)):
                for ended in call.receive(data):
                    await self._answer(call, ended)
                await call.flush()
        writer.close()

    async def _answer(self, call: _Connection, stream: int) -> None:
        self.seen += 1
        if self.seen % self.every:
            task = asyncio.create_task(call.pass_on(stream))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif self.manner == "reset":
            call.http2.reset_stream(stream, ErrorCodes.REFUSED_STREAM)
        else:
            await self._end(call, stream)

    async def _end(self, call: _Connection, stream: int) -> None:
        if self.manner == "graceful":
            await call.pass_on(stream)
            call.http2.close_connection(ErrorCodes.NO_ERROR, last_stream_id=stream)
        elif self.manner == "protocol":
            before = max(stream - 2, 0)
            call.http2.close_connection(ErrorCodes.PROTOCOL_ERROR, last_stream_id=before)
        await call.flush()
        call.writer.close()


class _Connection:
    def __init__(self, edge: H2Edge, writer: asyncio.StreamWriter) -> None:
        self.http2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.http2.initiate_connection()
        self.writer = writer
        self._upstream = edge.upstream
        self._asked: dict[int, tuple[dict[str, str], bytearray]] = {}

    def receive(self, data: bytes) -> list[int]:
        """Returns the streams whose calls are now complete."""
        ended = []
        for event in self.http2.receive_data(data):
            if isinstance(event, RequestReceived):
                headers = {str(name): str(value) for name, value in event.headers}
                self._asked[event.stream_id] = (headers, bytearray())
            elif isinstance(event, DataReceived):
                self._asked[event.stream_id][1].extend(event.data)
                self.http2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, StreamEnded) and event.stream_id is not None:
                ended.append(event.stream_id)
        return ended

    async def pass_on(self, stream: int) -> None:
        headers, body = self._asked.pop(stream)
        given = {name: value for name, value in headers.items() if name[0] != ":"}
        given.pop("content-length", None)
        answer = await self._upstream.request(
            headers[":method"], headers[":path"], headers=given, content=bytes(body)
        )
        named = [
            (name.lower(), value)
            for name, value in answer.headers.items()
            if name.lower() not in _NOT_PASSED_ON
        ]
        with suppress(ProtocolError, ConnectionError):
            self.http2.send_headers(stream, [(":status", str(answer.status_code)), *named])
            self.http2.send_data(stream, answer.content, end_stream=True)
            await self.flush()

    async def flush(self) -> None:
        if not self.writer.is_closing():
            self.writer.write(self.http2.data_to_send())
            await self.writer.drain()


@asynccontextmanager
async def h2_edge(
    upstream: str, folder: Path, manner: Manner, *, every: int
) -> AsyncIterator[H2Edge]:
    """A running edge on loopback. Its answers are short: they fit in one frame."""
    tls = server_tls(certificate := certificate_for(folder))
    tls.set_alpn_protocols(["h2"])
    async with httpx.AsyncClient(base_url=upstream, timeout=30) as client:
        edge = H2Edge(client, manner, every, certificate)
        server = await asyncio.start_server(edge.serve, "127.0.0.1", 0, ssl=tls)
        edge.port = server.sockets[0].getsockname()[1]
        try:
            yield edge
        finally:
            server.close()
            await asyncio.gather(*edge._tasks, return_exceptions=True)
