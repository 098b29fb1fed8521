"""The memory over Supabase's API: one shared client, the person's signed token on each request.

Importing this module loads PyJWT and cryptography, so processes without Supabase import it
lazily.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import httpx
import jwt
from supabase import AsyncClient, AsyncClientOptions

from memory.backends.supabase_answers import (
    READ_FUNCTIONS,
    SERVICE_VARIABLES,
    KeyVariables,
    person_variables,
    refusal_error,
    require_json,
    require_shape,
)
from memory.errors import StoreConnectionLost, StoreUnavailable
from memory.proxies import proxy_for
from memory.scope import AgentMemoryContext, Sharing
from memory.text import storable_value

_ATTEMPTS = 8
_APART_S = 1.0
_LOST = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError, httpx.CloseError)
_LIFETIME_S = 300
_CACHED_TOKENS = 2000
SECRET_VARIABLE = "SUPABASE_JWT_SECRET"  # noqa: S105 - the variable's name
PRIVATE_KEY_VARIABLE = "SUPABASE_JWT_PRIVATE_KEY"
_ALGORITHMS = {"EC": "ES256", "RSA": "RS256"}
_LEAST_BITS = 2048  # RFC 7518, 3.3


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
        request = self._client.postgrest.rpc(function, storable_value(params))
        # The builder's headers are its own; the client's are shared by all turns and never changed.
        headers = request.request.headers
        headers.pop("Authorization", None)
        headers.update(self._credentials.headers(context))
        try:
            async with self._client_in_use() as request.request.session:
                return require_shape(function, (await request.execute()).data)
        except _LOST as exc:
            self._apart_until = time.monotonic() + _APART_S
            raise StoreConnectionLost(f"{function}: {type(exc).__name__}") from exc
        except httpx.HTTPError as exc:
            raise StoreUnavailable(f"{function}: {type(exc).__name__}") from exc

    @asynccontextmanager
    async def _client_in_use(self) -> AsyncIterator[httpx.AsyncClient]:
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
            names = self._credentials.variables_of(response.request.headers)
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


class TokenMinter:
    """Short-lived tokens (5 minutes) with the claims of one turn. Source: Supabase, “JWTs”."""

    def __init__(
        self,
        signing: SigningKey,
        *,
        sharing: Sharing = "chat",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._signing = signing
        self._sharing: Sharing = sharing
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
            **context.claims(self._sharing),
            "aud": "authenticated",
            "iat": int(now),
            "exp": int(expires),
        }
        token = self._signing.sign(claims)
        self._cache[context] = (expires, token)
        return token


class Credentials:
    """A person's call carries the publishable key and a token of their own, the service's carries
    the secret key."""

    def __init__(
        self,
        publishable_key: str,
        secret_key: str,
        signing: SigningKey,
        sharing: Sharing = "chat",
    ) -> None:
        self._publishable_key = publishable_key
        self._secret_key = secret_key
        self._minter = TokenMinter(signing, sharing=sharing)
        self._as_person = person_variables(signing.variable)

    def headers(self, context: AgentMemoryContext | None) -> dict[str, str]:
        """The headers of a call for `context`; None: for the service."""
        if context:
            token = self._minter.token(context)
            return {"apikey": self._publishable_key, "Authorization": f"Bearer {token}"}
        key = self._secret_key
        # A legacy service key is a JWT; an opaque secret key is not and goes into apikey only.
        bearer = {"Authorization": f"Bearer {key}"} if key.startswith("eyJ") else {}
        return {"apikey": key, **bearer}

    def variables_of(self, headers: Mapping[str, str]) -> KeyVariables:
        """The variables that `headers` were made of."""
        return SERVICE_VARIABLES if headers["apikey"] == self._secret_key else self._as_person


class MalformedKey(ValueError):
    """Half a sentence that says what is wrong with a JWK, and holds nothing of it."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key, its algorithm, the id under which the project knows it ("": it has one secret), and
    the variable it comes from."""

    key: Any = field(repr=False)
    algorithm: str
    key_id: str
    variable: str

    def sign(self, claims: Mapping[str, object]) -> str:
        """The token, in compact form."""
        headers = {"kid": self.key_id} if self.key_id else None
        return jwt.encode(dict(claims), self.key, algorithm=self.algorithm, headers=headers)


def signing_key(*, secret: str = "", private_key: str = "") -> SigningKey:
    """The private key where there is one, else the secret. Raises `MalformedKey`."""
    return key_of_jwk(private_key) if private_key else key_of_secret(secret)


def key_of_secret(secret: str) -> SigningKey:
    """The shared secret of older projects."""
    if not secret:
        raise MalformedKey(f"neither {PRIVATE_KEY_VARIABLE} nor {SECRET_VARIABLE} is given")
    return SigningKey(secret, "HS256", "", SECRET_VARIABLE)


def key_of_jwk(text: str) -> SigningKey:
    """A private key as a JWK: EC on P-256 or RSA, with its id. Raises `MalformedKey`."""
    try:
        jwk = json.loads(text)
    except ValueError:
        raise MalformedKey("is no JSON") from None
    if not isinstance(jwk, dict):
        raise MalformedKey("is not one JWK, a JSON object")
    algorithm = _ALGORITHMS.get(str(jwk.get("kty")), "")
    if not algorithm or jwk.get("alg", algorithm) != algorithm:
        raise MalformedKey("is a key of another kind than ES256 and RS256")
    if not jwk.get("d"):
        raise MalformedKey("holds the public half only")
    if not isinstance(jwk.get("kid"), str) or not jwk["kid"]:
        raise MalformedKey("has no kid, by which Supabase finds the public key")
    try:
        key = jwt.PyJWK(jwk, algorithm=algorithm).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        raise MalformedKey("is damaged: no key can be made of it") from None
    if key.key_size < _LEAST_BITS and algorithm == "RS256":
        raise MalformedKey(f"is an RSA key of fewer than {_LEAST_BITS} bits")
    if algorithm == "ES256" and jwk.get("crv") != "P-256":
        raise MalformedKey("is on another curve than P-256")
    return SigningKey(key, algorithm, jwk["kid"], PRIVATE_KEY_VARIABLE)
