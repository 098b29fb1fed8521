"""Kinds of events are noted once an hour, beside the acknowledgement, and never hold it up."""

from __future__ import annotations

from dataclasses import dataclass, field

from bot.queue.inbox import Arrivals, QueueUnavailable


@dataclass
class Inbox:
    """The queue's database as arrivals use it."""

    noted: list[str] = field(default_factory=list)
    away: bool = False

    def note_arrival(self, kind: str) -> None:
        if self.away:
            raise QueueUnavailable("gone")
        self.noted.append(kind)


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def _arrivals() -> tuple[Arrivals, Inbox, Clock]:
    inbox, clock = Inbox(), Clock()
    return Arrivals(inbox, clock), inbox, clock  # type: ignore[arg-type]


def test_each_kind_is_noted_once_an_hour() -> None:
    arrivals, inbox, clock = _arrivals()
    for now in (0.0, 1.0, 3599.0, 3600.0):
        clock.now = now
        arrivals.note("a")
    arrivals.note("b")
    arrivals.close()

    assert inbox.noted == ["a", "a", "b"]


def test_what_could_not_be_noted_is_noted_with_the_next() -> None:
    arrivals, inbox, _ = _arrivals()
    inbox.away = True
    first = arrivals.note("a")
    assert first is not None
    first.result(5)
    inbox.away = False
    arrivals.note("a")
    arrivals.close()

    assert inbox.noted == ["a"]


def test_kinds_without_end_are_not_kept() -> None:
    arrivals, inbox, _ = _arrivals()
    for number in range(1000):
        arrivals.note(f"kind {number}")
    arrivals.note("x" * 500)
    arrivals.close()

    assert len(inbox.noted) <= 200
