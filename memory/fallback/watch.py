"""What the memory's guard tells whoever counts. Nothing here does anything."""

from __future__ import annotations

from memory.fallback.spool import SpoolState


class MemoryWatch:
    """Told of what happens to the memory; overridden by whoever wants to know."""

    def state(self, state: str) -> None:
        """The breaker is now closed, open or half_open."""

    def failed(self, kind: str) -> None:
        """A call got no answer. `kind` is the class of the error."""

    def spooled(self) -> None:
        """A turn was put into the spool."""

    def drained(self, turns: int) -> None:
        """Turns were written from the spool into the memory."""

    def waits(self, state: SpoolState) -> None:
        """What is in the spool, as last seen."""
