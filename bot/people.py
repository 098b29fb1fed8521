"""Names of people by open_id: learned from mentions, asked of Feishu, kept for a while.

Names are written by people: they are shown and matched, never trusted.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable

import structlog

from bot.feishu.client import FeishuClient
from bot.feishu.errors import FeishuFailure
from bot.mentions import Person, Roster

log = structlog.get_logger()

_KEPT = 20_000
_FRESH_S = 6 * 3600
_ASK_AGAIN_S = 600


class People:
    """A bounded cache of names; `known` is open_id → name.

    Someone unnamed is called by their open_id, which an at-tag shows under their real name anyway.
    """

    def __init__(
        self, feishu: FeishuClient, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._feishu = feishu
        self._clock = clock
        self.known: dict[str, str] = {}
        self._fresh_until: OrderedDict[str, float] = OrderedDict()

    def learn(self, names: Iterable[tuple[str, str]]) -> None:
        """Takes (open_id, name) pairs, for instance of an event's mentions."""
        for open_id, name in names:
            if open_id and name:
                self._keep(open_id, name, self._clock() + _FRESH_S)

    def name(self, open_id: str) -> str:
        """The name as known now, else the open_id."""
        return self.known.get(open_id) or open_id

    def person(self, open_id: str, *, is_bot: bool = False) -> Person:
        return Person(open_id=open_id, name=self.name(open_id), is_bot=is_bot)

    def roster(self, open_ids: Iterable[str]) -> Roster:
        return Roster(tuple(self.person(open_id) for open_id in dict.fromkeys(open_ids) if open_id))

    async def look_up(self, open_ids: Iterable[str], *, timeout_s: float = 2.0) -> None:
        """Asks Feishu for names that are missing or old; silence is an answer too."""
        now = self._clock()
        missing = [i for i in dict.fromkeys(open_ids) if i and self._fresh_until.get(i, 0.0) < now]
        if not missing:
            return
        found: dict[str, str] = {}
        try:
            async with asyncio.timeout(timeout_s):
                found = await self._feishu.names(missing)
        except (TimeoutError, FeishuFailure) as exc:
            log.warning("people.names_unavailable", error=type(exc).__name__)
        for open_id in missing:
            fresh_s = _FRESH_S if open_id in found else _ASK_AGAIN_S
            self._keep(open_id, found.get(open_id, ""), now + fresh_s)

    def _keep(self, open_id: str, name: str, until: float) -> None:
        if name:
            self.known[open_id] = name
        self._fresh_until[open_id] = until
        self._fresh_until.move_to_end(open_id)
        if len(self._fresh_until) > _KEPT:
            oldest, _ = self._fresh_until.popitem(last=False)
            self.known.pop(oldest, None)
