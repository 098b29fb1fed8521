"""The person for whom a task works: their share of Feishu's limits is used up by what it does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_asker: ContextVar[str] = ContextVar("asker", default="")


@contextmanager
def working_for(open_id: str) -> Iterator[None]:
    """While it is entered, this task and those that it starts work for that person."""
    before = _asker.set(open_id)
    try:
        yield
    finally:
        _asker.reset(before)


def asker_of_this_task() -> str:
    """The open_id; "" if the task works for nobody in particular."""
    return _asker.get()
