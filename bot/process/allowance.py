"""Who has used up what USAGE_LIMIT_… allows for a day, as a worker last heard. Pure.

It is heard every few seconds beside the turns, so a limit may be exceeded by what was asked in
them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Literal

Limit = Literal["person", "chat"]


@dataclass
class Allowance:
    """Nobody has used anything up before `hear`."""

    _day: date | None = None
    _people: frozenset[str] = frozenset()
    _chats: frozenset[str] = frozenset()

    def hear(self, day: date, people: Iterable[str], chats: Iterable[str]) -> None:
        """open_ids and chats that have used up what `day` allows."""
        self._day, self._people, self._chats = day, frozenset(people), frozenset(chats)

    def reached(self, day: date, open_id: str, chat_id: str) -> Limit | None:
        """Which limit stands in the way of a question that is asked on `day`."""
        if day != self._day:
            return None
        if open_id in self._people:
            return "person"
        return "chat" if chat_id in self._chats else None
