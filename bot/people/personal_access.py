"""Calls to Feishu as a person: their access token, for that call alone.

A refresh token works once. So one worker refreshes, and says so in the database before it does;
what it got is kept or thrown away there. Whoever dies in between leaves a grant that is over, and
the person is asked to connect again (`bot.features.connect`).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import structlog

from bot.feishu.authorization import NotGranted, UserAuthorization
from bot.feishu.errors import FeishuError, FeishuFailure, Unreachable
from memory.errors import StoreError, StoreUnavailable
from memory.scope import FeishuPerson
from memory.tables.user_tokens import STALE_S, Access, GrantEnd, NoToken, TokenPair, UserTokenStore

log = structlog.get_logger()

ResultT = TypeVar("ResultT")

_REFRESH_S = 20.0
_KEEP_S = 12.0  # with the time to refresh less than STALE_S
_PAUSE_S = 0.2
_NOT_TAKEN = frozenset({99991668, 99991677, 20005})  # the token is unknown, revoked or over
_END_REASONS: dict[str, GrantEnd | Literal[""]] = {"later": "", "app": "", "expired": "expired"}


class NotConnected(Exception):
    """The bot may not act as this person. `ended` says why it no longer may, "": it never might, or
    they ended it."""

    def __init__(self, end_reason: GrantEnd | Literal[""] = "") -> None:
        super().__init__(f"this person is not connected ({end_reason or 'nothing is granted'})")
        self.ended = end_reason


@dataclass(frozen=True, slots=True)
class UserToken:
    """Speaks for `open_id` in the calls that are made for them, and is kept nowhere else."""

    open_id: str
    access_token: str = field(repr=False)
    scopes: tuple[str, ...] = ()


class PersonalAccess:
    """Makes calls as people. `close` when done."""

    def __init__(
        self,
        store: UserTokenStore,
        authorization: UserAuthorization,
        *,
        stale_s: int = STALE_S,
    ) -> None:
        self.store = store
        self.authorization = authorization
        self._stale_s = stale_s
        self._refreshing: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Lets refreshing end, and closes the connections."""
        if self._refreshing:
            await asyncio.wait(self._refreshing, timeout=_KEEP_S)
        await self.authorization.close()

    async def call(
        self, person: FeishuPerson, make: Callable[[UserToken], Awaitable[ResultT]]
    ) -> ResultT:
        """What `make` gives with the token of `person`. Where Feishu does not take the token it is
        called once more, with another. Raises `NotConnected`, `StoreError` and `FeishuFailure`."""
        access = await self._access(person)
        try:
            return await make(_token(person, access))
        except FeishuError as error:
            if error.code not in _NOT_TAKEN:
                raise
            log.info("identity.token_not_taken", code=error.code, log_id=error.log_id)
            await self.store.spend(person, access)
        return await make(_token(person, await self._access(person)))

    async def _access(self, person: FeishuPerson) -> Access:
        waited_s = 0.0
        while True:
            holder = secrets.token_hex(8)
            access = await self.store.use(person, holder, stale_s=self._stale_s)
            if isinstance(access, Access):
                return access
            if isinstance(access, NoToken):
                raise NotConnected(access.ended)
            if access.refresh:
                await self._refresh_shielded(person, holder, access.refresh)
                continue
            if waited_s > self._stale_s + _REFRESH_S:
                raise StoreUnavailable("another worker refreshes the token for too long")
            await asyncio.sleep(_PAUSE_S)
            waited_s += _PAUSE_S

    async def _refresh_shielded(self, person: FeishuPerson, holder: str, refresh: str) -> None:
        """A stopped turn does not end it: the token would be lost."""
        task = asyncio.create_task(self._refresh(person, holder, refresh))
        self._refreshing.add(task)
        task.add_done_callback(self._refreshing.discard)
        await asyncio.shield(task)

    async def _refresh(self, person: FeishuPerson, holder: str, refresh: str) -> None:
        end_reason: GrantEnd | Literal[""]
        failure: FeishuFailure
        try:
            async with asyncio.timeout(_REFRESH_S):
                pair = await self.authorization.refresh(refresh)
        except NotGranted as exc:
            end_reason = _END_REASONS.get(exc.kind, "refused")
            failure = Unreachable(f"no token for now ({exc.code})", maybe_done=False)
            log.warning("identity.not_refreshed", kind=exc.kind, code=exc.code, ended=end_reason)
        except (Unreachable, TimeoutError) as exc:
            end_reason = "lost" if getattr(exc, "maybe_done", True) else ""
            failure = exc if isinstance(exc, Unreachable) else Unreachable("TimeoutError")
            log.warning("identity.not_refreshed", error=type(exc).__name__, ended=end_reason)
        else:
            is_kept = await self._keep(person, holder, pair)
            log.info("identity.refreshed", kept=is_kept)
            return
        await self.store.end_refresh(person, holder, end_reason)
        if not end_reason:
            raise failure

    async def _keep(self, person: FeishuPerson, holder: str, pair: TokenPair) -> bool:
        """Tries for a while: without it the token is lost."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _KEEP_S
        while True:
            try:
                return await self.store.keep_refreshed(person, holder, pair)
            except StoreError as exc:
                if not isinstance(exc, StoreUnavailable) or loop.time() > until:
                    raise
                log.warning("identity.keeping_waits", error=type(exc).__name__)
                await asyncio.sleep(_PAUSE_S)


def _token(person: FeishuPerson, access: Access) -> UserToken:
    return UserToken(person.open_id, access.token, access.scopes)
