"""Which earlier turns an answer was given: it goes with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from memory.recall.passages import Passage

_NOTED: ContextVar[set[str] | None] = ContextVar("drawn_on", default=None)


@contextmanager
def noting_sources() -> Iterator[set[str]]:
    """The ids of the turns that are found within the body, tools included. May stand in another."""
    sources: set[str] = set()
    around = _NOTED.get()
    token = _NOTED.set(sources)
    try:
        yield sources
    finally:
        _NOTED.reset(token)
        if around is not None:
            around |= sources


def note_sources(found: Iterable[Passage]) -> None:
    """These go to a model."""
    sources = _NOTED.get()
    if sources is not None:
        sources.update(passage.turn_id for passage in found)
