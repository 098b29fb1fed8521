"""A process that ends with the one that started it, even when that one is killed.

Linux sends the signal itself (prctl(2), PR_SET_PDEATHSIG); elsewhere a thread looks who the parent
is. A parent that died between fork and that call is noticed too: then the parent has changed.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LOOK_S = 0.5
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def in_child(parent: int, number: int = signal.SIGKILL) -> Callable[[], None] | None:
    """For `subprocess`, as `preexec_fn`: what it starts gets signal `number` when `parent` ends.

    None where the kernel cannot do this: there the program has to call `tie` itself.
    """
    if _libc is None:
        return None
    libc = _libc

    def bind() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, int(number))
        if os.getppid() != parent:
            os._exit(1)

    return bind


def tie(parent: int, number: int = signal.SIGKILL) -> None:
    """This process gets signal `number` when `parent`, which must be its parent, ends."""
    bind = in_child(parent, number)
    if bind:
        bind()
    else:
        threading.Thread(target=_watch, args=(parent, number), daemon=True).start()


def adopt() -> bool:
    """What this process's children leave behind becomes its own child, where the kernel can."""
    return _libc is not None and _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def _watch(parent: int, number: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os.kill(os.getpid(), number)
