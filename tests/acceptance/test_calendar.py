"""Calendars and tasks: asked about and written as who asks, in a group and in private."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from lab.doubles.processes import eventually
from memory.models import Origin
from memory.sealing import new_sealing_key
from tests.acceptance.conftest import World, is_from_bot, markdown
from tests.acceptance.test_commands import click
from tests.acceptance.test_connect import LINK, decide
from tests.acceptance.test_own_memory import after, buttons, press, private_chat
from tests.acceptance.test_private_answers import shown_to
from tests.acceptance.test_seed_scenarios import restart
from tests.acceptance.test_welcome import newcomer

SECRET = "Quillfeather surgery"


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return {
        "OPENAI_API_KEY": "",
        "USER_TOKEN_KEY": new_sealing_key(),
        "FEISHU_CALLS_PER_SECOND": "200",
    }


def today() -> date:
    """In the zone of the bot."""
    return datetime.now(ZoneInfo("Asia/Shanghai")).date()


def working_day() -> date:
    """A weekday of next week."""
    return today() + timedelta(days=7 - today().weekday() + 2)


def agenda(world: World, name: str) -> dict[str, Any]:
    items = world.platform.get("/agendas")["items"]
    return next(one for one in items if one["name"] == name)


def written(world: World, name: str, kind: str = "events") -> list[str]:
    return [one["summary"] for one in agenda(world, name)[kind] if not one["deleted"]]


def allowed(
    world: World, who: str, question: str, purpose: str, chat: str = ""
) -> tuple[str, dict[str, Any]]:
    """Asks for something that needs a scope, approves the link that they alone see, and gets the
    answer without asking again: its turn and its card."""
    known = {one["message_id"] for one in shown_to(world, who)}

    def fresh() -> list[dict[str, Any]]:
        found = world.platform.messages(chat) if chat else shown_to(world, who)
        new = [one for one in found if one["message_id"] not in known]
        return [one for one in new if is_from_bot(one) and LINK.search(markdown(one))]

    place = {"chat": chat} if chat else {}
    asked, refused = world.ask(who, question, **place)
    assert ("continue with your request" in refused) or ("继续处理你的请求" in refused)
    (card,) = eventually(fresh, what="the link")
    assert purpose in markdown(card)
    assert "documents" not in markdown(card), "it asks for nothing else"
    [link] = LINK.findall(markdown(card))
    decide(world, who, link)
    rows = (
        "select scopes from user_tokens where open_id = %s and granted_at is not null and ask = ''"
    )
    eventually(lambda: world.rows(rows, world.people[who]), what="connected", within_s=60)
    turn = Origin("again", asked).turn_id
    world.settled(turn)
    (answer,) = world.answers(turn, **place)
    return turn, answer


def test_in_a_group_people_are_free_or_busy_and_who_asks_books_with_a_press(world: World) -> None:
    day = working_day()
    busy = {"as": world.people["Bob"], "summary": SECRET, "location": "Room 9"}
    world.platform.post("/agendas/events", **busy, start=f"{day}T09:00:00", end=f"{day}T10:30:00")
    asked = f"when is Bob free on {day}?"
    question, card = allowed(world, "Alice", asked, "see your calendar")

    told = markdown(card)
    assert "09:00-10:30" in told
    assert SECRET not in told
    assert "Room 9" not in told
    assert SECRET not in json.dumps(world.settled(question), default=str)

    wish = f"book an hour with Bob on {day}, call it launch"
    _, card = allowed(world, "Alice", wish, "book the meetings that you confirm")
    offered = markdown(card)
    assert "at 10:30–11:30 (Asia/Shanghai)" in offered
    assert "with Bob" in offered
    yes = buttons(card).index("Confirm")
    refused = click(world, "Bob", card, index=yes)
    assert "only the person who asked" in json.dumps(refused, ensure_ascii=False).lower()
    assert written(world, "Alice") == [], "nothing is written before the asker presses"

    booked = press(world, "Alice", world.group, card, "Confirm")
    assert "Booked: launch" in markdown(booked)
    assert written(world, "Alice") == ["launch"]
    assert sorted(written(world, "Bob")) == [SECRET, "launch"]
    click(world, "Alice", card, index=yes)
    undone = press(world, "Alice", world.group, booked, "Undo (10 minutes)")
    assert "Undone: launch" in markdown(undone)
    assert written(world, "Alice") == []
    assert written(world, "Bob") == [SECRET]


def test_in_private_one_s_own_tasks_are_told_and_a_task_is_made(world: World) -> None:
    chat, day = private_chat(world, "陈晨"), working_day()
    own = {"as": world.people["陈晨"], "summary": SECRET, "due": f"{today()}"}
    world.platform.post("/agendas/tasks", **own)
    asked = "本周有什么任务到期？"
    _, card = allowed(world, "陈晨", asked, "查看你的任务", chat)
    assert SECRET in markdown(card)
    _, in_group = world.ask("陈晨", asked)
    assert SECRET not in in_group
    assert "1 个任务" in in_group

    wish = f"给 Bob 建个任务，{day.month}月{day.day}日前：交幻灯片"
    _, card = allowed(world, "陈晨", wish, "创建经你确认的任务")
    offered = markdown(card)
    assert "交幻灯片" in offered
    assert "负责人：Bob" in offered
    made = press(world, "陈晨", world.group, card, "确认")
    assert "已创建任务：交幻灯片" in markdown(made)
    assert written(world, "Bob", "tasks") == ["交幻灯片"]
    gone = after(world, world.group, lambda: click(world, "陈晨", made, index=0))
    assert "已删除：交幻灯片" in markdown(gone)
    assert written(world, "Bob", "tasks") == []


def test_every_question_that_waits_for_a_permission_is_answered_once(world: World) -> None:
    days = (working_day(), working_day() + timedelta(days=1))
    known = len(shown_to(world, "Bob"))
    elsewhere = world.in_a_new_group()
    places = (world, elsewhere)
    asked = [f"when is Alice free on {day}?" for day in days]
    questions = [one.ask("Bob", text)[0] for one, text in zip(places, asked, strict=True)]
    gone = world.ask("Bob", f"when is 陈晨 free on {days[0]}?")[0]
    world.platform.post("/recall", **{"message_id": gone, "as": world.people["Bob"]})
    (card,) = eventually(lambda: shown_to(world, "Bob")[known:], what="a link where Bob asked")
    (other,) = eventually(lambda: shown_to(elsewhere, "Bob"), what="and where Bob asked next")
    [link] = LINK.findall(markdown(card))
    assert LINK.findall(markdown(other)) == [link]
    decide(world, "Bob", link)

    turns = [Origin("again", question).turn_id for question in questions]
    for place, turn, day in zip(places, turns, days, strict=True):
        place.settled(turn)
        (answer,) = place.answers(turn)
        assert f"{day.day}" in markdown(answer)
        assert "permission" not in markdown(answer)
    cues = world.rows("select cue from agent_decisions where message_id = any (%s)", turns)
    assert [one["cue"] for one in cues] == ["permission"] * 2, "nobody pressed a button"
    eventually(
        lambda: world.rows("select from user_tokens where open_id = %s and ask = ''",
                           world.people["Bob"]),
        what="nothing waits any more",
    )  # fmt: skip
    assert not world.rows("select from agent_turns where id = %s", Origin("again", gone).turn_id), (
        "what was retracted is not asked again"
    )
    (told,) = (one for one in shown_to(world, "Bob") if "connected" in markdown(one))
    assert "working on your earlier request" in markdown(told)


def asked_for_tasks(world: World, name: str) -> tuple[str, str, str]:
    """A newcomer asks alone for what needs a permission: the chat, the question and the link."""
    _, chat = newcomer(world, name)
    question, _ = world.ask(name, "what tasks are due this week?", chat=chat)

    def links() -> list[str]:
        said = filter(is_from_bot, world.platform.messages(chat))
        return [link for one in said for link in LINK.findall(markdown(one))]

    [link] = eventually(links, what="the link")
    return chat, question, link


def test_a_worker_that_is_killed_meanwhile_answers_what_waited_once(world: World) -> None:
    chat, question, link = asked_for_tasks(world, "Nils")
    decide(world, "Nils", link)
    rows = "select from user_tokens where open_id = %s and granted_at is not null"
    eventually(lambda: world.rows(rows, world.people["Nils"]), what="connected", within_s=60)
    world.bot.workers[-1].kill()
    restart(world)
    turn = Origin("again", question).turn_id
    world.settled(turn)
    over = "select from user_tokens where open_id = %s and ask = ''"
    eventually(lambda: world.rows(over, world.people["Nils"]), what="nothing waits", within_s=60)
    assert len(world.answers(turn, chat=chat)) == 1


@pytest.mark.parametrize(("who", "approves"), [("Nora", False), ("Bob", True)])
def test_a_question_is_asked_again_only_where_the_asker_approves(
    world: World, who: str, approves: bool
) -> None:
    asker = f"Nora, whom {who} answers for"
    _, question, link = asked_for_tasks(world, asker)
    world.people["Nora"] = world.people[asker]
    decide(world, who, link, approve=approves)
    rows = "select from user_tokens where open_id = %s"
    eventually(lambda: not world.rows(rows, world.people[asker]), what="it was told")
    again = Origin("again", question).turn_id
    assert not world.rows("select from agent_turns where id = %s", again)


def test_in_private_a_colleague_of_a_shared_group_is_known(world: World) -> None:
    person, chat = newcomer(world, "Nadia")
    group, day = world.in_a_new_group(told=True).group, working_day()
    member = "select from chat_members where chat_id = %s and open_id = %s and left_at is null"
    eventually(lambda: world.rows(member, group, person), what="it is known who is in the group")
    _, stranger = world.ask("Nadia", f"when is Zebedee free on {day}?", chat=chat)
    assert "Zebedee" in stranger
    assert "permission" not in stranger, "who is meant is looked up first"
    wish = f"book an hour with Bob on {day}, call it lunch"
    _, card = allowed(world, "Nadia", wish, "book the meetings", chat)
    assert "with Bob" in markdown(card)


def test_a_question_that_is_edited_while_it_waits_is_answered_as_it_stands(world: World) -> None:
    newcomer(world, "Ivo")
    here = world.in_a_new_group()
    first, second = working_day(), working_day() + timedelta(days=1)
    question, _ = here.ask("Ivo", f"when is Alice free on {first}?")
    (card,) = eventually(lambda: shown_to(here, "Ivo"), what="the link")
    corrected = f"@{world.bot_name} when is Alice free on {second}?"
    here.platform.post(
        "/edit", **{"message_id": question, "as": world.people["Ivo"], "text": corrected}
    )
    here.say("Bob", "I'm curious, too")
    decide(here, "Ivo", LINK.findall(markdown(card))[0])
    turn = Origin("again", question).turn_id
    here.settled(turn)
    (answer,) = here.answers(turn)
    shown = markdown(answer).split(">", 1)[1]  # without whom it is for
    assert f" {second.day} {second:%b}" in shown
    assert f" {first.day} {first:%b}" not in shown
