"""What a turn is and what it came from; and the id that follows from that. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from memory.text import as_json

Kind = Literal[
    "message",
    "button",
    "again",
    "retry",
    "reaction",
    "reminder",
    "digest",
    "unasked",
    "offer",
    "private_answer",
]


@dataclass(frozen=True, slots=True)
class Origin:
    """A turn's origin. An `again` is a second answer that somebody pressed for, a `retry` one that
    an operator wanted after the word that there is none.

    `parent_id` is the turn that it came from, of a reminder or digest the timer, of a button in the
    bot's menu the item; "" where it answers a message as it was written. `cause` is what of the
    parent led to it: the button, the time of the timer or of the press in the menu, the number of
    the retry; "" where the parent leads to one only.
    """

    kind: Kind = "message"
    parent_id: str = ""
    cause: str = ""

    @property
    def turn_id(self) -> str:
        """The id of a turn that came from something else: however often that comes, there is one.
        It is a key and tells nothing."""
        whole = json.dumps([self.kind, self.parent_id, self.cause])
        return hashlib.sha256(whole.encode()).hexdigest()[:32]

    @property
    def is_pressed(self) -> bool:
        """Whether somebody pressed the question and did not write it."""
        return self.kind in ("button", "again")

    def row(self) -> dict[str, str] | None:
        """As it is kept; None: a message's."""
        if self == MESSAGE:
            return None
        parent = {"parent_id": self.parent_id} if self.parent_id else {}
        return {"origin": self.kind, **parent, "cause": self.cause}

    def params(self) -> dict[str, str]:
        """As the SQL functions take it."""
        row = self.row()
        return {"p_origin": as_json(row)} if row else {}

    @classmethod
    def from_row(cls, row: Mapping[str, str] | None) -> Origin:
        """As it is kept; None: a message's."""
        if row is None:
            return MESSAGE
        kind: Kind = row["origin"]  # type: ignore[assignment]
        return cls(kind, row.get("parent_id") or "", row.get("cause") or "")


MESSAGE = Origin()
