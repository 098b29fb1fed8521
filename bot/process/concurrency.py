"""Shares a worker's event loop among its jobs: slots for long work, fair queues, limits.

Before an answer is made a job waits with `room_to_begin`. Whatever waits for somebody else then
(a model, a tool, Feishu) enters `without_slot` and goes on at once afterwards; before more long
work the job waits with `room_to_go_on`."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

_current_slot: ContextVar[_JobSlot | None] = ContextVar("place", default=None)

_COUNTED_S = 30.0

_waiting_since: ContextVar[float] = ContextVar("waiting_since")
_asker_of_task: ContextVar[str] = ContextVar("asker", default="")

_OF_A_TURN = 200 * 1024
_SHARE_OF_FREE = (
    0.3  # of what is free when the worker starts; Postgres and file readers need some too
)
_LEAST, _MOST = 100, 1000  # the queue's rounds name each job in hand
_CGROUP = Path("/sys/fs/cgroup")
_MEMINFO = Path("/proc/meminfo")

_Result = TypeVar("_Result")
_LONG_TEXT = 10_000  # characters

_CANCEL_AGAIN_S = 0.5


class ConcurrencySlots:
    """`places` for jobs at long work. `moved` is called when a job begins that, or ends.
    For one event loop."""

    def __init__(self, places: int, on_change: Callable[[], None] = lambda: None) -> None:
        self._places = places
        self._on_change = on_change
        self._at_work = self.unbegun = 0
        self.beginning, self.going_on = RoundRobinQueue(self.leave), RoundRobinQueue(self.leave)
        self._lines = [self.going_on, self.beginning]

    @property
    def free(self) -> int:
        """How many places are free; below 0: more jobs work than there are places."""
        return self._places - self._at_work

    @property
    def to_spare(self) -> int:
        """How many more jobs to take: those that have not begun are no more than the places."""
        return self._places - self.unbegun

    @contextmanager
    def hold(self, whose: str) -> Iterator[None]:
        """A job of the chat `whose` runs while this is entered."""
        place = _JobSlot(self, whose)
        before = _current_slot.set(place)
        try:
            yield
        finally:
            _current_slot.reset(before)
            place.end()

    def note_begin(self) -> None:
        """A job has begun its long work, or ended without any."""
        self.unbegun -= 1
        self._on_change()

    def enter(self) -> None:
        """One more job works."""
        self._at_work += 1

    def leave(self) -> None:
        """One job less works."""
        self._at_work -= 1
        while self.free > 0 and self._call_next():
            self._at_work += 1

    def _call_next(self) -> bool:
        if self._lines[0].call_next():
            self._lines.reverse()
            return True
        return self._lines[1].call_next()


class _JobSlot:
    """The place of one job, whose tasks may wait for several things at once."""

    __slots__ = ("_has_begun", "_over", "_places", "_waits", "_works", "whose")

    def __init__(self, places: ConcurrencySlots, whose: str) -> None:
        self._places = places
        self.whose = whose
        self._waits = 0
        self._has_begun = self._works = self._over = False
        places.unbegun += 1

    def begin_waiting(self) -> None:
        self._waits += 1
        self._give_up()

    def end_waiting(self) -> None:
        self._waits -= 1
        if self._has_begun and not (self._waits or self._over):
            self._works = True
            self._places.enter()

    async def begin(self) -> None:
        """Waits until there is a place, unless the job has begun."""
        if self._has_begun:
            return
        if self._places.free > 0:
            self._places.enter()
        else:
            await self._places.beginning.wait(self.whose)  # whoever calls counts it
        self._has_begun = self._works = True
        self._places.note_begin()
        self._settle()

    async def go_on(self) -> None:
        """Waits while too many work."""
        if not self._has_begun or self._places.free >= 0:
            return
        self.begin_waiting()
        try:
            await self._places.going_on.wait(self.whose)
        except BaseException:
            self.end_waiting()
            raise
        self._waits -= 1
        self._works = True
        self._settle()

    def end(self) -> None:
        self._over = True
        self._give_up()
        if not self._has_begun:
            self._places.note_begin()

    def _settle(self) -> None:
        """Another task of the job may wait for something."""
        if self._waits or self._over:
            self._give_up()

    def _give_up(self) -> None:
        if self._works:
            self._works = False
            self._places.leave()


class without_slot:  # noqa: N801  read as what it does, like `contextlib.suppress`
    """While it is entered, the job of this task takes no place; outside of jobs it does nothing."""

    __slots__ = ("_place",)

    def __enter__(self) -> None:
        self._place = _current_slot.get()
        if self._place:
            self._place.begin_waiting()

    def __exit__(self, *_: object) -> None:
        if self._place:
            self._place.end_waiting()


async def room_to_begin() -> None:
    """Waits until there is room for the long work of this task's job."""
    if place := _current_slot.get():
        await place.begin()


async def room_to_go_on() -> None:
    """Waits until there is room for the job of this task, which has waited for something."""
    if place := _current_slot.get():
        await place.go_on()


def chat_of_job() -> str:
    """Whose share the job of this task takes; "" outside of a job."""
    place = _current_slot.get()
    return place.whose if place else ""


class RoundRobinQueue:
    """Those who wait, in one queue for each chat. The chats take turns.

    `missed` is called for someone who was called and was cancelled before they could come.
    """

    def __init__(self, on_missed: Callable[[], None]) -> None:
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._length = 0
        self._on_missed = on_missed

    def __len__(self) -> int:
        return self._length

    async def wait(self, whose: str) -> None:
        """Returns when `call_next` calls this one."""
        turn = asyncio.get_running_loop().create_future()
        self._queues.setdefault(whose, deque()).append(turn)
        self._length += 1
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._leave(whose, turn)
            else:
                self._on_missed()
            raise

    def call_next(self) -> bool:
        """Calls the next in line. False: nobody waits."""
        while self._queues:
            whose, queue = next(iter(self._queues.items()))
            turn = queue.popleft()
            self._length -= 1
            self._queues.move_to_end(whose)
            if not queue:
                del self._queues[whose]
            if not turn.done():
                turn.set_result(None)
                return True
        return False

    def _leave(self, whose: str, turn: asyncio.Future[None]) -> None:
        queue = self._queues.get(whose)
        if queue and turn in queue:
            queue.remove(turn)
            self._length -= 1
            if not queue:
                del self._queues[whose]


class FewestTurnsQueue:
    """One at a time holds the turn. However many one person asks for, somebody else's first few
    come before the rest of them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._is_held = False
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._turns: deque[tuple[float, str]] = deque()
        self._counts: Counter[str] = Counter()

    async def enter(self, whose: str) -> None:
        """Returns when it is this one's turn. `leave` has to follow."""
        if self._is_held:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(whose, deque()).append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                self._withdraw(whose, turn)
                raise
        self._is_held = True
        self._turns.append((self._clock(), whose))
        self._counts[whose] += 1

    def leave(self) -> None:
        """Gives the turn to the next."""
        self._forget()
        self._is_held = False
        while self._waiting and not self._is_held:
            whose = min(self._waiting, key=lambda one: self._counts[one])
            turn = self._waiting[whose].popleft()
            self._drop_if_empty(whose)
            if not turn.done():  # nobody has given up
                turn.set_result(None)
                self._is_held = True

    def _withdraw(self, whose: str, turn: asyncio.Future[None]) -> None:
        if not turn.cancelled():  # it was called, and cancelled before it could go on
            self.leave()
        elif turn in self._waiting.get(whose, ()):
            self._waiting[whose].remove(turn)
            self._drop_if_empty(whose)

    def _drop_if_empty(self, whose: str) -> None:
        if not self._waiting[whose]:
            del self._waiting[whose]

    def _forget(self) -> None:
        until = self._clock() - _COUNTED_S
        while self._turns and self._turns[0][0] < until:
            whose = self._turns.popleft()[1]
            self._counts[whose] -= 1
            if not self._counts[whose]:
                del self._counts[whose]


@contextmanager
def working_for(open_id: str) -> Iterator[None]:
    """While it is entered, this task and those that it starts work for that person."""
    before = _asker_of_task.set(open_id)
    try:
        yield
    finally:
        _asker_of_task.reset(before)


def asker_of_task() -> str:
    """The open_id; "" if the task works for nobody in particular."""
    return _asker_of_task.get()


def turn_capacity(workers: int, *, cgroup: Path = _CGROUP, meminfo: Path = _MEMINFO) -> int:
    """How many turns one of `workers` on this machine can have in hand, most of them waiting."""
    free = min(
        (_free_in_cgroup(cgroup), _free_on_machine(meminfo)), key=lambda one: one or float("inf")
    )
    if not free:
        return _MOST
    return max(_LEAST, min(_MOST, int(free * _SHARE_OF_FREE / _OF_A_TURN / workers)))


def _free_in_cgroup(cgroup: Path) -> int | None:
    """The bytes that a container may still use; None: it has no limit."""
    try:
        limit = int((cgroup / "memory.max").read_text())
        return max(1, limit - int((cgroup / "memory.current").read_text()))
    except (OSError, ValueError):  # "max"
        return None


def _free_on_machine(meminfo: Path) -> int | None:
    """The bytes that are free on the machine."""
    try:
        lines = meminfo.read_text().splitlines()
        [line] = [one for one in lines if one.startswith("MemAvailable:")]
        return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return None


async def compute_apart(work: Callable[[], _Result], characters: int) -> _Result:
    """The result of `work`, which reads so many characters; of many, in a thread."""
    return await asyncio.to_thread(work) if characters > _LONG_TEXT else work()


async def cancel_tasks(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancels `tasks` until every one is done.

    Once is not enough: before Python 3.12 `asyncio.wait_for`, which connection pools use, loses a
    cancellation that comes in the moment of its success (python/cpython#86296), and a task that
    runs forever would then never end.
    """
    pending = {task for task in tasks if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=_CANCEL_AGAIN_S)


def set_waiting_since(moment: float) -> None:
    """Notes that the work of this thread has waited since `moment` (monotonic seconds)."""
    _waiting_since.set(moment)


def waiting_since() -> float:
    """Returns since when the work of this thread has waited (monotonic seconds), or now."""
    return _waiting_since.get(time.monotonic())
