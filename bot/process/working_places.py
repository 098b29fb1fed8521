"""How many jobs of a worker do long work at the same time. Those that wait take no place of others.

What is short, such as hearing a line, needs no place. Before an answer is made the job asks for
room, with `room_to_begin`. Whatever waits for somebody else then (a model, a tool, Feishu) says so
with `waiting`, in any task of the job, and goes on at once afterwards. Before more long work it
asks again, with `room_to_go_on`. Those that begin and those that go on take turns, and among them
the chats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from bot.process.fair_line import FairLine


class WorkingPlaces:
    """`places` for jobs at long work. `moved` is called when a job begins that, or ends.
    For one event loop."""

    def __init__(self, places: int, moved: Callable[[], None] = lambda: None) -> None:
        self._places = places
        self._moved = moved
        self._at_work = self.unbegun = 0
        self.beginning, self.going_on = FairLine(self.leave), FairLine(self.leave)
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
        place = _Place(self, whose)
        before = _current.set(place)
        try:
            yield
        finally:
            _current.reset(before)
            place.end()

    def begun(self) -> None:
        """A job has begun its long work, or ended without any."""
        self.unbegun -= 1
        self._moved()

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


class _Place:
    """The place of one job, whose tasks may wait for several things at once."""

    __slots__ = ("_begun", "_over", "_places", "_waits", "_works", "whose")

    def __init__(self, places: WorkingPlaces, whose: str) -> None:
        self._places = places
        self.whose = whose
        self._waits = 0
        self._begun = self._works = self._over = False
        places.unbegun += 1

    def begin_waiting(self) -> None:
        self._waits += 1
        self._give_up()

    def end_waiting(self) -> None:
        self._waits -= 1
        if self._begun and not (self._waits or self._over):
            self._works = True
            self._places.enter()

    async def begin(self) -> None:
        """Waits until there is a place, unless the job has begun."""
        if self._begun:
            return
        if self._places.free > 0:
            self._places.enter()
        else:
            await self._places.beginning.wait(self.whose)  # whoever calls counts it
        self._begun = self._works = True
        self._places.begun()
        self._settle()

    async def go_on(self) -> None:
        """Waits while too many work."""
        if not self._begun or self._places.free >= 0:
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
        if not self._begun:
            self._places.begun()

    def _settle(self) -> None:
        """Another task of the job may wait for something."""
        if self._waits or self._over:
            self._give_up()

    def _give_up(self) -> None:
        if self._works:
            self._works = False
            self._places.leave()


_current: ContextVar[_Place | None] = ContextVar("place", default=None)


class waiting:  # noqa: N801  read as what it does, like `contextlib.suppress`
    """While it is entered, the job of this task takes no place; outside of jobs it does nothing."""

    __slots__ = ("_place",)

    def __enter__(self) -> None:
        self._place = _current.get()
        if self._place:
            self._place.begin_waiting()

    def __exit__(self, *_: object) -> None:
        if self._place:
            self._place.end_waiting()


async def room_to_begin() -> None:
    """Waits until there is room for the long work of this task's job."""
    if place := _current.get():
        await place.begin()


async def room_to_go_on() -> None:
    """Waits until there is room for the job of this task, which has waited for something."""
    if place := _current.get():
        await place.go_on()


def chat_of_this_job() -> str:
    """Whose share the job of this task takes; "" outside of a job."""
    place = _current.get()
    return place.whose if place else ""
