"""What a call to Supabase shows: whose token, and which key."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from memory.backends.refusals import AS_SERVICE, Named, as_person
from memory.backends.signing import SigningKey
from memory.scope import AgentMemoryContext, Sharing

_LIFETIME_S = 300
_CACHED_TOKENS = 2000


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
        self._as_person = as_person(signing.variable)

    def headers(self, context: AgentMemoryContext | None) -> dict[str, str]:
        """The headers of a call for `context`; None: for the service."""
        if context:
            token = self._minter.token(context)
            return {"apikey": self._publishable_key, "Authorization": f"Bearer {token}"}
        key = self._secret_key
        # A legacy service key is a JWT; an opaque secret key is not and goes into apikey only.
        bearer = {"Authorization": f"Bearer {key}"} if key.startswith("eyJ") else {}
        return {"apikey": key, **bearer}

    def named(self, headers: Mapping[str, str]) -> Named:
        """The variables that `headers` were made of."""
        return AS_SERVICE if headers["apikey"] == self._secret_key else self._as_person
