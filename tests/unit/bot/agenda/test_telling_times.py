"""In a group what is in anybody's calendar is told as free or busy and nothing else."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.agents.tool_types import ToolFailed
from bot.features.calendar.wording import WORDING
from bot.feishu.calendars import CalendarCalls
from bot.feishu.transport import SharedPace
from memory.scope import FeishuPerson
from tests.support.agendas import AgendaScene, random_events

pytestmark = pytest.mark.anyio

PEOPLE = ("Alice", "Bob", "陈晨")


async def told(scene: AgendaScene, asker: str, whom: list[str], *, alone: bool) -> str:
    """All that the model is given, that is kept of it, and that people read."""
    deps = scene.deps(asker, alone=alone)
    outcome = await scene.call(deps, "look_at_calendar", who=whom, when="this week")
    texts = [WORDING.tell(outcome, language) for language in ("en", "zh")]
    return json.dumps([outcome.result, outcome.fields, *texts], ensure_ascii=False)


@pytest.fixture(scope="module")
def scene() -> AgendaScene:
    scene = AgendaScene()
    for name in PEOPLE:
        scene.connect(name)
    return scene


@given(seed=st.integers(0, 1_000_000))
async def test_a_group_learns_no_title_no_place_and_no_guest(scene: AgendaScene, seed: int) -> None:
    chance = random.Random(seed)
    scene.tenant.platform.world.events.clear()
    titles = [f"zq{seed}x{n}zq" for n in range(chance.randrange(1, 8))]
    random_events(scene, chance, titles)
    asker, whom = chance.choice(PEOPLE), chance.sample(PEOPLE, chance.randrange(1, 4))
    in_group = await told(scene, asker, whom, alone=False)
    assert "zq" not in in_group
    assert "room" not in in_group

    owned = {
        one.summary
        for one in scene.tenant.platform.world.events.values()
        if scene.people[asker] in (one.owner, *one.attendees)
    }
    alone = await told(scene, asker, whom, alone=True)
    others = [title for title in titles if title not in owned]
    assert not [title for title in others if title in alone], "of others only times"
    if asker not in whom:
        assert "zq" not in alone


async def test_in_private_the_asker_s_own_events_have_their_titles(scene: AgendaScene) -> None:
    scene.tenant.platform.world.events.clear()
    day = f"{scene.now():%Y-%m-%d}"
    scene.add("Alice", "dentist", f"{day}T22:00:00", f"{day}T23:00:00", location="Room 9")
    alone = await told(scene, "Alice", ["me"], alone=True)
    assert "dentist" in alone
    assert "Room 9" in alone
    assert "dentist" not in await told(scene, "Bob", ["Alice"], alone=True)


@pytest.mark.parametrize("alone", [True, False])
async def test_a_group_learns_how_many_tasks_are_due_and_not_which(
    scene: AgendaScene, alone: bool
) -> None:
    scene.tenant.platform.world.tasks.clear()
    body = {"as": scene.people["Alice"], "summary": "zqtaskzq", "due": f"{scene.now():%Y-%m-%d}"}
    guid = scene.tenant.control("POST", "agendas/tasks", body)["guid"]
    outcome = await scene.call(scene.deps("Alice", alone=alone), "list_due_tasks")
    shown = json.dumps([outcome.result, outcome.fields, WORDING.tell(outcome, "en")])
    assert ("zqtaskzq" in shown) == (guid in shown) == alone
    assert "1 task" in shown


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("look_at_calendar", {"who": ["Bob"], "when": "today"}),
        ("look_at_calendar", {"when": "today"}),
        ("list_due_tasks", {}),
        ("book_meeting", {"title": "Sync", "at": "tomorrow", "with_whom": ["Bob"]}),
        ("book_meeting", {"title": "Sync", "at": "tomorrow at 3 pm"}),
    ],
)
async def test_nothing_of_a_calendar_is_shown_where_an_outsider_reads_along(
    name: str, arguments: dict[str, object]
) -> None:
    scene = AgendaScene()
    scene.connect("Alice")
    scene.outside.add("陈晨")
    with pytest.raises(ToolFailed) as refused:
        await scene.call(scene.deps("Alice"), name, **arguments)
    assert refused.value.kind == "why-outsiders_read"
    await scene.call(
        scene.deps("Alice", alone=True),
        name,
        **{**arguments, "with_whom": []} if name == "book_meeting" else arguments,
    )


@pytest.mark.parametrize(
    ("whose", "name", "arguments", "why"),
    [
        ("Bob", "look_at_calendar", {"who": ["Bob"], "when": "tomorrow"}, "private_calendar"),
        ("Alice", "look_at_calendar", {"when": "tomorrow"}, "own_private_calendar"),
        (
            "Bob",
            "book_meeting",
            {"title": "Sync", "at": "tomorrow", "with_whom": ["Bob"]},
            "private_calendar",
        ),
        ("Alice", "book_meeting", {"title": "Sync", "at": "tomorrow"}, "own_private_calendar"),
    ],
)
async def test_a_private_calendar_is_shown_to_the_asker_alone(
    whose: str, name: str, arguments: dict[str, object], why: str
) -> None:
    scene = AgendaScene()
    scene.connect("Alice")
    share = {"as": scene.people[whose], "permissions": "private"}
    scene.tenant.control("POST", "agendas/calendar", share)
    with pytest.raises(ToolFailed) as refused:
        await scene.call(scene.deps("Alice"), name, **arguments)
    assert refused.value.kind == f"why-{why}"
    await scene.call(scene.deps("Alice", alone=True), name, **arguments)


@pytest.mark.parametrize("permissions", ["private", "show_only_free_busy", "public"])
async def test_an_offered_meeting_says_who_is_busy_as_far_as_the_group_may_know(
    permissions: str,
) -> None:
    scene = AgendaScene()
    scene.connect("Alice")
    day = f"{scene.now() + timedelta(days=1):%Y-%m-%d}"
    scene.add("Bob", "dentist", f"{day}T15:00:00", f"{day}T16:00:00")
    share = {"as": scene.people["Bob"], "permissions": permissions}
    scene.tenant.control("POST", "agendas/calendar", share)
    deps = scene.deps("Alice")
    meeting = {"title": "Sync", "at": f"{day}T15:00", "with_whom": ["Bob"]}
    await scene.call(deps, "book_meeting", **meeting)
    (offer,) = deps.pending
    assert ("Busy" in offer.question) == (permissions != "private")


@pytest.mark.parametrize("calendar", [{}, {"permissions": ""}, {"permissions": "private"}])
async def test_a_calendar_of_which_feishu_does_not_say_more_is_private(
    scene: AgendaScene, calendar: dict[str, str]
) -> None:
    class Silent:
        async def call_as(self, *_: object) -> dict[str, object]:
            return {"calendars": [{"calendar": calendar, "user_id": "ou_bob"}]}

    calls = CalendarCalls(cast(Any, Silent()), SharedPace())
    assert not await calls.shows_times("ou_bob", "u-alice")


async def test_nothing_of_a_calendar_is_shown_where_the_readers_are_unknown() -> None:
    scene = AgendaScene()
    scene.connect("Alice")

    async def nobody(chat_id: str) -> dict[FeishuPerson, str]:
        return {}

    scene.services.feishu.member_names = nobody  # type: ignore[method-assign]
    with pytest.raises(ToolFailed) as refused:
        await scene.call(scene.deps("Alice"), "look_at_calendar", when="today")
    assert refused.value.kind == "why-outsiders_read"
