"""A model behind Chat Completions: the request as JSON, the answer whole or streamed.

Both go through the same `ResponseAssembly`. What the endpoint refuses is left out and the question
is asked again, within the same time. A stream that breaks off before it has said anything is asked
for again as a whole; once it has said something, that is the response.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Collection, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import structlog

from bot.agents.llm.endpoint import LONGEST_WAIT_S, TIMEOUT_S, Endpoint, Sent
from bot.agents.llm.http_responses import BodyReader, json_values
from bot.agents.llm.model import (
    Feature,
    FeatureRefused,
    ModelFailed,
    OnText,
    Request,
    Response,
    StreamBroken,
    ToolRefused,
    ToolsRefused,
    refused_feature,
)
from bot.agents.llm.requests import CALLS, OPTIONS, doubtful_calls, fields_of, sent_features
from bot.agents.llm.responses import ResponseAssembly
from bot.agents.model_text.cleaner import Cleaner, Manner
from bot.agents.running_turns import time_limit
from bot.text.json_text import dump_json

log = structlog.get_logger()

BETWEEN_S = 30.0
_REFUSED = 400
_PATH = "/chat/completions"
_DONE = b"[DONE]"
_SIGN_OF_LIFE = re.compile(rb"[\w :.-]{0,40}")  # such as "ping"
_LAST_BYTES_S = 0.5
_MOST_ATTEMPTS = 8
_UNEXPLAINED = ("status_400", "status_422", "status_501")
_TROUBLE = "status_500"  # also what llama.cpp calls a template that cannot take tools


class ChatModel:
    """The model `name` at `endpoint`.

    It has `first_s` to begin its response, thoughts and calls included, and then `BETWEEN_S` for
    each further piece. A response that is not streamed has to be there within `first_s`. Before it
    is asked it may wait for `waits_s` while it has as many requests as it takes.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        name: str,
        *,
        first_s: float = TIMEOUT_S,
        waits_s: float = LONGEST_WAIT_S,
    ) -> None:
        self._endpoint = endpoint
        self._name = name
        self._first_s = first_s
        self._waits_s = waits_s
        self._abilities = endpoint.abilities(name)
        self._queue = endpoint.queue(name)

    async def respond(self, request: Request, on_text: OnText | None = None) -> Response:
        """Raises `ModelFailed`, `ToolsRefused` and `Declined`."""
        reading = _Reading(on_text)
        try:
            async with time_limit(self._first_s) as reading.limit:
                return await self._adapting(request, reading)
        except TimeoutError as exc:
            if partial_answer := reading.partial("time"):
                return partial_answer
            raise ModelFailed("timeout") from exc

    async def _adapting(self, request: Request, reading: _Reading) -> Response:
        """Asks until the endpoint takes the request, each time without what it has refused."""
        without: set[Feature] = set() if reading.on_text else {"stream"}
        for _ in range(_MOST_ATTEMPTS):
            lacks = self._abilities.lacking() | without
            if request.tools and "tools" in lacks:
                raise ToolsRefused(sure=True)
            request = replace(request, tools=request.tools.without(self._abilities.unfit_tools()))
            fields = fields_of(request, lacks)
            try:
                response = await self._ask(request, fields, reading)
            except StreamBroken as exc:
                log.warning("model.stream_broken", reason=exc.reason)
                if "stream" in without:
                    raise
                without.add("stream")
            except FeatureRefused as exc:
                self._abilities.learn(exc.feature)
                log.warning("model.refuses", model=self._name, feature=exc.feature)
            except ToolRefused as exc:
                for name in exc.names:
                    self._abilities.learn_unfit(name)
                    log.warning("model.refuses_tool", model=self._name, tool=name)
            except ModelFailed as exc:
                without |= self._suspected_features(exc, request, fields, lacks)
            else:
                self._learn(response, without)
                return response
        raise ModelFailed("refuses_everything")

    def _learn(self, response: Response, without: Collection[Feature]) -> None:
        """Remembers what an answered request was `without`, and that the model signs its calls."""
        for feature in CALLS.intersection(without):
            log.warning("model.refuses", model=self._name, feature=feature)
            self._abilities.learn(feature)
        if any(call.extra for call in response.calls):
            self._abilities.learn("earlier_calls")

    def _suspected_features(
        self,
        exc: ModelFailed,
        request: Request,
        fields: Collection[str],
        lacks: Collection[Feature],
    ) -> frozenset[Feature]:
        """Returns what to leave out after a refusal without a reason. Raises `ToolsRefused` if
        that is tools, and `exc` if there is nothing."""
        if exc.reason not in (*_UNEXPLAINED, _TROUBLE):
            raise exc
        if exc.reason != _TROUBLE and (calls := doubtful_calls(request.messages, lacks)):
            return frozenset((calls,))
        if request.tools:
            log.warning("model.asked_without_tools", model=self._name, reason=exc.reason)
            self._abilities.doubt_tools()
            raise ToolsRefused(sure=False) from exc
        self._abilities.trust_tools()
        if exc.reason == _TROUBLE or not OPTIONS.intersection(fields):
            raise exc
        return OPTIONS

    async def _ask(self, request: Request, fields: dict[str, Any], reading: _Reading) -> Response:
        sent_features_of = partial(sent_features, request, fields)
        assembly = reading.begin(sent_features_of)
        try:
            async with self._endpoint.post(
                _PATH,
                self._body(fields, request),
                sent_features=sent_features_of,
                tools=tuple(request.tools),
                queue=self._queue,
                waits_s=self._waits_s,
            ) as chunks:
                await reading.read(chunks)
        except (FeatureRefused, ToolRefused):
            raise
        except ModelFailed as exc:
            if not assembly.complete:
                if partial_answer := reading.partial(
                    "time" if exc.reason == "timeout" else "connection"
                ):
                    return partial_answer
                raise
        if not assembly.is_completion:
            raise ModelFailed("no_completion")
        if request.tools:
            self._abilities.trust_tools()
        return assembly.response()

    def _body(self, fields: dict[str, Any], request: Request) -> bytes:
        body = dump_json({"model": self._name, **fields})
        if not request.tools:
            return body
        # Tools change least, so they come first, and their JSON is made once for each choice.
        return b'{"tools":' + request.tools.json + b"," + body[1:]


class _Reading:
    """A response while it arrives: reports its text, and moves the time limit with each piece."""

    limit: asyncio.Timeout

    def __init__(self, on_text: OnText | None) -> None:
        self.on_text = on_text
        self.begin(frozenset)

    def begin(self, features: Sent) -> ResponseAssembly:
        """Forgets an earlier attempt. `features` gives what an error may refuse."""
        self._sent, self._shown = features, ""
        self._assembly = ResponseAssembly()
        return self._assembly

    def partial(self, why: Literal["time", "connection"]) -> Response | None:
        """Returns what was said before it broke off. None if nothing was said or shown, or if the
        model had begun to call tools: a new attempt takes nothing away from anybody then."""
        text = self._shown if why == "connection" else self._assembly.text
        if self._assembly.calls or not Cleaner().read(text, Manner(), complete=False).text.strip():
            return None
        return self._assembly.broken_off(why)

    async def read(self, chunks: AsyncIterator[bytes]) -> None:
        """Reads to the end, and reports the text after each piece that arrives."""
        reader = BodyReader()
        async for chunk in chunks:
            before = self._assembly.pieces
            is_done = self._take(reader, reader.feed(chunk))
            await self._progress(before)
            if is_done:
                await _drain(chunks)
                return
        before = self._assembly.pieces
        self._take(reader, reader.close())
        await self._progress(before)
        if not self._assembly.complete:
            raise StreamBroken("cut")

    async def _progress(self, before: int) -> None:
        """Gives more time after each piece and reports new text; the first piece also where it is a
        thought or a call."""
        if self._assembly.pieces == before:
            return
        if not self.limit.expired():
            self.limit.reschedule(asyncio.get_running_loop().time() + BETWEEN_S)
        text = self._assembly.text
        if self.on_text and (not before or text != self._shown):
            self._shown = text
            await self.on_text(text)

    def _take(self, reader: BodyReader, documents: Iterable[bytes]) -> bool:
        """Adds documents until the one that says that it was the last."""
        for document in documents:
            content, is_last = _before_done(document)
            if not reader.is_plain and _SIGN_OF_LIFE.fullmatch(content):
                content = b""
            try:
                for value in _parse_document(content) if content else ():
                    self._add(value, content)
            except FeatureRefused:
                raise
            except ModelFailed as exc:
                if reader.is_plain:
                    raise
                raise StreamBroken(exc.reason) from exc
            self._assembly.complete |= reader.is_plain or is_last
            if is_last:
                return True
        return False

    def _add(self, value: Any, document: bytes) -> None:
        """Some gateways put a refusal into an answer with status 200."""
        is_error = isinstance(value, dict) and value.get("error")
        if is_error and (feature := refused_feature(_REFUSED, document, self._sent())):
            raise FeatureRefused(feature)
        self._assembly.add(value)


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Reads what ends the body, so that its connection can be used again."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LAST_BYTES_S):
            async for _ in chunks:
                pass


def _before_done(document: bytes) -> tuple[bytes, bool]:
    """What stands before the sign that this was the last, and whether that is there."""
    content = document.strip()
    if content.startswith(_DONE):
        return b"", True
    return content.removesuffix(_DONE).rstrip(), content.endswith(_DONE)


def _parse_document(document: bytes) -> list[Any]:
    """Returns the values in `document`, and those in its lists."""
    try:
        values = json_values(document)
    except ValueError as exc:
        is_page = document.lstrip().startswith(b"<")
        raise ModelFailed("no_completion" if is_page else "malformed") from exc
    return [one for value in values for one in (value if isinstance(value, list) else [value])]
