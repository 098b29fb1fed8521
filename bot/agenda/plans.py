"""Plans a meeting or a task as it will be written, with the people it names. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, time
from typing import Any
from zoneinfo import ZoneInfo

from bot.agenda.times import AgendaRefused, ParsedTime, moment_s
from bot.feishu.calendars import BusySpan, CalendarEvent
from bot.text.roster import Roster, bare_name, means_asker
from memory.text import storable, visible_line

LONGEST_TITLE = 200
MOST_PEOPLE = 20
_LEAST_MINUTES, _MOST_MINUTES = 5, 24 * 60


@dataclass(frozen=True, slots=True)
class Attendee:
    """Somebody by open id, under the name that who asked reads."""

    open_id: str
    name: str


@dataclass(frozen=True, slots=True)
class MeetingPlan:
    """What is written when the asker presses. `zone` is theirs, in which they read the times."""

    title: str
    start_s: int
    end_s: int
    zone: str
    attendees: tuple[Attendee, ...] = ()

    @property
    def span(self) -> BusySpan:
        return BusySpan(self.start_s, self.end_s)

    def row(self) -> dict[str, Any]:
        """As JSON keeps it, on the button."""
        return {**asdict(self), "attendees": [asdict(one) for one in self.attendees]}

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> MeetingPlan:
        """The inverse of `row`."""
        people = tuple(Attendee(**one) for one in row["attendees"])
        return cls(**{**row, "attendees": people})

    def event(self) -> CalendarEvent:
        """As it is written into the calendar."""
        return CalendarEvent("", self.title, self.start_s, self.end_s, self.zone)

    def moved_to(self, zone: ZoneInfo) -> MeetingPlan:
        """The same time by the clock of another zone."""
        start = datetime.fromtimestamp(self.start_s, ZoneInfo(self.zone))
        start_s = moment_s(start.date(), start.time(), zone)
        return replace(
            self, start_s=start_s, end_s=start_s + self.end_s - self.start_s, zone=str(zone)
        )


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """What is written when the asker presses; `due_s` None: without an end. Of a whole day only the
    date in UTC counts."""

    title: str
    assignee: Attendee
    due_s: int | None
    is_all_day: bool
    zone: str

    def row(self) -> dict[str, Any]:
        """As JSON keeps it, on the button."""
        return asdict(self)

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> TaskPlan:
        """The inverse of `row`."""
        return cls(**{**row, "assignee": Attendee(**row["assignee"])})

    @property
    def due(self) -> tuple[int, bool] | None:
        return None if self.due_s is None else (self.due_s, self.is_all_day)

    def is_over(self, now: datetime) -> bool:
        """Whether its end has passed."""
        if self.due_s is None:
            return False
        if self.is_all_day:
            return due_day(self.due_s) < now.astimezone(ZoneInfo(self.zone)).date()
        return self.due_s <= now.timestamp()

    def moved_to(self, zone: ZoneInfo) -> TaskPlan:
        """The same time by the clock of another zone."""
        if self.due_s is None or self.is_all_day:
            return replace(self, zone=str(zone))
        due = datetime.fromtimestamp(self.due_s, ZoneInfo(self.zone))
        return replace(self, due_s=moment_s(due.date(), due.time(), zone), zone=str(zone))


def title_of(words: str) -> str:
    """The title of it. Raises `AgendaRefused`."""
    title = visible_line(storable(words))
    if not title:
        raise AgendaRefused("no_title")
    if len(title) > LONGEST_TITLE:
        raise AgendaRefused("long_title", most=LONGEST_TITLE)
    return title


def length_s(minutes: int) -> int:
    """How long it takes, in seconds. Raises `AgendaRefused`."""
    if not _LEAST_MINUTES <= minutes <= _MOST_MINUTES:
        raise AgendaRefused("length")
    return minutes * 60


def task_due(due_time: ParsedTime | None, zone: ZoneInfo) -> tuple[int | None, bool]:
    """`TaskPlan.due_s` and whether it is a whole day."""
    if due_time is None:
        return None, False
    if due_time.at is None:
        return int(datetime.combine(due_time.day, time(0), UTC).timestamp()), True
    return moment_s(due_time.at.date(), due_time.at.time(), zone), False


def due_day(due_s: int) -> date:
    """The day of what is due on a whole day."""
    return datetime.fromtimestamp(due_s, UTC).date()


def idempotency_key(action_id: str) -> str:
    """The key under which Feishu writes what one button is for: the same however often."""
    return hashlib.sha256(f"agenda:{action_id}".encode()).hexdigest()


def other_people(people: Sequence[Attendee], asker: str) -> tuple[Attendee, ...]:
    """Each once, without who asks: it is their meeting. Raises `AgendaRefused`."""
    unique = tuple({one.open_id: one for one in people if one.open_id != asker}.values())
    if len(unique) > MOST_PEOPLE:
        raise AgendaRefused("too_many", most=MOST_PEOPLE)
    return unique


@dataclass(frozen=True, slots=True)
class Colleague:
    """Somebody who can be meant; `is_outside`: of another organization than who asks."""

    open_id: str
    name: str
    is_outside: bool = False


def known_people(
    members: Iterable[Colleague], roster: Roster, asker: str
) -> Mapping[str, Colleague]:
    """By open id: of the roster, under the names that it has, and the members."""
    names_by_id = {
        one.open_id: Colleague(one.open_id, one.name)
        for one in roster.people
        if not one.is_bot or one.open_id == asker
    }
    for one in members:
        colleague = names_by_id.get(one.open_id)
        names_by_id[one.open_id] = Colleague(
            one.open_id, one.name or (colleague.name if colleague else ""), one.is_outside
        )
    return names_by_id


def named_attendees(
    names: Iterable[str], colleagues: Mapping[str, Colleague], asker: str
) -> list[Attendee]:
    """Those who are named; a first or last name is enough where one person has it. Raises
    `AgendaRefused`."""
    return [
        _named_attendee(bare_name(name), colleagues, asker) for name in names if bare_name(name)
    ]


def _named_attendee(name: str, colleagues: Mapping[str, Colleague], asker: str) -> Attendee:
    if means_asker(name) or name == asker:
        return Attendee(asker, colleagues[asker].name if asker in colleagues else name)
    if name in colleagues:
        candidates = [colleagues[name]]
    else:
        folded_name = name.casefold()
        candidates = [one for one in colleagues.values() if one.name.casefold() == folded_name] or [
            one for one in colleagues.values() if folded_name in one.name.casefold().split()
        ]
    if not candidates:
        raise AgendaRefused("unknown_person", name=name)
    if len(candidates) > 1:
        raise AgendaRefused("several_people", name=name)
    if candidates[0].is_outside:
        raise AgendaRefused("outside", name=candidates[0].name)
    return Attendee(candidates[0].open_id, candidates[0].name)
