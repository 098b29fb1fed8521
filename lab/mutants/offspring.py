"""Ends whatever a process has started, however deep and in whatever session."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Set

import psutil  # type: ignore[import-untyped]

_SET_CHILD_SUBREAPER = 36  # Linux: prctl(2)
_PATIENCE_S = 10.0


def adopt_orphans() -> None:
    """Makes this process the parent of every descendant whose own parent ends, so that daemons and
    sessions of their own stay among its descendants."""
    with contextlib.suppress(AttributeError):  # elsewhere than on Linux
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1)


def offspring() -> set[int]:
    """Returns the process ids of all descendants."""
    return {one.pid for one in psutil.Process().children(recursive=True)}


def end_offspring(spared: Set[int] = frozenset()) -> None:
    """Kills all descendants but the spared ones and theirs."""
    while left := _beside(psutil.Process(), spared):
        for one in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        _, alive = psutil.wait_procs(left, _PATIENCE_S)
        if alive:
            raise RuntimeError(f"cannot be killed: {', '.join(str(one.pid) for one in alive)}")


def _beside(process: psutil.Process, spared: Set[int]) -> list[psutil.Process]:
    found = []
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in process.children():
            if child.pid not in spared:
                found += [child, *_beside(child, spared)]
    return found
