"""The memory over Supabase's API: one shared client, the person's token on each request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx
import jwt
from supabase import AsyncClient, AsyncClientOptions

from memory.backends.refusals import AS_PERSON, AS_SERVICE, refusal
from memory.errors import StoreUnavailable
from memory.scope import AgentMemoryContext

_LIFETIME_S = 300
_CACHED_TOKENS = 2000


class TokenMinter:
    """Short-lived tokens (HS256, 5 minutes) that carry the claims of one turn.

    Source: Supabase, “JWTs”; the secret is the project's JWT secret.
    """

    def __init__(self, secret: str, *, clock: Callable[[], float] = time.time) -> None:
        self._secret = secret
        self._clock = clock
        self._cache: dict[AgentMemoryContext, tuple[float, str]] = {}

    def token(self, context: AgentMemoryContext) -> str:
        """A token for `context` with at least half of its life left."""
        now = self._clock()
        expires, token = self._cache.get(context, (0.0, ""))
        if expires - now > _LIFETIME_S / 2:
            return token
        if len(self._cache) >= _CACHED_TOKENS:
            self._cache.clear()
        expires = now + _LIFETIME_S
        claims = {
            **context.claims(),
            "aud": "authenticated",
            "iat": int(now),
            "exp": int(expires),
        }
        token = jwt.encode(claims, self._secret, algorithm="HS256")
        self._cache[context] = (expires, token)
        return token


class SupabaseRpc:
    """Calls SQL functions through PostgREST.

    With `jwt_secret` each call carries the publishable key and the person's own token, so the
    database enforces isolation. Without it the secret key is used and only the explicit filters
    of the SQL functions keep people apart.
    """

    def __init__(
        self,
        url: str,
        *,
        publishable_key: str,
        secret_key: str,
        jwt_secret: str | None,
        timeout_s: float = 5.0,
    ) -> None:
        self._http = httpx.AsyncClient(
            http2=url.startswith("https://"),
            timeout=timeout_s,
            limits=httpx.Limits(max_connections=64, max_keepalive_connections=64),
            event_hooks={"response": [self._require_result]},
        )
        options = AsyncClientOptions(
            httpx_client=self._http,
            auto_refresh_token=False,
            persist_session=False,
            postgrest_client_retry=False,
        )
        self._client = AsyncClient(url, publishable_key, options)
        self._publishable_key = publishable_key
        self._secret_key = secret_key
        self._minter = TokenMinter(jwt_secret) if jwt_secret else None
        self._timeout_s = timeout_s

    async def call(
        self, function: str, params: Mapping[str, object], context: AgentMemoryContext | None
    ) -> Any:
        request = self._client.postgrest.rpc(function, dict(params))  # type: ignore[arg-type]
        # The builder's headers are its own; the client's are shared by all turns and never changed.
        headers = request.request.headers
        headers.pop("Authorization", None)
        headers.update(self._credentials(context))
        try:
            async with asyncio.timeout(self._timeout_s):
                return (await request.execute()).data
        except TimeoutError as exc:
            raise StoreUnavailable(f"{function} took longer than {self._timeout_s} s") from exc
        except httpx.HTTPError as exc:
            raise StoreUnavailable(f"{function}: {type(exc).__name__}") from exc

    async def close(self) -> None:
        await self._http.aclose()

    async def _require_result(self, response: httpx.Response) -> None:
        """Raises for what is no result, with the status, which the client below would lose."""
        function = response.url.path.rsplit("/", 1)[-1]
        if not response.is_success:
            as_person = response.request.headers["apikey"] == self._publishable_key
            credentials = AS_PERSON if as_person else AS_SERVICE
            raise refusal(function, response.status_code, await response.aread(), credentials)
        if response.status_code != 204 and "json" not in response.headers.get("content-type", ""):
            raise StoreUnavailable(f"{function}: the answer is not PostgREST's: check SUPABASE_URL")

    def _credentials(self, context: AgentMemoryContext | None) -> dict[str, str]:
        if context and self._minter:
            token = self._minter.token(context)
            return {"apikey": self._publishable_key, "Authorization": f"Bearer {token}"}
        key = self._secret_key
        # A legacy service key is a JWT; an opaque secret key is not and goes into apikey only.
        bearer = {"Authorization": f"Bearer {key}"} if key.startswith("eyJ") else {}
        return {"apikey": key, **bearer}
