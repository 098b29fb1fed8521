"""Places for reading files, shared fairly between people and chats.

One person holds one place and one chat two, so nobody's files keep everybody else's waiting. A free
place goes to the person whose turn was longest ago, then to the chat.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from itertools import count

PLACES = 3
OF_A_CHAT = 2
OF_A_PERSON = 1


class NoPlace(Exception):
    """No place became free in time."""


@dataclass(eq=False, slots=True)
class _Request:
    person: str
    chat: str
    admitted: asyncio.Future[None]


@dataclass(slots=True)
class Places:
    """For one event loop."""

    _waiting: list[_Request] = field(default_factory=list)
    _holding: list[_Request] = field(default_factory=list)
    _turns: count[int] = field(default_factory=lambda: count(1))
    _last_turn: dict[tuple[str, str], int] = field(default_factory=dict)

    @contextlib.asynccontextmanager
    async def hold(self, person: str, chat: str, *, within_s: float) -> AsyncIterator[None]:
        """Holds a place while it is entered. Raises `NoPlace` after `within_s` of waiting."""
        request = _Request(person, chat, asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        self._admit()
        try:
            await self._admission(request, within_s)
            yield
        finally:
            (self._waiting if request in self._waiting else self._holding).remove(request)
            self._admit()

    async def _admission(self, request: _Request, within_s: float) -> None:
        try:
            async with asyncio.timeout(within_s):
                await request.admitted
        except TimeoutError as exc:
            raise NoPlace from exc

    def _admit(self) -> None:
        while fitting := [one for one in self._waiting if self._fits(one)]:
            request = min(fitting, key=self._rank)
            self._waiting.remove(request)
            self._holding.append(request)
            turn = next(self._turns)
            self._last_turn |= {("person", request.person): turn, ("chat", request.chat): turn}
            if not request.admitted.done():
                request.admitted.set_result(None)
        if not self._waiting and not self._holding:
            self._last_turn.clear()

    def _fits(self, request: _Request) -> bool:
        of_person = sum(one.person == request.person for one in self._holding)
        of_chat = sum(one.chat == request.chat for one in self._holding)
        return len(self._holding) < PLACES and of_person < OF_A_PERSON and of_chat < OF_A_CHAT

    def _rank(self, request: _Request) -> tuple[int, int]:
        """`min` keeps the order of arrival among equals."""
        person, chat = ("person", request.person), ("chat", request.chat)
        return self._last_turn.get(person, 0), self._last_turn.get(chat, 0)
