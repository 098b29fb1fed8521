"""Digests through the real processes: now, on a schedule, and gone with what they are made of."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from bot.text.times import day_text
from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, is_from_bot, markdown
from tests.acceptance.test_proactive import heard
from tests.acceptance.test_reminders import BERLIN, make_due, over, timers
from tests.support import profiles


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return profiles.OFFLINE


@pytest.fixture
def group(world: World) -> World:
    """A new group that Alice owns."""
    fresh = world.in_a_new_group()
    members = [world.people["Alice"], *world.people.values()]
    fresh.group = world.platform.post("/chats", name="Digest", members=members)["chat_id"]
    return fresh


def digests(world: World) -> list[dict[str, Any]]:
    said = world.platform.messages(world.group)
    found = [m for m in said if m["content"] != "This message was recalled"]
    return [m for m in found if is_from_bot(m) and "📋" in markdown(m)]


def test_now_of_today_and_of_a_thread_and_of_no_other_chat(group: World) -> None:
    elsewhere = group.in_a_new_group()
    elsewhere.settled(elsewhere.ask("Bob", "remember that the persimmon costs 9 euros")[0])
    first, _ = group.ask("Alice", "remember that the quince launch is on 3 March")
    group.settled(first)
    second, _ = group.ask("Bob", "remember that the medlar budget is 400 euros")
    group.settled(second)

    _, today = group.ask("陈晨", "/digest")
    assert "quince launch" in today
    assert "medlar budget" in today
    assert "persimmon" not in today
    now = datetime.now(BERLIN)
    assert f"({day_text(now, 'en', now=now)}, 00:00–" in today
    _, again = group.ask("陈晨", "/digest")
    assert "quince launch" in again
    assert again.count("quince launch") == 1, "the bot's own lines repeat it"
    assert "/digest" not in again
    _, of_thread = group.ask("Alice", "/digest", root_id=first)
    assert "Digest of this thread" in of_thread
    assert "quince launch" in of_thread
    assert "medlar" not in of_thread


def test_the_lines_are_those_of_people_without_the_day_that_the_heading_names(
    group: World,
) -> None:
    newcomer = group.platform.post("/people", name="Nora")["open_id"]
    group.platform.post("/join", chat_id=group.group, open_id=newcomer)
    said = [str(one["content"]) for one in group.platform.messages(group.group)]
    assert any("Nora" in one for one in said), "the chat shows who joined"
    group.settled(group.ask("Bob", "remember that the medlar budget is 400 euros")[0])
    _, card = group.ask("Alice", "/digest")

    assert "- Bob: remember that the medlar budget is 400 euros" in card
    assert "Nora" not in card
    assert "without a language model" in card


def test_where_nothing_was_said_it_says_so(group: World) -> None:
    _, card = group.ask("陈晨", "/摘要 今天")
    assert "没有摘要" in card
    unclear = group.ask_alone("Alice", "/digest sometimes")
    assert "/digest weekly mon 9:00" in markdown(unclear)


def test_only_who_manages_the_group_schedules_it(group: World) -> None:
    refused = group.ask_alone("Bob", "/digest daily 18:00")
    assert "so nothing was changed" in markdown(refused)
    assert timers(group) == []
    _, card = group.ask("Alice", "/digest daily 18:00")
    assert "every day at 18:00" in card
    _, again = group.ask("Alice", "/摘要 每周一 9:00")
    assert "每周一 09:00" in again
    daily, weekly = timers(group)
    assert (daily["state"], weekly["state"]) == ("cancelled", "active")
    due = weekly["due_at"].astimezone(BERLIN)
    assert (due.weekday(), due.hour, weekly["repeats"]) == (0, 9, "weekly")
    _, listed = group.ask("Bob", "/reminders")
    assert "9:00" not in listed
    _, off = group.ask("Alice", "/digest off")
    assert "定时摘要已关闭" in off
    assert timers(group)[1]["state"] == "cancelled"


def test_on_schedule_it_comes_once_over_a_kill_and_not_on_empty_days(group: World) -> None:
    group.settled(group.ask("Alice", "/digest daily 18:00")[0])
    (timer,) = timers(group)
    make_due(group, timer["id"])
    assert over(group, timer["id"])["state"] == "active"
    assert digests(group) == []

    said, _ = group.ask("Bob", "remember that the medlar budget is 400 euros")
    group.settled(said)
    group.rows("update agent_timers set fired = 0 where id = %s returning id", timer["id"])
    path = "/open-apis/im/v1/messages"
    group.platform.post("/faults", path_prefix=path, method="POST", delay_s=1.5, times=1)
    make_due(group, timer["id"], timedelta(seconds=1))
    card = (
        "select 1 from agent_messages m join agent_turns t on t.id = m.turn_id"
        " where t.parent_id = %s and m.role = 'assistant'"
    )
    eventually(lambda: group.rows(card, timer["id"]), what="the digest is stored")
    group.bot.workers[-1].kill()
    group.bot.start_worker()
    following = over(group, timer["id"])["due_at"].astimezone(BERLIN)
    assert (following.hour, following.minute) == (18, 0)
    (shown,) = digests(group)
    assert "medlar budget" in markdown(shown)
    (stored,) = group.rows(
        "select content, status from agent_messages where message_id = %s", shown["message_id"]
    )
    assert stored == {"content": markdown(shown), "status": "sent"}


def test_talk_that_the_bot_did_not_hear_is_told_too(group: World) -> None:
    members = [group.people["Alice"], *group.people.values()]
    made = group.platform.post("/chats", name="Later", members=members, with_bot=False)
    group.group = made["chat_id"]
    first = group.say("Alice", "The quince launch moves to 12 March.")
    group.say("Bob", "The medlar budget is 400 euros then.", root_id=first)
    gone = group.say("Bob", "The persimmon price is a secret.")
    group.platform.post("/recall", **{"message_id": gone, "as": group.people["Bob"]})
    group.platform.post("/join", chat_id=group.group, open_id=group.bot_id)
    _, told = group.ask("陈晨", "/digest")
    assert "quince launch moves" in told
    assert "medlar budget" in told
    assert "persimmon" not in told
    assert "3 messages" in told or "2 messages" in told
    assert "⚠️" not in told
    _, of_thread = group.ask("Alice", "/digest", root_id=first)
    assert "medlar budget" in of_thread


def test_what_its_author_had_forgotten_is_not_read_again(group: World) -> None:
    heard(group, "Bob", "The medlar budget is 400 euros then.")
    heard(group, "Alice", "The quince launch moves to 12 March.")
    group.rows("select forget_person(%s, null)", group.people["Bob"])
    _, told = group.ask("Alice", "/digest")
    assert "quince" in told
    assert "medlar" not in told


def test_where_it_may_not_read_the_chat_it_says_so(group: World) -> None:
    group.settled(group.ask("Bob", "remember that the medlar budget is 400 euros")[0])
    group.say("Alice", "The quince launch moves to 12 March.")
    path = "/open-apis/im/v1/messages"
    group.platform.post("/faults", path_prefix=path, method="GET", code=230027, times=3)
    _, told = group.ask("陈晨", "/digest")
    assert "medlar budget" in told
    assert "im:message.group_msg" in told


def test_it_goes_with_a_message_that_is_taken_back(group: World) -> None:
    group.settled(group.ask("Alice", "remember that the quince launch is on 3 March")[0])
    said, _ = group.ask("Bob", "remember that the medlar budget is 400 euros")
    group.settled(said)
    asked, _ = group.ask("Alice", "/digest")
    group.settled(asked)
    assert len(digests(group)) == 1
    group.platform.post("/recall", **{"message_id": said, "as": group.people["Bob"]})
    eventually(lambda: digests(group) == [], what="the digest is withdrawn")
    left = group.rows(
        "select 1 from agent_messages where chat_id = %s and content like %s",
        group.group,
        "%medlar%",
    )
    assert left == []
