"""Declares the calendar feature, opens the asker's agenda for a turn, and writes or undoes a
meeting or task when its button is pressed.

A press may be repeated after a crash: Feishu writes one thing for one key."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any
from zoneinfo import ZoneInfo

import structlog

from bot.agenda.plans import Colleague, MeetingPlan, TaskPlan, idempotency_key
from bot.agenda.times import AgendaRefused
from bot.agenda.turn_agenda import AsAsker, TurnAgenda, WrittenEvent
from bot.agents.tools.confirming import new_action
from bot.answering.question import Turn
from bot.features.calendar import wording
from bot.features.calendar.tools import BOOK, MAKE_TASK, busy_people, calendar_tools
from bot.features.feature import Feature
from bot.feishu.errors import FeishuFailure
from bot.feishu.markup import verbatim_words
from bot.feishu.user_scopes import NO_NEEDS, AccessNeeds, missing_scopes
from bot.hooks import PressTurn
from bot.outbox.buttons import Reply, confirmation
from bot.people.personal_access import NotConnected, UserToken
from bot.services import Services
from memory.errors import StoreError, StoreUnavailable
from memory.scope import AgentMemoryContext, FeishuPerson
from memory.tables.cards import NewButton

log = structlog.get_logger()
_Do = Callable[[Services, PressTurn, TurnAgenda], Awaitable[Reply]]
UNDO = "calendar.undo"
UNDO_LIVES_S = 600

# Feishu keeps a task's token for five minutes (task-v2, overview); a job may be late by so much.
TOKEN_HOLDS_MS = 4 * 60 * 1000

_MOST_GROUPS = 10


async def press_book(services: Services, here: PressTurn) -> Reply:
    """Books the meeting of the button, unless the asker's clock or the time has changed. Raises
    `FeishuFailure` where another attempt helps."""
    return await _press_offer(services, here, _book, "not-written")


async def press_task(services: Services, here: PressTurn) -> Reply:
    """Makes the task of the button. Raises as `press_book`."""
    return await _press_offer(services, here, _make_task, "not-written")


async def press_undo(services: Services, here: PressTurn) -> Reply:
    """Deletes exactly what was made. Raises as `press_book`."""
    return await _press_offer(services, here, _delete, "not-undone")


async def _press_offer(services: Services, here: PressTurn, do: _Do, otherwise: str) -> Reply:
    agenda = agenda_for(services, here.context, is_alone=False)
    if agenda is None:  # people's accounts were switched off since
        return _refusal_reply(here, otherwise, AgendaRefused("not_set_up"))
    try:
        return await do(services, here, agenda)
    except AgendaRefused as refusal:
        return _refusal_reply(here, otherwise, refusal, agenda.needs)


def _refusal_reply(
    here: PressTurn, otherwise: str, refusal: AgendaRefused, needs: AccessNeeds = NO_NEEDS
) -> Reply:
    log.info("agenda.refused", reason=refusal.reason)
    has_lost_access = refusal.reason in ("not_connected", "not_approved")
    reason = (
        wording.say("withdrawn", here.language)
        if has_lost_access
        else refusal.text_in(here.language)
    )
    sentence = wording.say(otherwise, here.language, reason=reason)
    return Reply(sentence, needs=needs)


async def _book(_: Services, here: PressTurn, agenda: TurnAgenda) -> Reply:
    plan = MeetingPlan.of_row(here.press.payload["arguments"])
    now, zone = await agenda.now(), await agenda.zone()
    if _has_moved(plan, zone, plan.start_s):
        return await _offer_again(agenda, here, plan, plan.moved_to(zone), now)
    if plan.start_s <= now.timestamp():
        raise AgendaRefused("past", at=wording.meeting_times(plan, here.language, now))
    written_event = await agenda.book(plan, _key(here))
    log.info("agenda.booked", attendees=len(plan.attendees))
    what = wording.meeting_in_one_line(plan, here.language, now, verbatim_words)
    event = {
        "calendar_id": written_event.calendar_id,
        "event_id": written_event.event_id,
        "title": plan.title,
    }
    arguments = {"title": plan.title, "with_whom": [one.name for one in plan.attendees]}
    line = wording.meeting_in_one_line(plan, "en", now)
    return Reply(
        wording.say("booked", here.language, what=what),
        (_undo(here, event),),
        tool_calls=(
            _record("book_meeting", arguments, f"Booked (ID: {written_event.event_id}) {line}"),
        ),
    )


async def _make_task(services: Services, here: PressTurn, agenda: TurnAgenda) -> Reply:
    plan, now = TaskPlan.of_row(here.press.payload["arguments"]), services.now()
    if here.attempts > 1 and services.clock() * 1000 - here.pressed_ms > TOKEN_HOLDS_MS:
        what = wording.task_in_one_line(plan, here.language, now, verbatim_words)
        return Reply(wording.say("unsure", here.language, what=what))
    zone = await agenda.clock_zone()
    if plan.due and not plan.is_all_day and _has_moved(plan, zone, plan.due[0]):
        moved_plan = plan.moved_to(zone)
        offer = wording.task_offer(moved_plan, here.language, now)
        summary = wording.task_in_one_line(moved_plan, here.language, now)
        return _again(
            here, MAKE_TASK, (plan.zone, moved_plan.zone), moved_plan.row(), offer, summary
        )
    if plan.is_over(now):
        raise AgendaRefused("past", at=wording.due_time(plan, here.language, now))
    guid = await agenda.make_task(plan, _key(here))
    log.info("agenda.task_made")
    what = wording.task_in_one_line(plan, here.language, now, verbatim_words)
    arguments = {"title": plan.title, "for_whom": plan.assignee.name}
    line = wording.task_in_one_line(plan, "en", now)
    return Reply(
        wording.say("task-made", here.language, what=what),
        (_undo(here, {"guid": guid, "title": plan.title}),),
        tool_calls=(_record("make_task", arguments, f"Made task (ID: {guid}) {line}"),),
    )


async def _delete(_: Services, here: PressTurn, agenda: TurnAgenda) -> Reply:
    event = here.press.payload["arguments"]
    if guid := event.get("guid"):
        id, was_there = guid, await agenda.unmake_task(guid)
    else:
        id = event["event_id"]
        was_there = await agenda.unbook(WrittenEvent(event["calendar_id"], id))
    log.info("agenda.undone", was_there=was_there)
    key = "undone" if was_there or here.attempts > 1 else "gone-already"
    record = _record("undo", {"title": event["title"]}, f"Deleted (ID: {id}) {event['title']}")
    return Reply(
        wording.say(key, here.language, what=verbatim_words(event["title"])), (), (record,)
    )


async def _offer_again(
    agenda: TurnAgenda, here: PressTurn, plan: MeetingPlan, moved_plan: MeetingPlan, now: datetime
) -> Reply:
    busy = await busy_people(agenda, moved_plan.attendees, moved_plan.span)
    offer = wording.meeting_offer(moved_plan, busy, here.language, now)
    summary = wording.meeting_in_one_line(moved_plan, here.language, now)
    return _again(here, BOOK, (plan.zone, moved_plan.zone), moved_plan.row(), offer, summary)


def _again(
    here: PressTurn,
    tool: str,
    zones: tuple[str, str],
    row: Mapping[str, Any],
    offer: str,
    summary: str,
) -> Reply:
    """Says that the asker's time zone is another one (`zones`: before and now), and asks for
    another press."""
    log.info("agenda.zone_changed")
    action = new_action(tool, row, here.context, text=offer, summary=summary)
    zone_note = wording.say("zone-changed", here.language, before=zones[0], now=zones[1])
    return Reply(f"{zone_note}\n\n{offer}", confirmation(action, here.chat_type, here.language))


def _has_moved(plan: MeetingPlan | TaskPlan, zone: ZoneInfo, at_s: int) -> bool:
    """Whether the asker's clock shows another time then than the card says."""
    before, after = (datetime.fromtimestamp(at_s, one) for one in (ZoneInfo(plan.zone), zone))
    return before.utcoffset() != after.utcoffset()


def _undo(here: PressTurn, event: Mapping[str, str]) -> NewButton:
    payload = {
        "tool": UNDO,
        "arguments": dict(event),
        "description": event["title"],
        "decision": "confirm",
        "language": here.language,
    }
    label = wording.say("undo", here.language)
    return NewButton(label, "confirm", payload, here.chat_type, UNDO_LIVES_S)


def _record(name: str, arguments: Mapping[str, Any], result: str) -> dict[str, Any]:
    return {"name": name, "arguments": dict(arguments), "result": result, "ok": True}


def _key(here: PressTurn) -> str:
    return idempotency_key(here.press.payload["id"])


def agenda_of(services: Services, turn: Turn) -> TurnAgenda | None:
    """Returns the calendar and tasks of the asker; None for an unasked turn, and where nothing is
    done as people. A private answer can be shared, so it counts as read by the group."""
    if turn.unasked or turn.request.sender_type != "user":
        return None
    is_alone = not turn.in_group and not turn.private
    return agenda_for(services, turn.context, is_alone=is_alone)


def agenda_for(
    services: Services, context: AgentMemoryContext, *, is_alone: bool
) -> TurnAgenda | None:
    """Returns the agenda of the actor of `context`; None for actors of another tenant, and where
    nothing is done as people."""
    if services.access is None or context.actor_tenant not in ("", context.tenant_key):
        return None
    asker = FeishuPerson(context.tenant_key, context.actor_id)

    async def members() -> Sequence[Colleague]:
        if context.chat_type == "p2p":
            member_names = await _met_in_groups(services, context)
        else:
            member_names = await services.feishu.member_names(context.chat_id)
        home = asker.tenant_key
        return [
            Colleague(p.open_id, name, p.tenant_key != home) for p, name in member_names.items()
        ]

    return TurnAgenda(
        services.feishu.calendars,
        _as_person(services, asker),
        asker.open_id,
        is_alone=is_alone,
        in_group=context.chat_type != "p2p",
        usual=services.settings.zone,
        now=services.now,
        members=members,
    )


async def _met_in_groups(
    services: Services, context: AgentMemoryContext
) -> dict[FeishuPerson, str]:
    """The members of the groups that both the asker and the bot are in: people name them in a p2p
    chat, too. A group whose members Feishu does not list is left out."""
    try:
        groups = await services.store.shared_groups(context, most=_MOST_GROUPS)
    except StoreError as exc:
        log.warning("agenda.groups_unknown", error=type(exc).__name__)
        return {}

    async def members(group: str) -> dict[FeishuPerson, str]:
        try:
            return await services.feishu.member_names(group)
        except FeishuFailure as failure:
            log.info("agenda.members_unknown", error=type(failure).__name__)
            return {}

    lists = await asyncio.gather(*map(members, groups))
    return dict(chain.from_iterable(one.items() for one in lists))


def _as_person(services: Services, asker: FeishuPerson) -> AsAsker:
    async def as_asker(
        purposes: Collection[str], make: Callable[[str], Awaitable[object]]
    ) -> object:
        async def call_with(token: UserToken) -> object:
            if missing := missing_scopes(purposes, token.scopes):
                raise AgendaRefused("not_approved", scopes=missing)
            return await make(token.access_token)

        if services.access is None:
            raise AgendaRefused("unavailable")
        try:
            return await services.access.call(asker, call_with)
        except NotConnected:
            raise AgendaRefused("not_connected", scopes=missing_scopes(purposes, ())) from None
        except StoreUnavailable as exc:
            log.warning("agenda.memory_away", error=type(exc).__name__)
            raise AgendaRefused("unavailable") from exc

    return as_asker


CALENDAR = Feature(
    name="calendar",
    tools=calendar_tools(),
    gather=agenda_of,
    presses={BOOK: press_book, MAKE_TASK: press_task, UNDO: press_undo},
)
