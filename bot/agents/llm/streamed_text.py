"""A text of a response while it arrives, from endpoints that repeat or replace pieces. Pure."""

from __future__ import annotations

from typing import Literal

# Shorter texts may say the same twice: "no" and "no", "1" and "1".
SURE = 16
PAIRED = 6  # pieces

_ALIKE = 8  # characters, of two beginnings where the endpoint says that it begins again
_ENDS = tuple(".,!?:;…。，、！？：；\n")  # what has been said whole may be said twice

# Characters; no card shows as much. What follows is not read.
MOST_TEXT = 100_000


class StreamedText:
    """A text as far as it has come. A last piece that repeats all others, and pieces that each
    begin with the one before, replace the text. Where every piece comes twice, one is left out. A
    text that breaks off and begins again is what it is the second time."""

    __slots__ = ("_before", "_count", "_grows", "_is_paired", "_is_sure", "_least", "_once",
                 "_repeated", "_seam", "_varies", "last")  # fmt: skip

    def __init__(self) -> None:
        self._before = self.last = self._once = ""
        self._count, self._grows = 0, True
        self._is_paired, self._varies = True, False
        self._seam = self._repeated = 0  # where it may begin again; how much of it has come again
        self._least, self._is_sure = SURE, False

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

    def mark_restart(self, *, is_sure: bool) -> None:
        """Says that the endpoint may begin again with the next piece. Where that is not sure, less
        has to come again than without any sign, but all of it."""
        self._least, self._is_sure = _ALIKE, is_sure
        if is_sure:
            self._seam = 0

    def _look_for_restart(self) -> None:
        if not self._seam:
            if not (self._is_sure or self._breaks_off()):
                return
            self._seam, self._repeated = len(self._before), 0
        left = self.last[: self._seam - self._repeated]
        if left and not self._before.startswith(left, self._repeated):
            places = enumerate(zip(left, self._before[self._repeated :], strict=False))
            same = next(place for place, (piece, before) in places if piece != before)
            if self._is_sure and self._repeated + same >= _ALIKE:
                self._restart()
            self._seam, self._is_sure = 0, False
            return
        self._repeated += len(left)
        is_sign = self._least < SURE or not (self._is_paired or self._grows)
        goes_on = len(left) < len(self.last) and is_sign
        if self._seam and self._repeated == self._seam and (self._is_sure or goes_on):
            self._restart()

    def _breaks_off(self) -> bool:
        """True if what was said before the last piece is long enough, and no whole sentence."""
        end = self._before[-SURE:].rstrip(" ")
        is_open = not end.endswith(_ENDS) and any(map(str.isalpha, end))
        return len(self._before) >= self._least and is_open

    def _restart(self) -> None:
        self._before = self._before[self._seam :]
        self._seam, self._is_sure = 0, False
        self._count, self._grows, self._is_paired = max(self._count, 3), False, False


class RestartSigns:
    """Tells where a server may give its answer from the beginning again: under another id, or with
    a role after pieces without one. A server that goes on elsewhere does the same, so that the
    words decide."""

    def __init__(self) -> None:
        self._id, self._pieces, self._has_role = "", 0, True

    def begins_again(self, id: str, *, has_role: bool) -> Literal["surely", "perhaps", "no"]:
        """Takes the next piece. Where every piece has a new id, or a role, that says little."""
        is_other = bool(id) and id != self._id
        is_sure = (is_other and self._pieces > 1) or (has_role and not self._has_role)
        self._pieces = 1 if is_other else self._pieces + 1
        self._id, self._has_role = id or self._id, has_role
        return "surely" if is_sure else "perhaps" if is_other or has_role else "no"
