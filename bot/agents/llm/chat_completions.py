"""A model behind Chat Completions: the request as JSON, the answer whole or streamed.

One way for both: what comes, an object or events, goes through the same `Gathering`. What the
endpoint refuses is left out and the question is asked again, within the same time. A stream that
breaks off before it has said anything is asked for again as a whole; once it has said something,
that is the response.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from functools import partial
from typing import Any, Literal

import structlog

from bot.agents.llm.endpoint import TIMEOUT_S, Endpoint
from bot.agents.llm.model import (
    FeatureRefused,
    ModelFailed,
    OnText,
    Request,
    Response,
    StreamBroken,
    ToolsRefused,
)
from bot.agents.llm.model_text import Cleaner, Manner
from bot.agents.llm.refusals import Sent, refused_feature
from bot.agents.llm.request_adaptation import can_be_bared, fields_of, sent_features
from bot.agents.llm.request_line import LONGEST_WAIT_S
from bot.agents.llm.response_assembly import Gathering
from bot.agents.llm.server_sent_events import EventReader
from bot.agents.llm.time_limits import time_limit
from bot.text.lenient_json import dumps, loads

log = structlog.get_logger()

BETWEEN_S = 30.0
_REFUSED = 400
_PATH = "/chat/completions"
_DONE = b"[DONE]"
_LAST_BYTES_S = 0.5
_MOST_ATTEMPTS = 8
_UNEXPLAINED = ("status_400", "status_422", "status_501")
_TROUBLE = "status_500"  # also what llama.cpp calls a template that cannot take tools


class ChatModel:
    """The model `name` at `endpoint`.

    It has `first_s` to begin its response, thoughts and calls included, and then `between_s` for
    each further piece. A response that is not streamed has to be there within `first_s`. Before it
    is asked it may wait for `waits_s` while it has as many requests as it takes.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        name: str,
        *,
        first_s: float = TIMEOUT_S,
        between_s: float = BETWEEN_S,
        waits_s: float = LONGEST_WAIT_S,
    ) -> None:
        self._endpoint = endpoint
        self._name = name
        self._first_s, self._between_s = first_s, between_s
        self._waits_s = waits_s
        self._abilities = endpoint.abilities(name)
        self._line = endpoint.line(name)

    async def respond(self, request: Request, on_text: OnText | None = None) -> Response:
        """Raises `ModelFailed`, `ToolsRefused` and `Declined`."""
        reading = _Reading(on_text, self._between_s)
        try:
            async with time_limit(self._first_s) as reading.limit:
                return await self._adapting(request, reading)
        except TimeoutError as exc:
            if said := reading.partial("time"):
                return said
            raise ModelFailed("timeout") from exc

    async def _adapting(self, request: Request, reading: _Reading) -> Response:
        """Asks until the endpoint takes the request, each time without what it has refused."""
        streams, bare = reading.on_text is not None, False
        for _ in range(_MOST_ATTEMPTS):
            try:
                return await self._ask(request, reading, streams=streams, bare=bare)
            except StreamBroken as exc:
                log.warning("model.stream_broken", reason=exc.reason)
                if not streams:
                    raise
                streams = False
            except FeatureRefused as exc:
                self._learn(exc)
            except ModelFailed as exc:
                if exc.reason not in (*_UNEXPLAINED, _TROUBLE):
                    raise
                if request.tools:
                    log.warning("model.asked_without_tools", model=self._name, reason=exc.reason)
                    self._abilities.doubt_tools()
                    raise ToolsRefused(sure=False) from exc
                self._abilities.trust_tools()
                can_do_with_less = can_be_bared(request, streams=streams) and not bare
                if exc.reason == _TROUBLE or not can_do_with_less:
                    raise
                bare = True
        raise ModelFailed("refuses_everything")

    def _learn(self, refusal: FeatureRefused) -> None:
        self._abilities.learn(refusal.feature)
        log.warning("model.refuses", model=self._name, feature=refusal.feature)

    async def _ask(
        self, request: Request, reading: _Reading, *, streams: bool, bare: bool
    ) -> Response:
        lacks = self._abilities.lacking()
        if request.tools and "tools" in lacks:
            raise ToolsRefused(sure=True)
        streams = (streams and "stream" not in lacks) or "whole" in lacks
        fields = fields_of(request, lacks, streams=streams, bare=bare)
        sent = partial(sent_features, request, fields)
        gathering = reading.begin()
        try:
            async with self._endpoint.posted(
                _PATH,
                self._body(fields, request),
                stream=streams,
                sent=sent,
                line=self._line,
                waits_s=self._waits_s,
            ) as reply:
                if _has_events(reply.kind, streams):
                    await reading.events(reply.chunks())
                else:
                    await reading.whole(_completion(await reply.read(), reply.kind, sent))
        except (StreamBroken, ModelFailed) as exc:
            if gathering.complete:
                pass
            elif said := reading.partial("time" if exc.reason == "timeout" else "connection"):
                return said
            else:
                raise
        if not gathering.is_completion:
            raise ModelFailed("no_completion")
        if request.tools:
            self._abilities.trust_tools()
        return gathering.response()

    def _body(self, fields: dict[str, Any], request: Request) -> bytes:
        body = dumps({"model": self._name, **fields})
        if not request.tools:
            return body
        # Tools change least, so they come first, and their JSON is made once for each choice.
        return b'{"tools":' + request.tools.json + b"," + body[1:]


class _Reading:
    """A response while it arrives: reports its text, and moves the time limit with each piece."""

    limit: asyncio.Timeout

    def __init__(self, on_text: OnText | None, between_s: float) -> None:
        self.on_text = on_text
        self._between_s = between_s
        self._gathering = Gathering()
        self._shown = ""

    def begin(self) -> Gathering:
        """Forgets an earlier attempt."""
        self._gathering, self._shown = Gathering(), ""
        return self._gathering

    def partial(self, why: Literal["time", "connection"]) -> Response | None:
        """What was said before it broke off; None when that was nothing, when the model had gone on
        to call tools, and when a new attempt takes nothing away from anybody."""
        text = self._shown if why == "connection" else self._gathering.text
        if self._gathering.calls or not Cleaner().read(text, Manner(), complete=False).text.strip():
            return None
        return self._gathering.broken_off(why)

    async def whole(self, completion: Any) -> None:
        self._gathering.add(completion)
        await self._report()

    async def events(self, chunks: AsyncIterator[bytes]) -> None:
        """Reads to the end, and reports the text after each piece that arrives."""
        reader = EventReader()
        async for received in chunks:
            before = self._gathering.pieces
            done = self._take(reader.feed(received))
            if self._gathering.pieces > before:
                self._beat()
                await self._report(first=not before)
            if done:
                await _drained(chunks)
                return
        self._take(reader.close())
        if not self._gathering.complete:
            raise StreamBroken("cut")

    def _beat(self) -> None:
        if not self.limit.expired():
            self.limit.reschedule(asyncio.get_running_loop().time() + self._between_s)

    async def _report(self, *, first: bool = False) -> None:
        """Reports new text; the first piece also where it is a thought or a call."""
        text = self._gathering.text
        if self.on_text and (first or text != self._shown):
            self._shown = text
            await self.on_text(text)

    def _take(self, events: Iterable[bytes]) -> bool:
        """Adds events until the one that says that it was the last."""
        for data in events:
            if data.startswith(_DONE):
                self._gathering.complete = True
                return True
            try:
                self._gathering.add(_parsed(data))
            except ModelFailed as exc:
                raise StreamBroken(exc.reason) from exc
        return False


def _has_events(kind: str, asked_for: bool) -> bool:
    """Whether events come; some endpoints answer in the other form than they were asked in."""
    return "event-stream" in kind or (asked_for and "json" not in kind)


async def _drained(chunks: AsyncIterator[bytes]) -> None:
    """Reads what ends the body, so that its connection can be used again."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LAST_BYTES_S):
            async for _ in chunks:
                pass


def _completion(body: bytes, kind: str, sent: Sent) -> Any:
    """A whole answer. Some gateways put a refusal into one with status 200."""
    completion = _parsed(body, kind)
    is_error = isinstance(completion, dict) and completion.get("error")
    if is_error and (feature := refused_feature(_REFUSED, body, sent())):
        raise FeatureRefused(feature)
    return completion


def _parsed(data: bytes, kind: str = "") -> Any:
    try:
        return loads(data)
    except ValueError as exc:
        raise ModelFailed("no_completion" if "html" in kind else "malformed") from exc
