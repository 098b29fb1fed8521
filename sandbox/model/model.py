"""A stand-in for an OpenAI-compatible Chat Completions endpoint, on 127.0.0.1 only.

python -m sandbox.model.model --port 8901

POST   /v1/chat/completions   whole, or as server-sent events with "stream": true
POST   /v1/embeddings         see sandbox/model/model_embeddings.py
GET    /v1/models
GET    /control/requests      {"requests": [{"number", "at" (s since epoch), "body"}, …]};
                              ?since=N leaves out the first N
DELETE /control/requests      forget them and count from 1 again
POST   /control/script        steps or rules, see sandbox/model/model_script.py
POST   /control/mode          {"mode": "echo" | "script" | "rules", "delay_s": seconds,
                              "embeddings": {"status", "delay_s", "refuse"}}; refuse: a word in a
                              text that is answered with status 400. "refuses": what it does not
                              take, see sandbox/model/model_refusals.py; a new mode forgets it.
                              "at_once": above so many at a time it answers 429; null: no limit.
                              "hold": true: it takes requests and answers none until it is false
GET    /control/load          {"under_way", "most", "refused"}: completions that are being answered,
                              the most so far and how many were refused; POST /control/mode forgets
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from sandbox.model.model_answers import ModelAnswer, error_body, pieces, to_json
from sandbox.model.model_embeddings import BadEmbeddingRequest, embeddings
from sandbox.model.model_http import (
    LAST_CHUNK,
    Closed,
    HttpError,
    ModelHttpRequest,
    chunk,
    read_request,
    response_head,
)
from sandbox.model.model_refusals import Refusals
from sandbox.model.model_script import BadScript, Playbook, ScriptedReply

REQUESTS_KEPT = 5000
MODEL = "sandbox-model"


class ModelServer:
    """The endpoint. `playbook` chooses the replies, `received` holds the newest requests."""

    def __init__(self) -> None:
        self.delay_s = 0.0
        self.playbook = Playbook()
        self.refusals = Refusals()
        self.received: deque[dict[str, Any]] = deque(maxlen=REQUESTS_KEPT)
        self.embedded: deque[Any] = deque(maxlen=REQUESTS_KEPT)
        self.embedding_faults: dict[str, Any] = {}
        self.at_once: int | None = None
        self.released = asyncio.Event()
        self.released.set()
        self._under_way = self._most = self._refused = 0
        self._count = 0
        self._port = 0
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._routes: dict[tuple[str, str], Callable[[ModelHttpRequest], object]] = {
            ("GET", "/v1/models"): self._models,
            ("GET", "/control/requests"): self._requests,
            ("DELETE", "/control/requests"): self._forget,
            ("GET", "/control/load"): self._load_of_now,
            ("POST", "/control/script"): self._load,
            ("POST", "/control/mode"): self._switch,
        }

    @property
    def base_url(self) -> str:
        """What OPENAI_BASE_URL has to be, once the server has started."""
        return f"http://127.0.0.1:{self._port}/v1"

    async def start(self, port: int = 0) -> None:
        """Listen on `port`, or on a free one for 0; raises OSError if it is taken."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port, backlog=512)
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening and close every connection, whatever it waits for."""
        if self._server is None:
            return
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._converse(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(Closed, ConnectionError):
                while await self._handle_next(reader, writer):
                    pass
        finally:
            writer.close()

    async def _handle_next(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer one request; False when the connection is to be closed."""
        try:
            request = await read_request(reader)
        except HttpError as error:
            _write(writer, error.status, {"error": {"message": str(error)}})
            return False
        try:
            if (request.method, request.path) == ("POST", "/v1/chat/completions"):
                await self._complete(request, reader, writer)
            elif (request.method, request.path) == ("POST", "/v1/embeddings"):
                await self._embed(request, writer)
            else:
                _write(writer, 200, self._route(request))
        except HttpError as error:
            _write(writer, error.status, {"error": {"message": str(error)}})
        await writer.drain()
        return request.keep_alive

    def _route(self, request: ModelHttpRequest) -> object:
        handler = self._routes.get((request.method, request.path))
        if handler is None:
            raise HttpError(404, f"there is no {request.method} {request.path}")
        return handler(request)

    async def _complete(
        self, request: ModelHttpRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        body = _chat_request(request)
        if self.at_once is not None and self._under_way >= self.at_once:
            self._refused += 1
            raise HttpError(429, "too many requests at once")
        self._under_way += 1
        self._most = max(self._most, self._under_way)
        try:
            await self._answer(request, body, reader, writer)
        finally:
            self._under_way -= 1

    async def _answer(
        self,
        request: ModelHttpRequest,
        body: dict[str, Any],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._count += 1
        now = time.time()
        self.received.append({"number": self._count, "at": now, "body": body})
        reply = self.refusals.reply_to(body) or self.playbook.reply_to(body)
        model = str(body.get("model", MODEL))
        answer = ModelAnswer(reply, self._count, model, len(request.body), int(now))
        await self.released.wait()
        is_streamed = bool(body.get("stream"))
        await asyncio.sleep(self._delay_s(reply, is_streamed=is_streamed))
        if reply.fault == "hang":
            await reader.read()
            raise Closed
        if reply.status != 200 or reply.body is not None:
            _write_error(writer, reply)
        elif is_streamed:
            options = body.get("stream_options") or {}
            await _stream(writer, answer, include_usage=bool(options.get("include_usage")))
            if reply.fault == "pause":
                await reader.read()
                raise Closed
        else:
            _write_whole(writer, answer)

    def _delay_s(self, reply: ScriptedReply, *, is_streamed: bool) -> float:
        """Before the first byte."""
        if reply.duration_s is not None:
            return 0.0 if is_streamed else reply.duration_s
        return self.delay_s if reply.delay_s is None else reply.delay_s

    async def _embed(self, request: ModelHttpRequest, writer: asyncio.StreamWriter) -> None:
        body, faults = _json(request), self.embedding_faults
        self.embedded.append(body)
        await asyncio.sleep(faults.get("delay_s", 0))
        if faults.get("refuse") and faults["refuse"] in request.body.decode():
            raise HttpError(400, "this input is not accepted")
        if faults.get("status", 200) != 200:
            raise HttpError(faults["status"], "the endpoint is told to fail")
        try:
            _write(writer, 200, embeddings(body, MODEL))
        except BadEmbeddingRequest as error:
            raise HttpError(400, str(error)) from error

    def _models(self, request: ModelHttpRequest) -> object:
        model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "sandbox"}
        return {"object": "list", "data": [model]}

    def _requests(self, request: ModelHttpRequest) -> object:
        since = request.query.get("since", "0")
        if not since.isdecimal():
            raise HttpError(400, "since is the number of a request")
        return {"requests": [one for one in self.received if one["number"] > int(since)]}

    def _forget(self, request: ModelHttpRequest) -> object:
        self.received.clear()
        self._count = 0
        return {"requests": []}

    def _load_of_now(self, request: ModelHttpRequest) -> object:
        return {"under_way": self._under_way, "most": self._most, "refused": self._refused}

    def _load(self, request: ModelHttpRequest) -> object:
        try:
            self.playbook.load(_json(request))
        except BadScript as error:
            raise HttpError(400, str(error)) from error
        return {"mode": self.playbook.mode}

    def _switch(self, request: ModelHttpRequest) -> object:
        wanted = _json(request)
        if not isinstance(wanted, dict):
            raise HttpError(400, "send an object")
        try:
            self.playbook.switch(wanted.get("mode", self.playbook.mode))
        except BadScript as error:
            raise HttpError(400, str(error)) from error
        self.delay_s = wanted.get("delay_s", self.delay_s)
        self.embedding_faults = wanted.get("embeddings", self.embedding_faults)
        self.at_once = wanted.get("at_once")
        self._most, self._refused = self._under_way, 0
        (self.released.clear if wanted.get("hold") else self.released.set)()
        self.refusals = Refusals(wanted.get("refuses", ()))
        return {"mode": self.playbook.mode}


def _json(request: ModelHttpRequest) -> object:
    try:
        return json.loads(request.body)
    except ValueError as error:
        raise HttpError(400, f"the body is not JSON: {error}") from error


def _chat_request(request: ModelHttpRequest) -> dict[str, Any]:
    body = _json(request)
    if isinstance(body, dict):
        messages = body.get("messages")
        if isinstance(messages, list) and all(isinstance(one, dict) for one in messages):
            return body
    raise HttpError(400, "messages is a list of objects with a role and a content")


def _write(writer: asyncio.StreamWriter, status: int, value: object) -> None:
    payload = to_json(value)
    writer.write(response_head(status, len(payload)) + payload)


def _write_error(writer: asyncio.StreamWriter, reply: ScriptedReply) -> None:
    payload = error_body(reply)
    headers = {} if reply.retry_after is None else {"Retry-After": str(reply.retry_after)}
    kind = reply.content_type
    if kind is None:
        kind = "text/html" if isinstance(reply.body, str) else "application/json"
    writer.write(response_head(reply.status, len(payload), kind, headers) + payload)


def _write_whole(writer: asyncio.StreamWriter, answer: ModelAnswer) -> None:
    payload = to_json(answer.completion())
    half = payload[: len(payload) // 2]
    if answer.reply.fault == "cut":
        writer.write(response_head(200, len(payload)) + half)
        raise Closed
    body = half if answer.reply.fault == "malformed" else payload
    writer.write(response_head(200, len(body)) + body)


async def _stream(
    writer: asyncio.StreamWriter, answer: ModelAnswer, *, include_usage: bool
) -> None:
    objects = answer.chunks(include_usage=include_usage)
    events = [b"data: %b\n\n" % to_json(one) for one in objects] + [b"data: [DONE]\n\n"]
    if answer.reply.fault is not None:
        events = events[: (len(events) - 1) // 2]
    if answer.reply.fault == "malformed":
        events.append(b'data: {"id": "chatcmpl-\n\n')
    writer.write(response_head(200, None, "text/event-stream"))
    if answer.reply.duration_s is not None:
        await _write_evenly(writer, _by_piece(answer, events), answer.reply.duration_s)
    elif answer.reply.chunk_delay_s:
        for event in events:
            writer.write(chunk(event))
            await writer.drain()
            await asyncio.sleep(answer.reply.chunk_delay_s)
    else:
        writer.write(chunk(b"".join(events)))
    if answer.reply.fault == "cut":
        raise Closed
    if answer.reply.fault != "pause":
        writer.write(LAST_CHUNK)


def _by_piece(answer: ModelAnswer, events: Sequence[bytes]) -> list[bytes]:
    """One frame for each piece of text; the first has what comes before, the last what follows."""
    first = 1 + len(pieces(answer.reply.reasoning))
    last = first + max(1, len(pieces(answer.reply.text))) - 1
    single = [b"".join(events[: first + 1]), *events[first + 1 : last]]
    return [*single, b"".join(events[last:])] if last > first else [b"".join(events)]


async def _write_evenly(
    writer: asyncio.StreamWriter, frames: Sequence[bytes], duration_s: float
) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number, frame in enumerate(frames, 1):
        await asyncio.sleep(began + duration_s * number / len(frames) - loop.time())
        writer.write(chunk(frame))


async def serve(port: int) -> None:
    """Answer on `port` until SIGTERM or SIGINT. Raises OSError."""
    server = ModelServer()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await server.start(port)
    sys.stdout.write(f"Chat Completions at {server.base_url}\n")
    sys.stdout.flush()
    await stop.wait()
    await server.stop()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the endpoint from the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m sandbox.model.model",
        description="A stand-in Chat Completions endpoint on 127.0.0.1 for tests and benchmarks.",
        epilog="It echoes the last user message until it is given a script by POST /control/script."
        " sandbox/model/model_script.py describes scripts.",
    )
    parser.add_argument("--port", type=int, default=8901, help="0 takes a free one (%(default)s)")
    options = parser.parse_args(argv)
    try:
        asyncio.run(serve(options.port))
    except (OSError, OverflowError) as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
