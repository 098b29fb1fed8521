"""Reminders through the real processes: set, shown once at their time, listed, cancelled, gone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest

from bot.text.times import day_text
from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, is_from_bot, markdown
from tests.acceptance.test_commands import card_of, click
from tests.acceptance.test_own_memory import beside_entries
from tests.support import profiles

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return profiles.OFFLINE


def timers(world: World, chat: str = "") -> list[dict[str, Any]]:
    return world.rows(
        "select * from agent_timers where chat_id = %s order by created_at", chat or world.group
    )


def make_due(world: World, id: str, ago: timedelta = timedelta()) -> None:
    world.rows(
        "update agent_timers set due_at = date_trunc('milliseconds', now() - %s),"
        " queued_until = null where id = %s returning id",
        ago,
        id,
    )


def cards_of(world: World, id: str) -> list[dict[str, Any]]:
    """The stored cards of a timer's times."""
    return world.rows(
        "select m.* from agent_messages m join agent_turns t on t.id = m.turn_id"
        " where t.parent_id = %s and m.role = 'assistant' order by m.id",
        id,
    )


def shown(world: World, word: str, chat: str = "") -> list[dict[str, Any]]:
    """The cards of reminders in the chat that hold a word."""
    said = world.platform.messages(chat or world.group)
    found = [m for m in said if m["content"] != "This message was recalled"]
    return [m for m in found if is_from_bot(m) and "⏰" in markdown(m) and word in markdown(m)]


def over(world: World, id: str) -> dict[str, Any]:
    """The timer once it has gone on from the time that was due."""

    def gone_on() -> list[dict[str, Any]]:
        return world.rows(
            "select * from agent_timers where id = %s and fired > 0"
            " and (state = 'done' or due_at > now())",
            id,
        )

    return eventually(gone_on, what="the reminder is over")[0]


def test_a_reminder_is_shown_once_in_its_thread_and_is_part_of_its_history(world: World) -> None:
    asked, said = world.ask("Alice", "remind us tomorrow at 3 pm to water the zinnia")
    tomorrow = datetime.now(BERLIN) + timedelta(days=1)
    assert f"{day_text(tomorrow, 'en', now=tomorrow)} at 15:00" in said
    (timer,) = timers(world)
    assert timer["due_at"] == tomorrow.replace(hour=15, minute=0, second=0, microsecond=0)
    assert timer["for_all"]

    make_due(world, timer["id"])
    assert over(world, timer["id"])["state"] == "done"
    (card,) = shown(world, "zinnia")
    assert "<at" not in markdown(card), "nobody is called for in person"
    assert card["root_id"] == asked
    (stored,) = cards_of(world, timer["id"])
    assert (stored["content"], stored["message_id"]) == (markdown(card), card["message_id"])
    assert stored["conversation_id"] == f"feishu:{world.group}:{asked}"
    _, again = world.ask("Bob", "list our reminders")
    assert "no reminders" in again


@pytest.mark.slow
@pytest.mark.parametrize("locked", ["agent_messages", "agent_timers"])
def test_killed_while_it_is_being_marked_it_is_shown_once(world: World, locked: str) -> None:
    world.ask("Alice", "remind me in 2 hours to wind the metronome")
    (timer,) = timers(world)
    path = "/open-apis/im/v1/messages"
    world.platform.post("/faults", path_prefix=path, method="POST", delay_s=1.5, times=1)
    make_due(world, timer["id"])
    eventually(lambda: cards_of(world, timer["id"]), what="the card is stored")
    of_turn = "turn_id in (select id from agent_turns where parent_id = %s)"
    key = of_turn if locked == "agent_messages" else "id = %s"
    with psycopg.connect(world.database_url) as blocker:
        blocker.execute(f"select 1 from {locked} where {key} for update".encode(), [timer["id"]])
        eventually(lambda: shown(world, "metronome"), what="the card is sent")
        world.bot.workers[-1].kill()
    world.bot.start_worker()
    over(world, timer["id"])
    (card,) = shown(world, "metronome")
    (stored,) = cards_of(world, timer["id"])
    assert (stored["status"], stored["content"]) == ("sent", markdown(card))


def test_after_days_of_downtime_one_late_card_and_the_next_at_the_same_hour(world: World) -> None:
    world.ask("Alice", "every day at 9:00 remind us to stand up straight")
    (timer,) = timers(world)
    summer = datetime(2026, 7, 1, 9, 0)  # noqa: DTZ001
    since = (datetime.now(BERLIN) - timedelta(days=4)).replace(
        hour=9, minute=0, second=0, microsecond=0
    )
    world.rows(
        "update agent_timers set local_at = %s, due_at = %s where id = %s returning id",
        f"{summer:%Y-%m-%dT%H:%M}",
        since.astimezone(UTC),
        timer["id"],
    )
    after = over(world, timer["id"])
    (card,) = shown(world, "stand up straight")
    assert f"It was due on {day_text(since, 'en', now=since)} at 09:00" in markdown(card)
    missed = (datetime.now(BERLIN) - since).days  # four after nine o'clock, three before
    assert f"I missed {missed} more since then" in markdown(card)
    following = after["due_at"].astimezone(BERLIN)
    assert (following.hour, following.minute) == (9, 0)
    assert timedelta() < following - datetime.now(BERLIN) <= timedelta(days=1, hours=1)
    assert (after["state"], after["fired"]) == ("active", 1)


def test_two_workers_show_each_of_many_once(world: World) -> None:
    world.bot.start_worker()
    for n in range(6):
        world.ask("Alice", f"remind me in 3 hours to count sheep{n}")
    found = timers(world)
    for timer in found:
        make_due(world, timer["id"])
    for timer in found:
        over(world, timer["id"])
    assert [len(shown(world, f"sheep{n}")) for n in range(6)] == [1] * 6
    world.bot.workers.pop().terminate()


def test_it_addresses_whom_it_is_for_and_says_who_set_it(world: World) -> None:
    world.ask("Alice", "remind @Bob tomorrow at 9am to call the tiler")
    (timer,) = timers(world)
    bob, alice = world.people["Bob"], world.people["Alice"]
    assert (timer["for_people"], timer["actor_id"]) == ([bob], alice)
    make_due(world, timer["id"])
    over(world, timer["id"])
    (card,) = shown(world, "tiler")
    assert markdown(card).startswith(f"<at id={bob}></at>")
    assert "(set by Alice)" in markdown(card)
    assert alice not in markdown(card)


def test_the_list_cancels_for_author_and_addressee_and_nobody_else(world: World) -> None:
    world.ask("Alice", "remind @Bob tomorrow at 9am to sharpen the adze")
    world.ask("Alice", "明天下午4点提醒大家擦玻璃")
    question, listed = world.ask("陈晨", "/提醒")
    assert "擦玻璃" in listed
    assert "sharpen the adze" in listed
    card = card_of(world, question)
    first, second = beside_entries(card)
    assert ("sharpen the adze" in first[0], "擦玻璃" in second[0]) == (True, True)
    assert first[1] == second[1] == ["取消"]
    click(world, "陈晨", card, index=1)
    eventually(lambda: said(world, "没有改动"), what="a refusal")
    pressed = [(first[0], ["取消"]), (second[0], ["✓ 取消"])]
    eventually(lambda: beside_entries(as_it_is(world, card)) == pressed, what="it is marked")
    assert {timer["state"] for timer in timers(world)} == {"active"}

    question, _ = world.ask("Bob", "/reminders")
    click(world, "Bob", card_of(world, question), index=0)
    eventually(lambda: timers(world)[0]["state"] == "stopped", what="Bob is left alone")
    question, _ = world.ask("Alice", "/reminders")
    click(world, "Alice", card_of(world, question), index=0)
    eventually(lambda: timers(world)[1]["state"] == "cancelled", what="it is cancelled")
    eventually(lambda: said(world, "这里还没有提醒"), what="the list that is left")


def as_it_is(world: World, card: dict[str, Any]) -> dict[str, Any]:
    """The same card as it is shown now."""
    found = world.platform.messages(world.group)
    return next(one for one in found if one["message_id"] == card["message_id"])


def said(world: World, text: str) -> list[dict[str, Any]]:
    return world.rows(
        "select 1 from agent_messages where chat_id = %s and content like %s",
        world.group,
        f"%{text}%",
    )


def test_in_words_it_is_changed_and_cancelled_by_its_author(world: World) -> None:
    question, _ = world.ask("Alice", "明天上午9点提醒我交周报")
    world.settled(question)
    _, changed = world.ask("Alice", "把周报的提醒改到后天下午4点", root_id=question)
    assert "已修改" in changed
    (timer,) = timers(world)
    day = datetime.now(BERLIN) + timedelta(days=2)
    assert timer["due_at"].astimezone(BERLIN) == day.replace(
        hour=16, minute=0, second=0, microsecond=0
    )
    _, refused = world.ask("Bob", "取消周报的提醒", root_id=question)
    assert "没能完成" in refused
    _, gone = world.ask("Alice", "取消周报的提醒", root_id=question)
    assert "已取消提醒：“交周报”" in gone
    assert timers(world)[0]["state"] == "cancelled"


def test_the_day_of_one_of_several_names_it(world: World) -> None:
    for question in ("remind me next Friday at 10 to pay Fig", "remind me tomorrow at 9 to call"):
        world.settled(world.ask("Alice", question)[0])
    _, gone = world.ask("Alice", "cancel the Friday reminder")

    assert "Reminder cancelled: “pay Fig”" in gone
    assert sorted(one["state"] for one in timers(world)) == ["active", "cancelled"]


@pytest.mark.parametrize(
    ("words", "back"),
    [
        ("remind me on 30 February at 9 to jump", "On what day, and at what time?"),
        ("remind me on 2020-01-01 at 9 to jump", "has already passed"),
        ("2月30日上午9点提醒我跳舞", "没有这样的日期或时间"),
        ("提醒我喝水", "要在哪天几点"),
        ("remind @Nobody tomorrow at 9am to jump", "I don't know anyone called Nobody here"),
    ],
)
def test_what_cannot_be_gets_a_question_back(world: World, words: str, back: str) -> None:
    _, said_back = world.ask("Alice", words)
    assert back in said_back
    assert timers(world) == []


def test_a_message_taken_back_takes_its_reminders_and_their_cards_along(world: World) -> None:
    question, _ = world.ask("Alice", "every day at 9:00 remind us of the gooseberry")
    (timer,) = timers(world)
    make_due(world, timer["id"])
    over(world, timer["id"])
    (card,) = shown(world, "gooseberry")
    world.platform.post("/recall", **{"message_id": question, "as": world.people["Alice"]})
    eventually(lambda: timers(world) == [], what="the reminder is gone")
    assert cards_of(world, timer["id"]) == []

    def withdrawn() -> bool:
        return card["message_id"] not in {m["message_id"] for m in shown(world, "gooseberry")}

    eventually(withdrawn, what="the card is withdrawn")


def test_who_leaves_is_reminded_no_more_and_a_chat_that_is_gone_is_silent(world: World) -> None:
    world.ask("Bob", "remind me tomorrow at 9am to knit")
    world.ask("Bob", "remind us tomorrow at 9am to purl")
    world.platform.post("/leave", chat_id=world.group, open_id=world.people["Bob"])
    eventually(lambda: timers(world)[0]["state"] == "stopped", what="Bob's own")
    assert timers(world)[1]["state"] == "active"
    world.platform.post("/leave", chat_id=world.group, open_id=world.bot_id)
    eventually(lambda: timers(world)[1]["state"] == "stopped", what="the group's")


def test_where_the_news_of_its_removal_is_lost_the_first_refusal_stops_all(world: World) -> None:
    world.ask("Alice", "every day at 9:00 remind us to knit")
    world.ask("Bob", "remind us tomorrow at 9am to purl")
    world.platform.post("/leave", chat_id=world.group, open_id=world.bot_id, silently=True)
    make_due(world, timers(world)[0]["id"])
    eventually(
        lambda: {one["state"] for one in timers(world)} == {"stopped"},
        what="all are stopped",
    )
    assert world.rows("select 1 from chats where chat_id = %s and gone_at is not null", world.group)


def test_in_p2p_it_stays_in_p2p(world: World) -> None:
    person, chats = world.people["Alice"], world.platform.state()["chats"]
    chat = next(c["chat_id"] for c in chats if c["mode"] == "p2p" and person in c["members"])
    question = world.say("Alice", "remind us in 5 minutes to breathe", chat=chat)
    assert "remind" in world.answer(question, chat=chat)
    (timer,) = [one for one in timers(world, chat) if "breathe" in one["content"]]
    make_due(world, timer["id"])
    over(world, timer["id"])
    (card,) = shown(world, "breathe", chat)
    assert "<at" not in markdown(card)
    _, listed = world.ask("Alice", "/reminders")
    assert "breathe" not in listed
