"""The memory over Supabase's API: one shared client, the person's token on each request."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import Any

import httpx
from supabase import AsyncClient, AsyncClientOptions

from memory.backends.supabase_answers import (
    READ_FUNCTIONS,
    refusal_error,
    require_json,
    require_shape,
)
from memory.backends.supabase_credentials import Credentials, SigningKey
from memory.errors import StoreConnectionLost, StoreUnavailable
from memory.proxies import proxy_for
from memory.scope import AgentMemoryContext, Sharing

_ATTEMPTS = 8
_APART_S = 1.0
_LOST = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError, httpx.CloseError)


class SupabaseRpc:
    """Calls SQL functions through PostgREST.

    A turn's call carries the publishable key and the person's own token, so the database enforces
    the audience rule; the secret key is for calls of the service.
    """

    def __init__(
        self,
        url: str,
        *,
        publishable_key: str,
        secret_key: str,
        signing: SigningKey,
        timeout_s: float = 5.0,
        sharing: Sharing = "chat",
    ) -> None:
        self._open_http = partial(
            httpx.AsyncClient,
            http2=url.startswith("https://"),
            verify=_trusted_context(),
            trust_env=False,
            proxy=proxy_for(url),
            timeout=timeout_s,
            limits=httpx.Limits(max_connections=64, max_keepalive_connections=64),
            event_hooks={"response": [self._require_result]},
        )
        self._http = self._open_http()
        self._apart_until = 0.0
        options = AsyncClientOptions(
            httpx_client=self._http,
            auto_refresh_token=False,
            persist_session=False,
            postgrest_client_retry=False,
        )
        self._client = AsyncClient(url, publishable_key, options)
        self._credentials = Credentials(publishable_key, secret_key, signing, sharing)
        self._timeout_s = timeout_s

    async def call(
        self, function: str, params: Mapping[str, object], context: AgentMemoryContext | None
    ) -> Any:
        """A read whose connection ends is made again: the edge of a hosted project ends one now and
        then, and with it all calls that are under way."""
        attempts = _ATTEMPTS if function in READ_FUNCTIONS else 1
        try:
            async with asyncio.timeout(self._timeout_s):
                for _ in range(attempts - 1):
                    with contextlib.suppress(StoreConnectionLost):
                        return await self._call_once(function, params, context)
                return await self._call_once(function, params, context)
        except TimeoutError as exc:
            raise StoreUnavailable(f"{function} took longer than {self._timeout_s} s") from exc

    async def _call_once(
        self, function: str, params: Mapping[str, object], context: AgentMemoryContext | None
    ) -> Any:
        request = self._client.postgrest.rpc(function, dict(params))  # type: ignore[arg-type]
        # The builder's headers are its own; the client's are shared by all turns and never changed.
        headers = request.request.headers
        headers.pop("Authorization", None)
        headers.update(self._credentials.headers(context))
        try:
            async with self._connected() as request.request.session:
                return require_shape(function, (await request.execute()).data)
        except _LOST as exc:
            self._apart_until = time.monotonic() + _APART_S
            raise StoreConnectionLost(f"{function}: {type(exc).__name__}") from exc
        except httpx.HTTPError as exc:
            raise StoreUnavailable(f"{function}: {type(exc).__name__}") from exc

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[httpx.AsyncClient]:
        """The client that calls share. Just after a connection ended, one with a connection for
        this call alone: where they keep ending, each fails one call only."""
        if time.monotonic() >= self._apart_until:
            yield self._http
            return
        async with self._open_http() as http:
            yield http

    async def close(self) -> None:
        await self._http.aclose()

    async def _require_result(self, response: httpx.Response) -> None:
        """Raises unless the response is a result. The client below would lose the status, and
        would take a body that is not JSON for one."""
        function = response.url.path.rsplit("/", 1)[-1]
        if not response.is_success:
            names = self._credentials.named(response.request.headers)
            raise refusal_error(function, response.status_code, await response.aread(), names)
        if response.status_code == httpx.codes.NO_CONTENT:
            require_json(function, b"")
            return
        if "json" not in response.headers.get("content-type", ""):
            raise StoreUnavailable(f"{function}: the answer is not PostgREST's: check SUPABASE_URL")
        require_json(function, await response.aread())


@cache
def _trusted_context() -> ssl.SSLContext:
    """Made once a process: reading the authorities that everybody trusts takes 20 ms."""
    return httpx.create_ssl_context()
