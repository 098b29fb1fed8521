"""What Feishu refused for want of a scope: it is not asked again there for a while.

A refusal holds for one API, and for one kind of chat where Feishu says so: messages of groups need
im:message.group_msg (230027), those of p2p chats do not.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from bot.feishu.errors import SCOPE_OF_CHAT, FeishuError, FeishuFailure

if TYPE_CHECKING:
    from bot.feishu.client import FeishuClient

log = structlog.get_logger()

_STANDS_S = 600.0
_LOOKED_UP_S = 60.0  # how long a list of granted scopes counts as new
_LOOKED_UP_WHERE_REFUSED_S = 5.0  # the same where somebody is waiting for what was refused
_LOOK_UP_S = 2.0


@dataclass(frozen=True, slots=True)
class _Refusal:
    until: float
    scopes: tuple[str, ...]


class Denials:
    """The refusals that this process met, and the scopes that Feishu listed. `clock` is monotonic
    seconds; a refusal stands for `stands_s`."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, *, stands_s: float = _STANDS_S
    ) -> None:
        self._clock = clock
        self._stands_s = stands_s
        self._refused: dict[tuple[str, str], _Refusal] = {}
        self._granted: Collection[str] | None = None
        self._looked_up = -_LOOKED_UP_S

    def stands(self, api: str, chat_type: str = "") -> bool:
        """Whether `api` was refused lately, everywhere or in this kind of chat."""
        refusals = [self._refused.get((api, "")), self._refused.get((api, chat_type))]
        return any(one and self._clock() < one.until for one in filter(None, refusals))

    def note(self, api: str, chat_type: str = "", error: FeishuError | None = None) -> None:
        """`api` was refused just now. A refusal that names no scope of a kind of chat is of one
        chat alone, such as an external group, and is not remembered."""
        scopes = error.scopes if error else ()
        of_chat = error is not None and error.code == SCOPE_OF_CHAT
        if of_chat and (chat_type == "p2p" or not scopes):
            return
        key = (api, chat_type if of_chat else "")
        if error and scopes and key not in self._refused:
            log.error(
                "feishu.scope_missing",
                api=api,
                chat_type=key[1],
                code=error.code,
                scopes=scopes,
                next_step="grant one of these scopes and publish a version; see scripts/doctor",
            )
        self._refused[key] = _Refusal(self._clock() + self._stands_s, scopes)

    def allow(self, api: str, chat_type: str = "") -> None:
        """`api` works. What had refused it is granted, so other APIs may be asked again too."""
        refusals = [self._refused.pop((api, kind), None) for kind in {"", chat_type}]
        granted_scopes = {scope for one in refusals if one for scope in one.scopes}
        if granted_scopes:
            self._forget(granted_scopes)
            self._granted = None

    def learn(self, granted_scopes: Collection[str]) -> None:
        """Feishu lists these scopes as granted."""
        self._granted = granted_scopes
        self._forget(granted_scopes)

    def lacks(self, scope: str) -> bool:
        """Whether the app is known to lack it."""
        is_missing = self._granted is not None and scope not in self._granted
        return is_missing or any(
            scope in one.scopes and self._clock() < one.until for one in self._refused.values()
        )

    def take_look_up(self, every_s: float) -> bool:
        """Whether the granted scopes were not looked up lately. Then the caller does it now."""
        now = self._clock()
        is_due = now - self._looked_up >= every_s
        if is_due:
            self._looked_up = now
        return is_due

    def _forget(self, granted_scopes: Collection[str]) -> None:
        refusals_left = {
            key: one
            for key, one in self._refused.items()
            if not any(scope in granted_scopes for scope in one.scopes)
        }
        if len(refusals_left) < len(self._refused):
            log.info("feishu.scope_granted", scopes=sorted(granted_scopes))
        self._refused = refusals_left


async def lacks_scope(feishu: FeishuClient, denials: Denials, scope: str) -> bool:
    """Whether the app lacks the scope, as Feishu lists it now; as far as it is known where Feishu
    does not answer."""
    await _look_up(feishu, denials, _LOOKED_UP_S)
    return denials.lacks(scope)


async def is_still_refused(
    feishu: FeishuClient, denials: Denials, api: str, chat_type: str = ""
) -> bool:
    """Whether the refusal of `api` still stands: not once Feishu lists what was missing."""
    if denials.stands(api, chat_type):
        await _look_up(feishu, denials, _LOOKED_UP_WHERE_REFUSED_S)
    return denials.stands(api, chat_type)


async def _look_up(feishu: FeishuClient, denials: Denials, every_s: float) -> None:
    if not denials.take_look_up(every_s):
        return
    try:
        async with asyncio.timeout(_LOOK_UP_S):
            denials.learn(await feishu.granted_scopes())
    except (TimeoutError, FeishuFailure) as exc:
        log.info("feishu.scopes_unknown", error=type(exc).__name__)
