"""Which messages an answer was given by its tools, besides its prompt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_NOTED: ContextVar[set[str] | None] = ContextVar("drawn_on", default=None)


@contextmanager
def noting_sources() -> Iterator[set[str]]:
    """The ids that `note_sources` gets within the body, tools included. May stand in another."""
    sources: set[str] = set()
    around = _NOTED.get()
    token = _NOTED.set(sources)
    try:
        yield sources
    finally:
        _NOTED.reset(token)
        if around is not None:
            around |= sources


def note_sources(ids: Iterable[str | None]) -> None:
    """A model is given what these turns said, or these notes (`note_source`)."""
    sources = _NOTED.get()
    if sources is not None:
        sources.update(filter(None, ids))
