"""How a turn ended, as `sql/functions/outcomes.sql` describes it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal[
    "answered",
    "apologised",
    "refused",
    "stopped",
    "silent",
    "undelivered",
    "taken_back",
    "offer",
]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """`reason` is a code, and nobody's words. Of a stored reply: what it is once people have it."""

    kind: Kind = "answered"
    reason: str = ""

    def row(self) -> dict[str, str] | None:
        """As it is kept with the reply; None: an answer."""
        return None if self == ANSWERED else {"outcome": self.kind, "reason": self.reason}

    @classmethod
    def from_row(cls, row: Mapping[str, str] | None) -> TurnOutcome:
        """As it is kept; None: an answer."""
        if not row:
            return ANSWERED
        kind: Kind = row["outcome"]  # type: ignore[assignment]
        return cls(kind, row.get("reason") or "")


ANSWERED = TurnOutcome()
BY_COMMAND = TurnOutcome("answered", "command")
ELSEWHERE = TurnOutcome("answered", "elsewhere")
STOPPED = TurnOutcome("stopped")


def apologised(reason: str) -> TurnOutcome:
    """People have a word that there is no answer."""
    return TurnOutcome("apologised", reason)


def refused(reason: str) -> TurnOutcome:
    """The bot was not to answer."""
    return TurnOutcome("refused", reason)
