"""An OpenAI-compatible endpoint: one POST of our own, and the SDK where that is not enough.

The SDK does much for each request that a request that succeeds has no use for (its share of a
mention was a tenth of the worker's time), and 20 MB come with it. So it is loaded, and asked, when
a request did not succeed at once: it decides what that means and whether to try again.
"""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypeGuard

import aiohttp

from bot.agents.llm import http_post
from bot.agents.llm.http_post import HttpRefusal, HttpReply, Poster
from bot.agents.llm.model import FeatureRefused, ModelFailed
from bot.agents.llm.model_abilities import Abilities
from bot.agents.llm.refusals import Sent, is_used_up, refused_feature
from bot.agents.llm.request_line import LONGEST_WAIT_S, RequestLine
from bot.process.working_places import waiting

if TYPE_CHECKING:
    from types import ModuleType

    from openai import AsyncOpenAI

TIMEOUT_S = 60.0
RETRIES = 2
_OPENAI = "https://api.openai.com/v1"
_SUCCESS = range(200, 300)
_TOO_MANY = 429


class Endpoint:
    """One endpoint and the connections to it; `await close()` at the end.

    `timeout_s` is for connecting and for each wait for more of a response; what failed before there
    was a response is tried again `retries` times, after as long as Retry-After says. What the
    models refuse is remembered for all that ask through it.
    """

    def __init__(
        self,
        api_key: str,
        base_url: str = "",
        *,
        timeout_s: float = TIMEOUT_S,
        retries: int = RETRIES,
    ) -> None:
        self._key, self._base_url = api_key, base_url or _OPENAI
        self._timeout_s, self._retries = timeout_s, retries
        self._poster = Poster(self._key, self._base_url, timeout_s=timeout_s)
        self._client: AsyncOpenAI | None = None
        self._abilities: dict[str, Abilities] = {}
        self._lines: dict[str, RequestLine] = {}

    def abilities(self, model: str) -> Abilities:
        """What `model` is known not to take here."""
        return self._abilities.setdefault(model, Abilities())

    def line(self, model: str) -> RequestLine:
        """The line in front of `model`: providers limit each model by itself."""
        if model not in self._lines:
            self._lines[model] = RequestLine(model)
        return self._lines[model]

    async def close(self) -> None:
        await self._poster.close()
        if self._client is not None:
            await self._client.close()

    @asynccontextmanager
    async def posted(
        self,
        path: str,
        body: bytes,
        *,
        stream: bool = False,
        sent: Sent = frozenset,
        line: RequestLine | None = None,
        waits_s: float = LONGEST_WAIT_S,
    ) -> AsyncIterator[HttpReply]:
        """The response to a POST, its connection free again at the end. `sent` gives the features
        of the request that could be refused. It waits in `line` for its turn, `waits_s` at most,
        and again when there are too many.

        Raises `ModelFailed` and `Declined`; `FeatureRefused` when the endpoint does not take one of
        the features, `StreamBroken` when the response breaks off while it is read.
        """
        line = line or RequestLine()
        with waiting():
            while True:
                async with line.admitted(waits_s) as admission:
                    met = await self._first(path, body)
                    if (
                        self._retries
                        and _is_too_many(met)
                        and admission.refused(_retry_after_s(met))
                    ):
                        continue
                    async with self._answered(path, body, met, stream=stream, sent=sent) as reply:
                        yield reply.noting(admission.answered, at_once=not stream)
                    return

    @asynccontextmanager
    async def _answered(
        self,
        path: str,
        body: bytes,
        met: aiohttp.ClientResponse | HttpRefusal | Exception,
        *,
        stream: bool,
        sent: Sent,
    ) -> AsyncIterator[HttpReply]:
        """The response that `met` is, or what another attempt gives."""
        if isinstance(met, HttpRefusal) and (
            feature := refused_feature(met.status, met.body, sent())
        ):
            raise FeatureRefused(feature)
        if isinstance(met, aiohttp.ClientResponse):
            async with met:
                try:
                    yield http_post.reply(met)
                except (aiohttp.ClientError, TimeoutError) as exc:
                    raise http_post.broken(exc) from exc
            return
        sdk = await self._sdk()
        async with sdk.answered(self._client, path, body, met, stream=stream, sent=sent) as again:
            yield again

    async def _first(
        self, path: str, body: bytes
    ) -> aiohttp.ClientResponse | HttpRefusal | Exception:
        """The answer when it has begun well, else what stood in its place."""
        try:
            answer = await self._poster.post(path, body)
            if answer.status in _SUCCESS:
                return answer
            async with answer:
                return await http_post.refused(answer)
        except (aiohttp.ClientError, OSError) as exc:
            return exc
        except ValueError as exc:  # no header can carry the key
            raise ModelFailed("wrong_key") from exc

    async def _sdk(self) -> ModuleType:
        """`bot.agents.llm.openai_client`, and its client open."""
        sdk = await asyncio.to_thread(importlib.import_module, "bot.agents.llm.openai_client")
        self._client = self._client or sdk.open_client(
            self._key, self._base_url, timeout_s=self._timeout_s, retries=self._retries
        )
        return sdk


def _is_too_many(met: object) -> TypeGuard[HttpRefusal]:
    """Whether the model refuses because of other requests, and not because all is used up."""
    return isinstance(met, HttpRefusal) and met.status == _TOO_MANY and not is_used_up(met.body)


def _retry_after_s(refusal: HttpRefusal) -> float:
    """What the model asks to wait, in seconds; 0 where it does not say."""
    wanted = refusal.headers.get("Retry-After", "")
    try:
        return max(0.0, float(wanted))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(wanted).timestamp() - time.time())
    except ValueError:
        return 0.0
