"""Feishu repeats a delivery for hours: days and times count from when something was written or
pressed, not from when it is answered.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bot.agents.prompts.prompt import ASKED_EARLIER
from bot.card_actions.clicks import ask_again
from bot.text.times import day_text
from memory.tables.cards import HandleTouch
from sandbox.world.actors import Speech
from sandbox.world.clicks import buttons
from sandbox.world.wire import card_of
from tests.support.whole_turns import Stage, handle_pushed, stage

pytestmark = pytest.mark.anyio
LATE = timedelta(days=1)


@pytest.fixture
async def late(database_url: str) -> AsyncIterator[Late]:
    async with stage(database_url) as here:
        yield Late(here)


class Late:
    """A group in which everything was said and pressed a day before the worker hears of it."""

    def __init__(self, here: Stage) -> None:
        self.stage = here
        self.services = replace(here.services, clock=lambda: time.time() + LATE.total_seconds())
        platform = here.town.platform
        self.ann = platform.actors.add_person("Ann").open_id
        self.group = platform.groups.add("Garden", [self.ann]).chat_id
        self.tenant = platform.world.config.tenant_key
        self.then = here.services.now()

    async def say(self, text: str, *acts: tuple[str, dict[str, Any]]) -> str:
        """Returns the card that answers."""
        self.stage.model.acts = list(acts)
        told = f"@{self.stage.town.platform.world.bot.name} {text}"
        self.stage.town.platform.actors.say(Speech(self.ann, self.group, told))
        return await self._answered()

    async def press(self, label: str) -> str:
        """Presses a button of the newest card; returns the card that answers."""
        platform, card = self.stage.town.platform, self._cards()[-1]
        labels = [one["text"]["content"] for one in buttons(card_of(platform.world, card))]
        platform.clicks.click(self.ann, card.message_id, value=None, index=labels.index(label))
        return await self._answered()

    async def again(
        self, outcome: str, prompts: list[str], *, pressed: bool = True, asked_ms: int = 0
    ) -> None:
        """Asks the question of the newest card again, a day later, as if it had that outcome."""
        card = self._cards()[-1].message_id
        self.stage.database.execute("update agent_turns set outcome = %s", (outcome,))
        self.stage.model.look = prompts.append
        now_ms = int((self.then + LATE).timestamp() * 1000)
        later = replace(self.services, clock=lambda: now_ms / 1000)
        touch = HandleTouch("again", self.group, card, self.ann, self.tenant)
        at_ms = now_ms if pressed else 0
        await ask_again(later, touch, now_ms, None, at_ms=at_ms, asked_ms=asked_ms)

    def _cards(self) -> list[Any]:
        world = self.stage.town.platform.world
        found = [world.messages[one] for one in world.by_chat[self.group]]
        return [one for one in found if one.sender == world.bot.open_id]

    async def _answered(self) -> str:
        events = self.stage.town.events
        while events:
            await handle_pushed(self.services, events.pop(0))
        return str(card_of(self.stage.town.platform.world, self._cards()[-1]))

    def row(self, query: str) -> Any:
        found = self.stage.database.execute(query.encode()).fetchone()
        assert found is not None
        return found[0]


@pytest.mark.parametrize(
    ("at", "days", "hour"),
    [("the day after tomorrow at 9am", 2, 9), ("三天后上午10点", 3, 10)],
)
async def test_a_confirmed_reminder_counts_from_its_question(
    late: Late, at: str, days: int, hour: int
) -> None:
    due = (late.then + timedelta(days=days)).replace(hour=hour, minute=0)

    shown = await late.say("what else?", ("set_reminder", {"text": "stretch", "at": at}))
    assert day_text(due, "en", now=late.services.now()) in shown
    await late.press("Confirm")

    assert late.row("select local_at from agent_timers") == f"{due:%Y-%m-%dT%H:%M}"


@pytest.mark.parametrize("command", ["/digest today", "/摘要 今天"])
async def test_a_late_digest_of_today_tells_of_the_day_on_which_it_was_asked(
    late: Late, command: str
) -> None:
    await late.say("remember that the quince launch is on 3 March")

    told = await late.say(command)

    assert "quince launch" in told
    language = "en" if command.startswith("/d") else "zh"
    assert day_text(late.then, language, now=late.services.now()) in told


async def test_an_import_ends_when_it_was_asked_for(late: Late) -> None:
    await late.say("remember that the quince launch is on 3 March")
    await late.say("/import")
    await late.press("Preview")
    await late.press("Import")

    until = late.row("select until from chat_imports")

    assert abs(until - late.then) < timedelta(minutes=5)


async def test_a_reminder_is_found_by_the_day_that_was_meant(late: Late) -> None:
    tomorrow = late.then + timedelta(days=1)
    at = f"{late.then + timedelta(days=2):%Y-%m-%d}T09:00"
    await late.say(f"remind me to stretch at {at}", ("set_reminder", {"text": "stretch", "at": at}))
    late.stage.database.execute(
        "update agent_timers set local_at = %s, due_at = %s",
        (f"{tomorrow:%Y-%m-%dT%H:%M}", tomorrow),
    )
    reminder = late.row("select id from agent_timers")

    await late.say("cancel the one for tomorrow", ("cancel_reminder", {"reminder_id": reminder}))

    assert late.row("select state from agent_timers") == "cancelled"


@pytest.mark.parametrize("outcome", ["answered", "apologised"])
@pytest.mark.parametrize("pressed", [False, True])
async def test_a_question_that_waited_means_the_days_of_its_own_time(
    late: Late, outcome: str, pressed: bool
) -> None:
    """It waited for a permission, or for its first answer; asked again after an answer it is asked
    anew."""
    late.services = late.stage.services
    await late.say("what have we planned for tomorrow?")
    prompts: list[str] = []

    await late.again(outcome, prompts, pressed=pressed)

    has_waited = not pressed or outcome == "apologised"
    assert (f"{ASKED_EARLIER}\\n{late.then:%Y-%m-%d}" in prompts[-1]) == has_waited


@pytest.mark.parametrize("outcome", ["answered", "apologised"])
async def test_a_question_that_waited_twice_means_the_days_of_its_own_time(
    late: Late, outcome: str
) -> None:
    """Unless it was answered in between and is asked anew."""
    late.services = late.stage.services
    await late.say("what have we planned for tomorrow?")
    prompts: list[str] = []
    await late.again("apologised", prompts)
    late.stage.database.execute(
        "update agent_messages set created_at = created_at + interval '1 day'"
        " where turn_id in (select id from agent_turns where again_of is not null)"
    )
    await late.again(outcome, prompts)

    has_waited = outcome == "apologised"
    assert (f"{ASKED_EARLIER}\\n{late.then:%Y-%m-%d}" in prompts[-1]) == has_waited


async def test_a_question_that_waits_for_a_permission_keeps_its_own_time(late: Late) -> None:
    late.services = late.stage.services
    await late.say("what have we planned for tomorrow?")
    prompts: list[str] = []
    two_days_ago = late.then - timedelta(days=2)
    asked_ms = int(two_days_ago.timestamp() * 1000)

    await late.again("answered", prompts, pressed=False, asked_ms=asked_ms)

    assert f"{ASKED_EARLIER}\\n{two_days_ago:%Y-%m-%d}" in prompts[-1]
