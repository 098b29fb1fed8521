"""What is offered to be written, why something is not, and what a press does once."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.agents.tool_types import ToolFailed
from bot.features.calendar.feature import TOKEN_HOLDS_MS
from bot.feishu.errors import Unreachable
from bot.feishu.user_scopes import EVERYTHING, READ_CALENDAR, WRITE_CALENDAR, scopes_for
from tests.support.agendas import AgendaScene, Killed, offered_payload, undo_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def scene() -> AgendaScene:
    scene = AgendaScene()
    scene.connect("Alice")
    return scene


def tomorrow(scene: AgendaScene, days: int = 1) -> str:
    return f"{scene.now() + timedelta(days=days):%Y-%m-%d}"


async def refusal(scene: AgendaScene, tool: str, **arguments: Any) -> tuple[str, str]:
    """The kind and the sentence of a call that does nothing."""
    deps = scene.deps()
    with pytest.raises(ToolFailed) as failed:
        await scene.call(deps, tool, **arguments)
    assert deps.pending == []
    return failed.value.kind.removeprefix("why-"), str(failed.value)


def forget(scene: AgendaScene) -> None:
    """Alice has taken back all that she had allowed."""
    scene.access.tokens.clear()
    scene.tenant.platform.user_tokens.revoke(scene.people["Alice"])


async def offer(scene: AgendaScene, **arguments: Any) -> dict[str, Any]:
    deps = scene.deps()
    await scene.call(deps, "book_meeting", **{"title": "launch", **arguments})
    return offered_payload(deps)


async def test_the_first_time_is_offered_when_all_are_free(scene: AgendaScene) -> None:
    day = tomorrow(scene)
    scene.add("Bob", "secret", f"{day}T09:00:00", f"{day}T10:15:00")
    scene.add("Alice", "own", f"{day}T10:30:00", f"{day}T11:00:00")
    deps = scene.deps()
    outcome = await scene.call(
        deps, "book_meeting", title="launch", at=day, with_whom=["bob", "me"]
    )
    assert outcome.kind == "waits-for-press"
    (action,) = deps.pending
    assert "at 11:00–12:00 (Asia/Shanghai)" in action.question
    assert "📅 **launch**" in action.question
    assert "with Bob" in action.question
    assert "secret" not in action.question
    assert {one["summary"] for one in scene.written()} == {"secret", "own"}, "nothing is written"


async def test_who_is_busy_at_the_time_that_was_said_is_named(scene: AgendaScene) -> None:
    day = tomorrow(scene)
    scene.add("Bob", "secret", f"{day}T15:00:00", f"{day}T15:10:00")
    deps = scene.deps()
    at = f"{day}T15:00"
    await scene.call(deps, "book_meeting", title="x", at=at, with_whom=["Bob", "陈晨"])
    assert "Busy then: Bob" in deps.pending[0].question
    assert "secret" not in deps.pending[0].question


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        ({"at": "yesterday at 3 pm"}, "past", "(yesterday)"),
        ({"at": "Thursday or Friday"}, "unclear_time", "which time"),
        ({"at": "2020-01-01T09:00"}, "past", "2020-01-01"),
        ({"at": "2099-01-01"}, "far", "more than a year"),
        ({"at": "soon"}, "no_day", "Tell me the day"),
        ({"at": "tomorrow", "with_whom": ["Zoe"]}, "unknown_person", "Zoe"),
        ({"at": "tomorrow", "title": " "}, "no_title", "what to call it"),
        ({"at": "tomorrow", "title": "x" * 201}, "long_title", "200"),
        ({"at": "tomorrow", "minutes": 1}, "length", "5 minutes"),
        ({"at": "tomorrow", "minutes": 600}, "no_room", "600 minutes"),
    ],
)
async def test_what_cannot_be_booked_is_said_in_one_sentence(
    scene: AgendaScene, arguments: dict[str, Any], kind: str, says: str
) -> None:
    found, sentence = await refusal(scene, "book_meeting", **{"title": "launch", **arguments})
    assert found == kind
    assert says in sentence
    assert "\n" not in sentence


async def test_who_left_or_is_outside_is_named(scene: AgendaScene) -> None:
    scene.tenant.control("POST", "agendas/resign", {"as": scene.people["Bob"]})
    wish = {"title": "launch", "at": "tomorrow", "with_whom": ["Bob"]}
    assert await refusal(scene, "book_meeting", **wish) == (
        "left",
        "Bob isn't in your organization, or has left it, so I can't look at their calendar or "
        "invite them.",
    )
    scene.outside.add("陈晨")
    found, sentence = await refusal(scene, "make_task", title="slides", for_whom="陈晨")
    assert found == "outside"
    assert "陈晨 isn't in your organization" in sentence


async def test_who_has_left_since_the_offer_leaves_no_meeting_behind(scene: AgendaScene) -> None:
    payload = await offer(scene, at="tomorrow", with_whom=["陈晨", "Bob"])
    scene.tenant.control("POST", "agendas/resign", {"as": scene.people["Bob"]})
    reply = await scene.press(payload)
    assert reply.text.startswith("Nothing was saved: Bob isn't in")
    assert scene.written() == []


async def test_a_time_that_passed_since_the_offer_is_not_booked(scene: AgendaScene) -> None:
    payload = await offer(scene, at="tomorrow at 3 pm")
    scene.tenant.clock.now += 2 * 86_400
    scene.connect("Alice")
    reply = await scene.press(payload)
    assert "already passed" in reply.text
    assert scene.written() == []


async def test_another_time_zone_since_the_offer_is_said_and_asked_again(
    scene: AgendaScene,
) -> None:
    payload = await offer(scene, at=f"{tomorrow(scene)}T15:00", with_whom=["Bob"])
    day = tomorrow(scene, 2)
    scene.add("Alice", "flight", f"{day}T09:00:00", f"{day}T10:00:00", zone="Europe/Berlin")
    reply = await scene.press(payload)
    assert "Your time zone is now Europe/Berlin; when you asked, it was Asia/Shanghai" in reply.text
    assert "at 15:00–16:00 (Europe/Berlin)" in reply.text
    assert [one["summary"] for one in scene.written()] == ["flight"]
    yes, no = reply.buttons
    assert yes.group_id == no.group_id
    booked = await scene.press(yes.payload)
    assert "Booked: launch" in booked.text
    event = next(one for one in scene.written() if one["summary"] == "launch")
    at = datetime.fromtimestamp(int(event["start_time"]["timestamp"]), UTC)
    assert event["start_time"]["timezone"] == "Europe/Berlin"
    assert at.hour in (13, 14), "three in the afternoon in Berlin"


async def test_what_is_not_allowed_is_asked_for_by_its_own_scopes(scene: AgendaScene) -> None:
    forget(scene)
    deps = scene.deps()
    with pytest.raises(ToolFailed, match="need your permission first"):
        await scene.call(deps, "look_at_calendar")
    assert deps.opened_sources["calendar"].needs.scopes == scopes_for((READ_CALENDAR,))[1:]

    scene.connect("Alice", " ".join(scopes_for((READ_CALENDAR,))))
    deps = scene.deps()
    with pytest.raises(ToolFailed, match="need your permission first"):
        await scene.call(deps, "book_meeting", title="x", at="tomorrow")
    assert deps.opened_sources["calendar"].needs.scopes == scopes_for((WRITE_CALENDAR,))[1:]


@pytest.mark.parametrize(
    ("tool", "given", "why"),
    [
        ("book_meeting", {"title": "x", "at": "tomorrow", "with_whom": ["Zed"]}, "Zed"),
        ("book_meeting", {"title": " ", "at": "tomorrow"}, "what to call it"),
        ("book_meeting", {"title": "x", "at": "blurday"}, "Tell me the day"),
        ("make_task", {"title": "x", "for_whom": "Zed"}, "Zed"),
        ("look_at_calendar", {"who": ["Zed"]}, "Zed"),
    ],
)
async def test_nobody_is_asked_to_allow_what_cannot_be_done(
    scene: AgendaScene, tool: str, given: dict[str, Any], why: str
) -> None:
    forget(scene)
    deps = scene.deps()
    with pytest.raises(ToolFailed, match=why):
        await scene.call(deps, tool, **given)
    assert deps.opened_sources["calendar"].needs.scopes == ()


async def test_a_task_for_tomorrow_needs_no_calendar(scene: AgendaScene) -> None:
    forget(scene)
    scene.connect("Alice", "offline_access task:task:write")
    deps = scene.deps()
    await scene.call(deps, "make_task", title="slides", for_whom="Bob", due="by tomorrow")
    assert deps.opened_sources["calendar"].needs.scopes == ()
    reply = await scene.press(offered_payload(deps))
    (task,) = scene.written("tasks")
    assert (task["summary"], task["assignees"]) == ("slides", ["Bob"])
    assert "Task created: slides · for Bob · due" in reply.text


async def test_what_was_withdrawn_before_the_press_is_said_and_asked_for(
    scene: AgendaScene,
) -> None:
    payload = await offer(scene, at="tomorrow")
    gone = [one for one in EVERYTHING if not one.startswith("calendar:calendar.event")]
    forget(scene)
    scene.connect("Alice", " ".join(gone))
    reply = await scene.press(payload)
    assert reply.text.startswith("Nothing was saved: I no longer have your permission for this")
    assert reply.needs.scopes == scopes_for((WRITE_CALENDAR,))[1:]
    assert scene.written() == []


async def test_undo_deletes_just_what_was_made_and_says_when_it_is_gone(
    scene: AgendaScene,
) -> None:
    first = await scene.press(await offer(scene, at="tomorrow", title="one"))
    second = await scene.press(await offer(scene, at="tomorrow", title="two"))
    assert undo_of(first).lives_s == 600
    assert "Undone: one" in (await scene.press(undo_of(first).payload)).text
    assert [one["summary"] for one in scene.written()] == ["two"]
    assert "already deleted in Feishu" in (await scene.press(undo_of(first).payload)).text
    event = undo_of(second).payload["arguments"]["event_id"]
    scene.tenant.control("POST", "agendas/remove", {"event_id": event})
    assert "already deleted in Feishu" in (await scene.press(undo_of(second).payload)).text


async def test_a_press_that_died_is_done_once(scene: AgendaScene) -> None:
    for calls in range(5):
        for reaches in (True, False):
            title, at = f"t{calls}{reaches}", tomorrow(scene, 2 * calls + reaches + 1)
            payload = await offer(scene, at=at, title=title, with_whom=["Bob"])
            scene.transport.dies = (calls, reaches)
            with contextlib.suppress(Killed):
                await scene.press(payload)
            scene.transport.dies = None
            await scene.press(payload, attempts=2)
            made = [one for one in scene.written() if one["summary"] == title]
            assert len(made) == 1
            assert made[0]["attendees"] == ["Bob"]


async def test_a_task_whose_token_may_have_lapsed_is_not_made_again(scene: AgendaScene) -> None:
    deps = scene.deps()
    await scene.call(deps, "make_task", title="slides")
    payload, pressed_ms = offered_payload(deps), int(scene.tenant.clock.now * 1000)
    await scene.press(payload)
    scene.tenant.clock.now += TOKEN_HOLDS_MS / 1000 + 1
    reply = await scene.press(payload, attempts=2, pressed_ms=pressed_ms)
    assert "don't know whether the task was created" in reply.text
    assert len(scene.written("tasks")) == 1


async def test_where_feishu_may_have_done_it_the_press_goes_on_later(scene: AgendaScene) -> None:
    payload = await offer(scene, at="tomorrow")
    fault = {"path_prefix": "/open-apis/calendar/v4/calendars", "path_suffix": "/events"}
    scene.tenant.control("POST", "faults", {**fault, "status": 502, "body": "x", "times": 0})
    with pytest.raises(Unreachable):
        await scene.press(payload)
    scene.tenant.control("DELETE", "faults")
    assert "Booked" in (await scene.press(payload, attempts=2)).text
    assert len(scene.written()) == 1


async def test_an_answer_that_only_shows_offers_nothing(scene: AgendaScene) -> None:
    deps = scene.deps(reads_only=True)
    with pytest.raises(ToolFailed, match="only shows what is known"):
        await scene.call(deps, "book_meeting", title="x", at="tomorrow")
    assert deps.pending == []
