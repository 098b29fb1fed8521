"""Records of turns on their way to the database: collected here, written some at a time.

A turn waits for none of it. What a worker that is killed had not written yet is lost, two seconds
of records; answers never are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

_MOST = 5000


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """What a turn was made of: ids, counts and times; `at` is aware, its zone says which day."""

    turn_id: str
    at: datetime
    fields: Mapping[str, Any]

    def row(self) -> dict[str, Any]:
        """As `keep_turn_records` takes it."""
        day = self.at.date().isoformat()
        return {"turn_id": self.turn_id, "day": day, "record": dict(self.fields)}


@dataclass
class TurnRecords:
    """Those that are not written yet; the oldest go when nobody takes them."""

    _waiting: deque[TurnRecord] = field(default_factory=lambda: deque(maxlen=_MOST))

    def add(self, record: TurnRecord) -> None:
        self._waiting.append(record)

    def take(self) -> list[TurnRecord]:
        """All of them, to be written."""
        records = list(self._waiting)
        self._waiting.clear()
        return records

    def put_back(self, records: list[TurnRecord]) -> None:
        """They could not be written: before those that have come since."""
        self._waiting.extendleft(reversed(records))
