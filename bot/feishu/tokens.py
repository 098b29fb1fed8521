"""The tenant access token: fetched once for all who wait, renewed early, purged when refused.

Source: Feishu, "Custom apps obtain tenant_access_token": a token lives at most two hours; asking
again returns the same one until less than 30 minutes are left, and the old stays valid to its end.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from bot.feishu.errors import FeishuFailure

_RENEW_S = 30 * 60
_RETRY_RENEWAL_S = 30

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Token:
    """`value` is a secret; `expire_s` is its remaining life in seconds when it was fetched."""

    value: str
    expire_s: float

    def __repr__(self) -> str:
        return f"Token(expire_s={self.expire_s})"


class TenantToken:
    """Hands out a valid token. For one event loop."""

    def __init__(
        self,
        fetch: Callable[[], Awaitable[Token]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetch = fetch
        self._clock = clock
        self._lock = asyncio.Lock()
        self._value = ""
        self._renew_at = 0.0
        self._expires_at = 0.0

    async def get(self) -> str:
        """A token. Raises what the fetch raises when there is none that is still valid."""
        if self._fresh():
            return self._value
        async with self._lock:
            if not self._fresh():
                await self._renew()
            return self._value

    def purge(self, refused_token: str) -> None:
        """Forget `refused_token`; a token fetched in the meantime stays."""
        if self._value == refused_token:
            self._value = ""

    def _fresh(self) -> bool:
        return bool(self._value) and self._clock() < self._renew_at

    async def _renew(self) -> None:
        asked_at = self._clock()
        try:
            token = await self._fetch()
        except FeishuFailure as failure:
            if not self._value or self._clock() >= self._expires_at:
                raise
            # The old token still works: do not ask again for every call meanwhile.
            self._renew_at = min(self._clock() + _RETRY_RENEWAL_S, self._expires_at)
            _log.warning("feishu.token_renewal_failed", reason=type(failure).__name__)
            return
        self._value = token.value
        self._expires_at = asked_at + token.expire_s
        self._renew_at = self._expires_at - min(_RENEW_S, token.expire_s / 4)
