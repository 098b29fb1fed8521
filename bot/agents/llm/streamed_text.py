"""A text of a response while it arrives, from endpoints that repeat or replace pieces. Pure."""

from __future__ import annotations

# Shorter texts may say the same twice: "no" and "no", "1" and "1".
SURE = 16
PAIRED = 6  # pieces

# Characters; no card shows as much. What follows is not read.
MOST_TEXT = 100_000


class StreamedText:
    """A text as far as it has come. A last piece that repeats all others, and pieces that each
    begin with the one before, replace the text. Where every piece comes twice, one is left out."""

    __slots__ = ("_before", "_count", "_grows", "_is_paired", "_once", "_varies", "last")

    def __init__(self) -> None:
        self._before = self.last = self._once = ""
        self._count, self._grows = 0, True
        self._is_paired, self._varies = True, False

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
