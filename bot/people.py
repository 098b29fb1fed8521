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
_PER_CALL = 10
_CALL_S = 5.0


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
        self._wanted: dict[str, asyncio.Future[None]] = {}
        self._asking: asyncio.Task[None] | None = None

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

    async def look_up(self, open_ids: Iterable[str], *, wait_s: float = 0.5) -> None:
        """Asks Feishu for names that are missing or old, and waits a moment for them.

        Ten names make one call, whoever wants them; a name that comes later is kept for later.
        """
        now = self._clock()
        missing = [i for i in dict.fromkeys(open_ids) if i and self._fresh_until.get(i, 0.0) < now]
        if not missing:
            return
        create = asyncio.get_running_loop().create_future
        waited = [self._wanted.setdefault(open_id, create()) for open_id in missing]
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        await asyncio.wait(waited, timeout=wait_s)

    async def _ask(self) -> None:
        while self._wanted:
            batch = list(self._wanted)[:_PER_CALL]
            found: dict[str, str] = {}
            try:
                async with asyncio.timeout(_CALL_S):
                    found = await self._feishu.names(batch)
            except (TimeoutError, FeishuFailure) as exc:
                log.warning("people.names_unavailable", error=type(exc).__name__)
            for open_id in batch:
                fresh_s = _FRESH_S if open_id in found else _ASK_AGAIN_S
                self._keep(open_id, found.get(open_id, ""), self._clock() + fresh_s)
                self._wanted.pop(open_id).set_result(None)

    def _keep(self, open_id: str, name: str, until: float) -> None:
        if name:
            self.known[open_id] = name
        self._fresh_until[open_id] = until
        self._fresh_until.move_to_end(open_id)
        if len(self._fresh_until) > _KEPT:
            oldest, _ = self._fresh_until.popitem(last=False)
            self.known.pop(oldest, None)
