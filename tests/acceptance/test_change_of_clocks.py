"""Over midnight and the change of clocks, with the one command killed: everything comes once.

The clock of the machine is left alone. The zone of the bot is one made for the test, whose clock is
put forward or back about a minute after the start.
"""

from __future__ import annotations

import faulthandler
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from psycopg import OperationalError

from lab.doubles.processes import eventually
from tests.acceptance.conftest import is_from_bot, markdown
from tests.acceptance.test_one_command import OneCommand, lives, one_command
from tests.support.zones import NAME, write_zone

pytestmark = pytest.mark.slow

HOUR_S = 3600
AHEAD_S = (30, 60, 120, 240)  # from the start to what is due; more where the machine is slow


@dataclass(frozen=True, slots=True)
class Change:
    """What the clock shows when it is changed, by how much, and the time of day at which things are
    due, `due_s` seconds from the change. The next day has `next_h` hours."""

    shows: datetime
    shift_s: int
    at: str
    due_s: int
    next_h: int


SPRING = Change(datetime(2026, 1, 1, 0, 0), HOUR_S, "00:00", 0, 23)  # noqa: DTZ001
AUTUMN = Change(datetime(2026, 1, 1, 1, 59, 20), -HOUR_S, "01:59", -20, 25)  # noqa: DTZ001


class Evening:
    """The one command before a change of clocks, a chat that is timed and one that asks."""

    def __init__(self, bot: OneCommand, zones: Path) -> None:
        self.bot, self.zones = bot, zones
        state = bot.platform.state()
        self.name = state["bot"]["name"]
        self.people = {one["name"]: one["open_id"] for one in state["people"]}
        self.begin()

    def begin(self) -> None:
        """From now on it is about two new chats, in which nothing has come yet."""
        members = [self.people["Alice"], *self.people.values()]
        self.timed, self.asking = (
            self.bot.platform.post("/chats", name=name, members=members)["chat_id"]
            for name in ("Timed", "Asking")
        )
        self.until_sent(
            self.say("remember that the medlar budget is 400 euros", self.timed),
            self.say("remember that the quince launch is on 3 March", self.asking),
            self.say("/proactive on", self.asking),
        )

    def say(self, text: str, chat: str) -> str:
        return self.bot.platform.say(self.people["Alice"], chat, f"@{self.name} {text}")

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        try:
            return self.bot.rows(query)
        except OperationalError:
            return []  # it is being started

    def until_sent(self, *turns: str) -> None:
        named = ", ".join(f"'{one}'" for one in turns)
        query = f"select count(*) from agent_turns where state = 'sent' and id in ({named})"
        eventually(lambda: self.rows(query) == [(len(turns),)], within_s=120, what="it is answered")

    def kill(self) -> None:
        """-9 to the one command; everything goes with it."""
        everybody = self.bot.everybody()
        self.bot.process.popen.send_signal(signal.SIGKILL)
        self.bot.process.popen.wait(10)
        eventually(
            lambda: not [one for one in everybody if lives(one)],
            what="everything is gone",
        )

    def until(self, moment: datetime) -> None:
        time.sleep(max(0.0, (moment - datetime.now(UTC)).total_seconds()))

    def prepared(self, change: Change) -> datetime:
        """Sets what is due around the change; returns when the clock changes. Started anew for it,
        with more time where the machine was too slow."""
        for ahead_s in AHEAD_S:
            moment = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=ahead_s)
            write_zone(self.zones, change=moment, shows=change.shows, shift_s=change.shift_s)
            self.kill()
            self.bot.start_again()
            day = "tomorrow" if change.due_s == 0 else "today"
            self.until_sent(
                self.say(f"remind us {day} at {change.at} to wind the clock", self.timed),
                self.say(f"every day at {change.at} remind us to feed the cat", self.timed),
                self.say(f"/digest daily {change.at}", self.timed),
            )
            due = moment + timedelta(seconds=change.due_s)
            if datetime.now(UTC) < due - timedelta(seconds=5):
                self.bot.platform.say(self.people["Bob"], self.asking, "When is the quince launch?")
                eventually(self.waits, what="the question waits")
                return moment
            self.rows(
                "update agent_timers set state = 'cancelled' where state = 'active' returning 1"
            )
            faulthandler.cancel_dump_traceback_later()  # this takes as long as it takes
            self.begin()
        raise AssertionError("this machine is too slow")

    def waits(self) -> list[tuple[Any, ...]]:
        return self.rows(
            "select id from agent_timers where kind = 'proactive' and state = 'active'"
        )

    def timers(self) -> dict[str, tuple[str, str, int, datetime]]:
        """The state, how often it came, and when it comes next, by what it is."""
        found = self.rows(
            "select coalesce(nullif(content, ''), kind), state, fired, due_at from agent_timers"
            f" where kind <> 'proactive' and chat_id = '{self.timed}'"
        )
        return {of: (state, fired, due) for of, state, fired, due in found}  # type: ignore[misc]

    def stored(self, *statuses: str) -> list[tuple[Any, ...]]:
        """The cards of what is timed that are in one of these states."""
        named = ", ".join(f"'{one}'" for one in statuses)
        return self.rows(
            "select m.content from agent_messages m join agent_turns t on t.id = m.turn_id"
            " where m.role = 'assistant' and t.origin in ('reminder', 'digest')"
            f" and t.chat_id = '{self.timed}' and m.status in ({named})"
        )

    def shown(self, sign: str, words: str, chat: str) -> list[str]:
        """The cards with this sign and these words."""
        said = [m for m in self.bot.platform.messages(chat) if is_from_bot(m)]
        return [text for text in map(markdown, said) if sign in text and words in text]


@pytest.fixture
def evening(tmp_path: Path) -> Iterator[Evening]:
    zones = tmp_path / "zones"
    write_zone(zones, change=datetime(2020, 1, 1, tzinfo=UTC), shows=SPRING.shows, shift_s=0)
    with one_command(
        tmp_path,
        OPENAI_API_KEY="",
        TIMEZONE=NAME,
        PYTHONTZPATH=str(zones),
        PROACTIVE_HOURS="0-24",
        PROACTIVE_AFTER_MINUTES="1",
        FOLLOWUP_WINDOW_SECONDS="0",
    ) as bot:
        yield Evening(bot, zones)


@pytest.mark.parametrize("change", [SPRING, AUTUMN], ids=["forward at midnight", "back"])
def test_everything_comes_once(evening: Evening, change: Change) -> None:
    moment = evening.prepared(change)
    due = moment + timedelta(seconds=change.due_s)
    evening.until(due - timedelta(seconds=3))
    evening.kill()
    evening.until(moment + timedelta(seconds=1))
    evening.bot.start_again()
    eventually(lambda: evening.stored("pending", "sent"), what="the first card is stored")
    evening.kill()
    evening.bot.start_again()

    eventually(
        lambda: all(fired for _, fired, _ in evening.timers().values()) and not evening.waits(),
        within_s=150,
        what=f"everything came\n{evening.timers()}",
    )
    following = due + timedelta(hours=change.next_h)
    assert evening.timers() == {
        "wind the clock": ("done", 1, due),
        "feed the cat": ("active", 1, following),
        "digest": ("active", 1, following),
    }
    assert len(evening.shown("⏰", "wind the clock", evening.timed)) == 1
    assert len(evening.shown("⏰", "feed the cat", evening.timed)) == 1
    assert len(evening.shown("📋", "medlar budget", evening.timed)) == 1
    assert len(evening.shown("Nobody has answered this yet", "3 March", evening.asking)) == 1
    assert len(evening.stored("sent")) == 3
