"""An OpenAI-compatible endpoint. The SDK and its transport are loaded with the first request."""

from __future__ import annotations

import asyncio
import importlib
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

TIMEOUT_S = 60.0
RETRIES = 2


class Endpoint:
    """One endpoint and the connections to it; `await close()` at the end.

    `timeout_s` is for connecting and for each wait for more of a response; what failed before there
    was a response is tried again `retries` times, after as long as Retry-After says.
    """

    def __init__(
        self,
        api_key: str,
        base_url: str = "",
        *,
        timeout_s: float = TIMEOUT_S,
        retries: int = RETRIES,
    ) -> None:
        self._key, self._base_url = api_key, base_url
        self._timeout_s, self._retries = timeout_s, retries
        self._opened: AsyncOpenAI | None = None
        # Until the endpoint refuses to be asked for it.
        self.reports_usage_of_streams = True

    async def client(self) -> AsyncOpenAI:
        """The SDK's client."""
        if self._opened is None:
            sdk = await asyncio.to_thread(importlib.import_module, "bot.agents.sdk")
            self._opened = self._opened or sdk.open_client(
                self._key, self._base_url, timeout_s=self._timeout_s, retries=self._retries
            )
        return self._opened

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()

    async def posted(
        self, path: str, body: bytes, *, stream: bool = False
    ) -> AbstractAsyncContextManager[httpx2.Response]:
        """`bot.agents.sdk.posted` with this endpoint's client."""
        client = await self.client()
        from bot.agents import sdk  # loaded by now

        return sdk.posted(client, path, body, stream=stream)
