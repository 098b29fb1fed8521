"""An endpoint that answers with bytes as written, for what a well-behaved stand-in never sends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from sandbox.model.model_http import Closed, ModelHttpRequest, chunk, read_request, response_head

EVENTS = "text/event-stream"
LAST = b"0\r\n\r\n"


@dataclass(frozen=True)
class Wire:
    """One answer. `pieces` are sent one after the other as chunks of the body.

    `cut` closes the connection before the end; `hangs` sends nothing more and waits. `pause_s`
    passes after each piece.
    """

    pieces: Sequence[bytes] = ()
    kind: str = EVENTS
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False
    hangs: bool = False
    pause_s: float = 0.0


def events(*sent: Any, end: str = "\n\n", done: bool = True) -> bytes:
    """Server-sent events with the given objects (or texts) as their data."""
    datas = [one if isinstance(one, str) else json.dumps(one) for one in sent]
    return "".join(
        f"data: {data}{end}" for data in [*datas, *(["[DONE]"] if done else [])]
    ).encode()


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chunk of a stream."""
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def whole(finish: str | None = "stop", **message: Any) -> Wire:
    """An answer that is not streamed."""
    body = {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}
    return as_json(body)


def as_json(body: Any, status: int = 200, **headers: str) -> Wire:
    return Wire([json.dumps(body).encode()], "application/json", status, headers)


class RawEndpoint:
    """Plays its answers in order; keeps what it was asked and which connections are open."""

    def __init__(self, *answers: Wire) -> None:
        self.answers = list(answers)
        self.bodies: list[dict[str, Any]] = []
        self.connections = 0
        self.all_closed = asyncio.Event()
        self.base_url = ""

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.all_closed.clear()
        try:
            while await self._answer(await read_request(reader), reader, writer):
                pass
        except (Closed, ConnectionError):
            pass
        finally:
            writer.close()
            self.connections -= 1
            if not self.connections:
                self.all_closed.set()

    async def _answer(
        self, request: ModelHttpRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        self.bodies.append(json.loads(request.body))
        wire = self.answers.pop(0)
        writer.write(response_head(wire.status, None, wire.kind, wire.headers))
        for piece in wire.pieces:
            writer.write(chunk(piece))
            await writer.drain()
            await asyncio.sleep(wire.pause_s)
        if wire.hangs:
            await reader.read()
        if wire.cut or wire.hangs:
            return False
        writer.write(LAST)
        await writer.drain()
        return True


@asynccontextmanager
async def serving(*answers: Wire) -> AsyncIterator[RawEndpoint]:
    """A running endpoint."""
    endpoint = RawEndpoint(*answers)
    server = await asyncio.start_server(endpoint.converse, "127.0.0.1", 0)
    endpoint.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield endpoint
    finally:
        server.close()
        await server.wait_closed()
