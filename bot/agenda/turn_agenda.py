"""The calendar and the tasks of the person who asks, for one turn, told to whoever reads it.

Where others read along it gives times alone: of nobody does it fetch what an event is called, where
it is or who comes, but to learn the asker's time zone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from zoneinfo import ZoneInfo

import structlog

from bot.agenda.plans import Attendee, Colleague, MeetingPlan, TaskPlan
from bot.agenda.times import AgendaRefused, merged_spans, refusal_of, zone_of
from bot.feishu.calendars import (
    DELETED_CODES,
    BusySpan,
    CalendarCalls,
    CalendarEvent,
    ListedTask,
)
from bot.feishu.errors import FeishuError, FeishuFailure
from bot.feishu.user_scopes import (
    READ_CALENDAR,
    READ_TASKS,
    WRITE_CALENDAR,
    WRITE_TASKS,
    AccessNeeds,
)

log = structlog.get_logger()

ResultT = TypeVar("ResultT")
_OF_SCOPES = (99991672, 99991679)  # of the app, of the person
_AROUND_S = 14 * 86_400  # how far before and after now one looks for the asker's time zone

AsAsker = Callable[[Collection[str], Callable[[str], Awaitable[object]]], Awaitable[object]]
"""Calls with the access token of the person who asks, which they granted for these purposes. Raises
`AgendaRefused`, `FeishuFailure` and `StoreError`."""


@dataclass(frozen=True, slots=True)
class WrittenEvent:
    """Where an event stands that was written."""

    calendar_id: str
    event_id: str


class TurnAgenda:
    """Made anew for each turn. `is_alone`: nobody but the asker reads the answer.
    `in_group`: members of a group read it as it comes. `usual`: the zone
    of who has none. `members` gives those of the group; none in p2p. `now` is aware."""

    def __init__(
        self,
        calls: CalendarCalls,
        as_asker: AsAsker,
        asker: str,
        *,
        is_alone: bool,
        in_group: bool,
        usual: ZoneInfo,
        now: Callable[[], datetime],
        members: Callable[[], Awaitable[Sequence[Colleague]]],
    ) -> None:
        self._calls = calls
        self._as_asker = as_asker
        self.asker = asker
        self.is_alone = is_alone
        self._usual = usual
        self._now = now
        self._members = members
        self._wanted_scopes: list[str] = []
        self._zone: ZoneInfo | None = None
        self._only_colleagues_read = not in_group
        self._calendar_id = ""

    @property
    def wanted_scopes(self) -> tuple[str, ...]:
        """The scopes that were needed and are not granted."""
        return tuple(dict.fromkeys(self._wanted_scopes))

    @property
    def needs(self) -> AccessNeeds:
        return AccessNeeds(scopes=self.wanted_scopes)

    async def may_still_be_told(self) -> bool:
        """Always: who reads the answer was checked before anything was read."""
        return True

    async def members(self) -> Sequence[Colleague]:
        """Those of the group; none where Feishu does not tell."""
        try:
            return await self._members()
        except FeishuFailure as failure:
            log.info("agenda.members_unknown", error=type(failure).__name__)
            return ()

    async def require_colleagues(self) -> None:
        """Raises `AgendaRefused` unless everyone who reads the answer is a colleague of the asker.

        Feishu shows free and busy times, and so time zones, within an organization only. Unknown
        readers count as outsiders.
        """
        if self._only_colleagues_read:
            return
        members = await self.members()
        if not members or any(one.is_outside for one in members):
            raise AgendaRefused("outsiders_read")
        self._only_colleagues_read = True

    async def now(self) -> datetime:
        """By the asker's clock. Raises `AgendaRefused`."""
        return self._now().astimezone(await self.zone())

    async def zone(self) -> ZoneInfo:
        """The asker's. Raises `AgendaRefused`."""
        await self.require_colleagues()
        if self._zone is None:
            now_s = int(self._now().timestamp())
            events = await self._own_events(now_s - _AROUND_S, now_s + _AROUND_S)
            self._zone = zone_of(events, self._usual)
        return self._zone

    async def clock_zone(self) -> ZoneInfo:
        """As `zone`; the usual one where the asker's calendar may not be read, which is not asked
        for."""
        wanted_scopes = list(self._wanted_scopes)
        try:
            return await self.zone()
        except AgendaRefused:
            self._wanted_scopes = wanted_scopes
            return self._usual

    async def busy(self, person: Attendee, span: BusySpan) -> tuple[BusySpan, ...]:
        """When somebody is busy then. Raises `AgendaRefused`, where others read along for a private
        calendar too: the asker may be one of the few who see it."""
        await self.require_colleagues()

        async def list_busy(token: str) -> tuple[BusySpan, ...]:
            return await self._calls.busy(person.open_id, span.start_s, span.end_s, token)

        async def is_shown(token: str) -> bool:
            return await self._calls.shows_times(person.open_id, token)

        spans = merged_spans(await self._call((READ_CALENDAR,), list_busy, name=person.name))
        if self.is_alone or await self._call((READ_CALENDAR,), is_shown, name=person.name):
            return spans
        if person.open_id == self.asker:
            raise AgendaRefused("own_private_calendar")
        raise AgendaRefused("private_calendar", name=person.name)

    async def own_events(self, span: BusySpan) -> tuple[CalendarEvent, ...] | None:
        """The asker's events; None where others read along. Raises `AgendaRefused`."""
        if not self.is_alone:
            return None
        return await self._own_events(span.start_s, span.end_s)

    async def open_tasks(self) -> tuple[ListedTask, ...]:
        """What the asker has to do; without titles where others read along. Raises
        `AgendaRefused`."""
        await self.require_colleagues()
        tasks = await self._call((READ_TASKS,), self._calls.open_tasks)
        if self.is_alone:
            return tasks
        return tuple(ListedTask("", "", one.due_s, one.is_all_day) for one in tasks)

    async def may(self, *purposes: str) -> None:
        """Raises `AgendaRefused` unless the asker has granted it, before anything is offered."""

        async def nothing(token: str) -> None:
            return None

        await self._call(purposes, nothing)

    async def book(self, plan: MeetingPlan, key: str) -> WrittenEvent:
        """Writes it once for each `key`, with all who are invited or not at all. Raises
        `AgendaRefused`, and `FeishuFailure` where it is worth another attempt."""
        calendar_id = await self._own_calendar()

        async def create(token: str) -> str:
            return await self._calls.create_event(calendar_id, key, plan.event(), token)

        event = WrittenEvent(calendar_id, await self._call((WRITE_CALENDAR,), create, writes=True))
        if plan.attendees:
            await self._invite(plan, event)
        return event

    async def unbook(self, event: WrittenEvent) -> bool:
        """Deletes it; False: it was gone already. Raises as `book`."""

        async def delete(token: str) -> None:
            await self._calls.delete_event(event.calendar_id, event.event_id, token)

        return await self._delete((WRITE_CALENDAR,), delete)

    async def make_task(self, plan: TaskPlan, key: str) -> str:
        """Its guid; within five minutes it is written once for each `key`. Raises as `book`."""

        async def create(token: str) -> str:
            return await self._calls.create_task(
                key, plan.title, plan.due, plan.assignee.open_id, token
            )

        return await self._call((WRITE_TASKS,), create, name=plan.assignee.name, writes=True)

    async def unmake_task(self, guid: str) -> bool:
        """Deletes it; False: it was gone already. Raises as `book`."""

        async def delete(token: str) -> None:
            await self._calls.delete_task(guid, token)

        return await self._delete((WRITE_TASKS,), delete)

    async def _invite(self, plan: MeetingPlan, event: WrittenEvent) -> None:
        """Where somebody cannot be invited nothing stays."""
        ids = [one.open_id for one in plan.attendees]

        async def invite(token: str) -> None:
            await self._calls.invite(event.calendar_id, event.event_id, ids, token)

        try:
            await self._call((WRITE_CALENDAR,), invite, writes=True)
        except AgendaRefused as refusal:
            await self.unbook(event)
            for one in plan.attendees if refusal.reason == "left" else ():
                await self.busy(one, plan.span)  # refuses whoever it is, by name
            raise

    async def _own_calendar(self) -> str:
        self._calendar_id = self._calendar_id or await self._call(
            (READ_CALENDAR,), self._calls.primary_id
        )
        return self._calendar_id

    async def _own_events(self, start_s: int, end_s: int) -> tuple[CalendarEvent, ...]:
        calendar_id = await self._own_calendar()

        async def list_events(token: str) -> tuple[CalendarEvent, ...]:
            return await self._calls.events(calendar_id, start_s, end_s, token)

        return await self._call((READ_CALENDAR,), list_events)

    async def _call(
        self,
        purposes: Collection[str],
        make: Callable[[str], Awaitable[ResultT]],
        *,
        name: str = "",
        writes: bool = False,
    ) -> ResultT:
        """What may have been written although no answer came is tried again, with the same key."""
        try:
            return await self._make(purposes, make)
        except FeishuFailure as failure:
            if writes and _may_be_written(failure):
                raise
            raise self._note_refusal(refusal_of(failure, name=name)) from failure

    async def _delete(
        self, purposes: Collection[str], make: Callable[[str], Awaitable[None]]
    ) -> bool:
        """Whether it was still there."""

        async def look(token: str) -> bool:
            try:
                await make(token)
            except FeishuError as failure:
                if failure.code not in DELETED_CODES:
                    raise
                return False
            return True

        return await self._call(purposes, look, writes=True)

    async def _make(
        self, purposes: Collection[str], make: Callable[[str], Awaitable[ResultT]]
    ) -> ResultT:
        results: list[ResultT] = []

        async def note_scopes(token: str) -> None:
            results.append(await make(token))

        try:
            await self._as_asker(purposes, note_scopes)
        except AgendaRefused as refusal:
            raise self._note_refusal(refusal) from None
        return results[-1]

    def _note_refusal(self, refusal: AgendaRefused) -> AgendaRefused:
        if refusal.reason in ("not_connected", "not_approved"):
            self._wanted_scopes += refusal.scopes
        return refusal


def _may_be_written(failure: FeishuFailure) -> bool:
    """Whether Feishu did not say that it refused."""
    if not isinstance(failure, FeishuError):
        return True
    return failure.action.may_pass and failure.code not in _OF_SCOPES
