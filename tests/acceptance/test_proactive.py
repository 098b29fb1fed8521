"""Questions that nobody answers, in chats that want the bot to: through the real processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, is_from_bot, markdown
from tests.acceptance.test_commands import buttons, click, decision_on
from tests.acceptance.test_reminders import make_due, timers

UNASKED = "Nobody has answered this yet"


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return {
        "OPENAI_API_KEY": "",
        "PROACTIVE_HOURS": "0-24",
        "PROACTIVE_PER_DAY": "2",
        "FOLLOWUP_WINDOW_SECONDS": "0",
    }


@pytest.fixture
def group(world: World) -> World:
    """A new group that Alice owns, which wants proactive answers and knows two things."""
    fresh = world.in_a_new_group()
    members = [world.people["Alice"], *world.people.values()]
    fresh.group = world.platform.post("/chats", name="Proactive", members=members)["chat_id"]
    for said in (
        "remember that the quince launch is on 3 March",
        "remember that the medlar budget is 400 euros",
        "/proactive on",
    ):
        fresh.settled(fresh.ask("Alice", said)[0])
    return fresh


def waiting(world: World, question: str) -> list[dict[str, Any]]:
    return [one for one in timers(world) if one["turn_id"] == question]


def noted(world: World, who: str, text: str) -> tuple[str, str]:
    """Says a question to everybody; its message and timer."""
    question = world.say(who, text)
    (timer,) = eventually(lambda: waiting(world, question), what="the question waits")
    return question, timer["id"]


def come(world: World, id: str) -> None:
    """The time of a question comes and is over."""
    make_due(world, id)
    gone = "select 1 from agent_timers where id = %s"
    eventually(lambda: not world.rows(gone, id), what="its time is over")


def unasked(world: World) -> list[dict[str, Any]]:
    said = [m for m in world.platform.messages(world.group) if is_from_bot(m)]
    found = [m for m in said if m["content"] != "This message was recalled"]
    return [m for m in found if UNASKED in markdown(m) or "还没有人回答" in markdown(m)]


def test_it_is_answered_after_the_delay_marked_and_once(group: World) -> None:
    question, timer = noted(group, "Bob", "When is the quince launch?")
    (row,) = waiting(group, question)
    assert row["due_at"].timestamp() == pytest.approx(time.time() + 600, abs=15)
    assert unasked(group) == []
    come(group, timer)
    (card,) = unasked(group)
    assert "3 March" in markdown(card)
    assert buttons(card) == ["Turn this off"]
    (stored,) = group.settled(question)
    assert stored["content"] == markdown(card)
    assert UNASKED in stored["content"]
    assert decision_on(group, question)["reason"] == "proactive"
    _, why = group.ask("Bob", "/why", reply_to=question, quote=True)
    assert "nobody had answered" in why


def heard(world: World, who: str, text: str, **more: Any) -> str:
    """Says something to everybody and waits until the bot has heard it."""
    message = world.say(who, text, **more)
    eventually(lambda: decision_on(world, message), what="it is heard")
    return message


def taken_back(world: World, who: str, message: str) -> None:
    world.platform.post("/recall", **{"message_id": message, "as": world.people[who]})
    gone = "select 1 from recalled_messages where message_id = %s"
    eventually(lambda: world.rows(gone, message), what="it is taken back")


@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda world, q: heard(world, "陈晨", "the quince launch is on 4 March"),
        lambda world, q: heard(world, "陈晨", "ask in the office", reply_to=q, quote=True),
        lambda world, q: taken_back(world, "Bob", q),
        lambda world, q: world.settled(world.ask("Alice", "/proactive off")[0]),
        lambda world, q: world.settled(world.ask("Alice", "/quiet")[0]),
    ],
    ids=["answered", "quoted", "taken back", "off", "quiet"],
)
def test_nothing_is_said_where_it_is_not_wanted_any_more(
    group: World, meanwhile: Callable[[World, str], Any]
) -> None:
    question, timer = noted(group, "Bob", "When is the quince launch?")
    meanwhile(group, question)
    come(group, timer)
    assert unasked(group) == []


def test_what_the_chat_does_not_know_or_only_asked_is_not_answered(group: World) -> None:
    group.settled(group.ask("陈晨", "what is the price of the persimmon crates?")[0])
    question, timer = noted(group, "Bob", "What is the price of the persimmon crates?")
    come(group, timer)
    assert unasked(group) == []
    assert not decision_on(group, question)["respond"]
    assert group.rows("select 1 from agent_messages where turn_id = %s", question) == []


def test_what_is_said_elsewhere_is_not_known_here(group: World) -> None:
    elsewhere = group.in_a_new_group()
    elsewhere.settled(elsewhere.ask("Bob", "remember that the persimmon price is 9 euros")[0])
    _, timer = noted(group, "Bob", "What is the persimmon price?")
    come(group, timer)
    assert unasked(group) == []


def test_questions_to_somebody_and_of_other_chats_do_not_wait(group: World) -> None:
    said = [
        heard(group, "Bob", "@陈晨 when is the quince launch?"),
        heard(group, "Bob", "the quince launch is soon"),
        heard(group.in_a_new_group(), "Bob", "When is the quince launch?"),
    ]
    for one in said:
        assert group.rows("select 1 from agent_timers where turn_id = %s", one) == []


def test_only_so_many_a_day(group: World) -> None:
    for n, text in enumerate(
        (
            "When is the quince launch?",
            "What is the medlar budget?",
            "When will the quince launch be?",
        )
    ):
        _, timer = noted(group, "Bob", text)
        come(group, timer)
        assert len(unasked(group)) == min(n + 1, 2)


def test_any_member_stops_it(group: World) -> None:
    _, timer = noted(group, "Bob", "When is the quince launch?")
    come(group, timer)
    (card,) = unasked(group)
    _, later = noted(group, "Bob", "What is the medlar budget?")
    assert click(group, "陈晨", card, index=0)["toast"]["type"] == "success"
    off = "select 1 from chat_rules where chat_id = %s and not proactive"
    eventually(lambda: group.rows(off, group.group), what="it is off")
    said = lambda: [m for m in group.platform.messages(group.group) if is_from_bot(m)]  # noqa: E731
    eventually(
        lambda: any("no longer answer without being asked" in markdown(m) for m in said()),
        what="it says so",
    )
    assert group.rows("select 1 from agent_timers where id = %s", later) == []


def test_only_who_manages_the_group_switches_it_on(world: World) -> None:
    fresh = world.in_a_new_group()
    members = [world.people["Alice"], *world.people.values()]
    fresh.group = world.platform.post("/chats", name="Off", members=members)["chat_id"]
    assert "so nothing was changed" in markdown(fresh.ask_alone("Bob", "/proactive on"))
    assert "Saved." in fresh.ask("Alice", "/proactive on")[1]
    assert "主动回答无人回复的问题**：开" in markdown(fresh.ask_alone("陈晨", "/设置"))
    assert "Saved." in fresh.ask("Alice", "/proactive off")[1]
    assert "`/proactive on` or" in markdown(fresh.ask_alone("Alice", "/proactive perhaps"))


def test_killed_in_between_it_is_answered_once(group: World) -> None:
    path = "/open-apis/im/v1/messages"
    group.platform.post("/faults", path_prefix=path, method="POST", delay_s=1.5, times=1)
    question, timer = noted(group, "Bob", "When is the quince launch?")
    make_due(group, timer, timedelta(seconds=1))
    eventually(lambda: group.stored(question), what="the answer is stored")
    group.bot.workers[-1].kill()
    group.bot.start_worker()
    group.settled(question)
    assert len(unasked(group)) == 1
    come(group, timer)
    assert len(unasked(group)) == 1


@pytest.mark.parametrize("answered", [False, True], ids=["silence", "somebody spoke"])
def test_in_a_thread_it_is_answered_there_unless_anybody_said_anything(
    group: World, answered: bool
) -> None:
    first = group.say("Alice", "Here is the plan for spring.")
    group.say("Alice", "have a look", root_id=first)
    question = group.say("Bob", "When is the quince launch?", root_id=first)
    (timer,) = eventually(lambda: waiting(group, question), what="the question waits")
    heard(group, "陈晨", "the main chat goes on")
    if answered:
        heard(group, "陈晨", "hm", root_id=first)
    come(group, timer["id"])
    found = unasked(group)
    assert [one["root_id"] for one in found] == [first] * (not answered)
    assert all("3 March" in markdown(one) for one in found)


def test_in_a_group_of_topics_each_topic_counts_for_itself(world: World) -> None:
    group = world.in_a_new_group()
    members = [world.people["Alice"], *world.people.values()]
    made = world.platform.post("/chats", name="Topics", members=members, topics=True)
    group.group = made["chat_id"]
    for said in ("remember that the quince launch is on 3 March", "/proactive on"):
        group.settled(group.ask("Alice", said)[0])
    question, timer = noted(group, "Bob", "When is the quince launch?")
    taken, other = noted(group, "Bob", "When will the quince launch be?")
    heard(group, "陈晨", "ask in the office", root_id=taken)
    come(group, timer)
    come(group, other)
    (card,) = unasked(group)
    assert card["root_id"] == question


def test_in_chinese(group: World) -> None:
    group.settled(group.ask("陈晨", "记住测试数据库的端口是 5433")[0])
    _, timer = noted(group, "Bob", "测试数据库的端口是多少？")
    come(group, timer)
    (card,) = unasked(group)
    assert "还没有人回答" in markdown(card)
    assert "5433" in markdown(card)
    assert buttons(card) == ["关闭主动回答"]
