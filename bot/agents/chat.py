"""A model behind Chat Completions: the request as JSON, the answer whole or streamed.

One way for both: what comes, an object or events, goes through the same `Gathering`. A stream that
breaks off is asked for again as a whole, because nothing of it was used yet.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from typing import Any

import structlog

from bot.agents.endpoint import Endpoint
from bot.agents.gathering import Gathering
from bot.agents.lenient_json import dumps, loads
from bot.agents.model import (
    ModelFailed,
    OnText,
    Request,
    Response,
    StreamBroken,
    StreamOptionsRefused,
)
from bot.agents.server_events import EventReader

log = structlog.get_logger()

_PATH = "/chat/completions"
_DONE = b"[DONE]"
_LAST_BYTES_S = 0.5


class ChatModel:
    """The model `name` at `endpoint`."""

    def __init__(self, endpoint: Endpoint, name: str) -> None:
        self._endpoint = endpoint
        self._name = name

    async def respond(self, request: Request, on_text: OnText | None = None) -> Response:
        """Raises `ModelFailed` and `Declined`."""
        if on_text is not None:
            try:
                return await self._streamed(request, on_text)
            except StreamBroken as exc:
                log.warning("model.stream_broken", reason=exc.reason)
        return await self._ask(request, None)

    async def _streamed(self, request: Request, on_text: OnText) -> Response:
        asked_for_usage = self._endpoint.reports_usage_of_streams
        try:
            return await self._ask(request, on_text)
        except StreamOptionsRefused:
            if not asked_for_usage:
                raise
        self._endpoint.reports_usage_of_streams = False
        return await self._ask(request, on_text)

    async def _ask(self, request: Request, on_text: OnText | None) -> Response:
        gathering = Gathering()
        try:
            await self._gather(request, gathering, on_text)
        except StreamBroken:
            if not gathering.complete:
                raise
        return gathering.response()

    async def _gather(self, request: Request, gathering: Gathering, on_text: OnText | None) -> None:
        streamed = on_text is not None
        body = self._body(request, streamed=streamed)
        async with self._endpoint.posted(_PATH, body, stream=streamed) as reply:
            if _has_events(reply.kind, streamed):
                await _read_events(reply.chunks(), gathering, on_text)
                return
            gathering.add(_parsed(await reply.read()))
            if on_text and gathering.text:
                await on_text(gathering.text)

    def _body(self, request: Request, *, streamed: bool) -> bytes:
        fields: dict[str, Any] = {"model": self._name, "messages": request.messages}
        if streamed:
            fields["stream"] = True
        if streamed and self._endpoint.reports_usage_of_streams:
            fields["stream_options"] = {"include_usage": True}
        if request.max_tokens is not None:
            fields["max_completion_tokens"] = request.max_tokens
        if request.temperature is not None:
            fields["temperature"] = request.temperature
        body = dumps(fields)
        # The tools are most of a request and always the same, so their JSON is made once.
        return body[:-1] + b',"tools":' + request.tools.json + b"}" if request.tools else body


def _has_events(kind: str, asked_for: bool) -> bool:
    """Whether events come; some endpoints answer in the other form than they were asked in."""
    return "event-stream" in kind or (asked_for and "json" not in kind)


async def _read_events(
    chunks: AsyncIterator[bytes], gathering: Gathering, on_text: OnText | None
) -> None:
    """Reads to the end, and reports the text after each piece that arrives."""
    reader, shown = EventReader(), ""
    async for received in chunks:
        done = _take(reader.feed(received), gathering)
        if on_text and gathering.text != shown:
            shown = gathering.text
            await on_text(shown)
        if done:
            await _drained(chunks)
            return
    _take(reader.close(), gathering)
    if not gathering.complete:
        raise StreamBroken("cut")


def _take(events: Iterable[bytes], gathering: Gathering) -> bool:
    """Adds events until the one that says that it was the last."""
    for data in events:
        if data.startswith(_DONE):
            gathering.complete = True
            return True
        try:
            gathering.add(_parsed(data))
        except ModelFailed as exc:
            raise StreamBroken(exc.reason) from exc
    return False


async def _drained(chunks: AsyncIterator[bytes]) -> None:
    """Reads what ends the body, so that its connection can be used again."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LAST_BYTES_S):
            async for _ in chunks:
                pass


def _parsed(data: bytes) -> Any:
    try:
        return loads(data)
    except ValueError as exc:
        raise ModelFailed("malformed") from exc
