"""A text of a response while it arrives, from endpoints that repeat or replace pieces. Pure."""

from __future__ import annotations

from itertools import takewhile
from operator import eq

# Shorter texts may say the same twice: "no" and "no", "1" and "1".
SURE = 16
PAIRED = 6  # pieces

_ALIKE = 8  # characters, of two beginnings where the endpoint says that it begins again

# Characters; no card shows as much. What follows is not read.
MOST_TEXT = 100_000


class StreamedText:
    """A text as far as it has come. A last piece that repeats all others, and pieces that each
    begin with the one before, replace the text. Where every piece comes twice, one is left out.
    Where the endpoint says that it may begin again, the words decide (`mark_restart`)."""

    __slots__ = ("_before", "_count", "_grows", "_is_marked", "_is_paired", "_once", "_repeated",
                 "_seam", "_varies", "last")  # fmt: skip

    def __init__(self) -> None:
        self._before = self.last = self._once = ""
        self._count, self._grows = 0, True
        self._is_paired, self._varies = True, False
        self._seam = self._repeated = 0  # where it may begin again; how much of it has come again
        self._is_marked = False

    def __str__(self) -> str:
        if self._is_paired and self._varies and self._count >= PAIRED:
            return self._once
        is_sure = self._count > 2 or (self._count == 2 and len(self._before) >= SURE)
        if is_sure and self._grows:
            return self.last
        return self._before if is_sure and self._is_again else self._before + self.last

    @property
    def _is_again(self) -> bool:
        if len(self._before) < SURE:
            return self.last == self._before
        return self.last.strip() == self._before.strip()

    @property
    def is_full(self) -> bool:
        """True if it is longer than any card shows."""
        return len(self._before) + len(self.last) > MOST_TEXT

    def add(self, piece: str) -> None:
        is_longer = len(piece) > len(self.last) or len(piece) >= SURE
        self._grows = self._grows and is_longer and piece.startswith(self.last)
        if self._count % 2:
            self._is_paired = self._is_paired and piece == self.last
        elif self._is_paired:
            self._varies = self._varies or bool(self._count and piece != self.last)
            self._once += piece
        self._before += self.last
        self.last = piece
        self._count += 1
        self._look_for_restart()

    def mark_restart(self) -> None:
        """Says that the endpoint may begin again with the next piece."""
        self._is_marked, self._seam, self._repeated = True, len(self._before) + len(self.last), 0

    def _look_for_restart(self) -> None:
        if not self._is_marked:
            return
        left = self.last[: self._seam - self._repeated]
        if self._before.startswith(left, self._repeated):
            self._repeated += len(left)
            if self._repeated == self._seam:
                self._restart()
            return
        pairs = map(eq, left, self._before[self._repeated :])
        self._repeated += sum(takewhile(bool, pairs))
        if self._repeated >= _ALIKE:
            self._restart()
        self._is_marked = False

    def _restart(self) -> None:
        self._before = self._before[self._seam :]
        self._is_marked = False
        self._count, self._grows, self._is_paired = max(self._count, 3), False, False


class RestartSigns:
    """Tells where a server may give its answer from the beginning again: under another id, or with
    a role after pieces without one. A server that goes on elsewhere does the same, so that the
    words decide."""

    def __init__(self) -> None:
        self._id, self._pieces, self._has_role = "", 0, True

    def begins_again(self, id: str, *, has_role: bool) -> bool:
        """Takes the next piece. Ids that are new for every piece say nothing."""
        is_other = bool(id) and id != self._id
        begins = (is_other and self._pieces > 1) or (has_role and not self._has_role)
        self._pieces = 1 if is_other else self._pieces + 1
        self._id, self._has_role = id or self._id, has_role
        return begins
