"""A chat's own rules: who may change them, and what they change."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from bot.listening.chat_rules import RULES
from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, markdown
from tests.acceptance.test_commands import card_of, click, decision_on
from tests.acceptance.test_membership import members, people, rejoin
from tests.acceptance.test_welcome import newcomer

# What is selected in the form of a chat that changed nothing.
UNCHANGED = {name: rule.default or "default" for name, rule in RULES.items() if rule.choices}
UNCHANGED["digest"] = "off"


@pytest.fixture
def group(world: World) -> World:
    """A new group that Alice owns, and to which she added the bot."""
    fresh = world.in_a_new_group()
    members = [world.people["Alice"], *world.people.values()]
    fresh.group = world.platform.post("/chats", name="Rules", members=members)["chat_id"]
    return fresh


@pytest.fixture
def unreadable(world: World) -> Iterator[None]:
    world.platform.post("/switches", **{"im:chat:readonly": False})
    yield
    world.platform.post("/switches", **{"im:chat:readonly": True})


def decided(world: World, message: str) -> dict[str, Any]:
    return eventually(lambda: decision_on(world, message), what="a decision")


def set_rule(world: World, who: str, command: str) -> str:
    question, card = world.ask(who, command)
    world.settled(question)
    return card


def selects(message: dict[str, Any]) -> dict[str, str]:
    """What is chosen in the form of a card."""
    card = message["card"] or json.loads(message["content"])
    (form,) = (one for one in card["body"]["elements"] if one["tag"] == "form")
    return {
        one["name"]: one["initial_option"]
        for one in form["elements"]
        if one["tag"] == "select_static"
    }


def submitted(world: World, who: str, message: dict[str, Any], **chosen: str) -> dict[str, Any]:
    """Presses the button of the form; returns the card that answers, once it is sent."""
    before = len(pressed(world))
    answer = click(world, who, message, index=0, form=chosen)
    assert answer["toast"]["type"] == "success"
    eventually(lambda: len(pressed(world)) == before + 1, what="the press is answered")
    (card,) = world.answers(pressed(world)[-1])
    return card


def pressed(world: World) -> list[str]:
    """The turns of presses that are answered, oldest first."""
    turns = world.rows(
        "select id from agent_turns where origin = 'button' and chat_id = %s and state = 'sent'"
        " order by created_at",
        world.group,
    )
    return [turn["id"] for turn in turns]


def test_the_settings_are_shown_with_a_form(group: World) -> None:
    question, card = group.ask("Bob", "/settings")
    assert (
        "(`/mode`)**: mentions, replies, and follow-ups right after I've answered (default)" in card
    )
    assert "**Reply language (`/language`)**: same as the question (default)" in card
    assert selects(card_of(group, question)) == UNCHANGED
    question, chinese = group.ask("陈晨", "/设置")
    assert (
        "**回答哪些消息（`/模式`）**：@我、回复我的消息，以及我刚回答完后的追问（默认）" in chinese
    )
    assert "保存设置" in json.dumps(card_of(group, question)["card"], ensure_ascii=False)
    question, _ = group.ask("Bob", "/mode")
    assert list(selects(card_of(group, question))) == ["mode"]


def test_in_p2p_the_settings_are_those_of_the_private_chat(world: World) -> None:
    _, chat = newcomer(world, "Paula")  # with no language yet
    world = copy.copy(world)
    world.group = chat

    question, card = world.ask("Paula", "/settings")
    assert "**My settings in our private chat**" in card
    assert "You can change these" in card
    assert not any(word in card for word in ("owner", "group", "`/mode`", "`/proactive"))
    assert set(selects(card_of(world, question))) == {"language", "digest"}
    assert "Only groups" in set_rule(world, "Paula", "/mode mention")
    assert world.rows("select 1 from chat_rules where chat_id = %s", world.group) == []
    assert "Saved." in set_rule(world, "Paula", "/language en")
    assert "Saved." in set_rule(world, "Paula", "/language default")
    chinese = world.ask("Paula", "/设置")[1]
    assert "**我在单聊里的设置**" in chinese
    assert "群" not in chinese


def test_only_who_manages_the_group_changes_its_rules(group: World) -> None:
    assert "so nothing was changed" in set_rule(group, "Bob", "/mode all")
    assert group.rows("select * from chat_rules where chat_id = %s", group.group) == []

    assert "Saved." in set_rule(group, "Alice", "/mode mention")
    (row,) = group.rows("select * from chat_rules where chat_id = %s", group.group)
    assert row["mode"] == "mention"
    assert "only mentions and replies to me (set here)" in set_rule(group, "Bob", "/settings")
    assert "one of these: mention, threads" in set_rule(group, "Alice", "/mode loud")


def test_a_rule_is_named_in_either_language(group: World) -> None:
    rules = "select mode, language, instructions from chat_rules where chat_id = %s"
    for command, name, value in (
        ("/模式 全部", "mode", "all"),
        ("/mode Threads.", "mode", "threads"),
        ("/模式 跟随", "mode", "follow"),
        ("/语言 英文", "language", "en"),
        ("/language 中文", "language", "zh"),
        ("/language automatic", "language", "auto"),
        ("/mode reset", "mode", None),
        ("/instructions be brief", "instructions", "be brief"),
        ("/instructions clear", "instructions", None),
    ):
        set_rule(group, "Alice", command)
        (row,) = group.rows(rules, group.group)
        assert (row[name] or None) == value, command
    assert "提及、话题、跟随、全部、默认" in set_rule(group, "Alice", "/模式 大声")


def test_a_submitted_form_changes_what_was_chosen_with_the_rights_of_who_submits(
    group: World,
) -> None:
    question, _ = group.ask("Bob", "/settings")
    form = card_of(group, question)
    wanted = {"mode": "all", "language": "en", "digest": "weekly mon 9:00"}

    refused = submitted(group, "Bob", form, **wanted)
    assert "Only the group owner" in markdown(refused)
    assert group.rows("select 1 from chat_rules where chat_id = %s", group.group) == []

    saved = submitted(group, "Alice", form, **wanted)
    assert markdown(saved).split("> ", 1)[1].startswith("Saved.")
    assert selects(saved) == {**UNCHANGED, "mode": "all", "language": "en", "digest": "as it is"}
    rules = "select mode, language from chat_rules where chat_id = %s"
    assert group.rows(rules, group.group) == [{"mode": "all", "language": "en"}]

    again = submitted(group, "Alice", saved)
    assert "These are the current settings" in markdown(again)
    back = submitted(group, "Alice", form, mode="default", language="default", digest="off")
    assert selects(back)["mode"] == "default"
    assert selects(back)["digest"] == "off"


def test_what_a_form_does_not_offer_is_not_chosen(group: World) -> None:
    question, _ = group.ask("Alice", "/设置")
    form = card_of(group, question)
    assert "没有改动，当前设置如下" in markdown(submitted(group, "Alice", form, mode="loud"))


def test_the_mode_says_who_is_answered(group: World) -> None:
    set_rule(group, "Alice", "/mode mention")
    assert "only mentions and replies to me" in set_rule(group, "Alice", "/resume")
    asked, _ = group.ask("Bob", "when do we launch?")
    group.settled(asked)
    silent = group.say("Bob", "and what about Friday?")
    assert decided(group, silent)["reason"] == "mode_mention"

    set_rule(group, "Alice", "/mode threads")
    asked, _ = group.ask("Bob", "when do we launch?")
    group.settled(asked)
    assert decided(group, group.say("Bob", "and on Monday?"))["reason"] == "mode_threads"
    inside = group.say("Bob", "and on Tuesday?", root_id=asked)
    assert decided(group, inside)["respond"]
    group.settled(inside)

    set_rule(group, "Alice", "/mode all")
    free = group.say("陈晨", "the press kit is finished on my side")
    found = decided(group, free)
    assert (found["respond"], found["reason"]) == (True, "mode_all")
    group.settled(free)
    other = group.say("Bob", "@Alice are you in today?")
    assert not decided(group, other)["respond"]


def test_in_the_bots_own_thread_listening_does_not_lapse(group: World) -> None:
    asked, _ = group.ask("Bob", "when do we launch?")
    group.settled(asked)
    with psycopg.connect(group.database_url, autocommit=True) as database:
        database.execute(
            "update chat_conversations set last_activity = 1, active = false where chat_id = %s",
            (group.group,),
        )
    outside = group.say("Bob", "and on Monday?")
    assert not decided(group, outside)["respond"]
    talk = group.say("Bob", "brb, getting a coffee", root_id=asked)
    assert not decided(group, talk)["respond"]
    inside = group.say("Bob", "and on Tuesday?", root_id=asked)
    found = decided(group, inside)
    assert (found["respond"], found["reason"]) == (True, "recent_followup")
    group.settled(inside)


def test_language_and_instructions_of_the_chat_reach_the_model(group: World) -> None:
    set_rule(group, "Alice", "/language en")
    set_rule(group, "Alice", "/instructions Always say Ahoy. Our year begins in May.")
    question, _ = group.ask("Bob", "我们什么时候发布？")
    group.settled(question)
    told = str(group.model.requests()[-1])
    assert "Answer in English" in told
    assert "Always say Ahoy. Our year begins in May." in told
    assert "Here is what I can do" in set_rule(group, "Bob", "帮助")
    assert "at most 500" in set_rule(group, "Alice", "/instructions " + "x" * 501)


@pytest.mark.usefixtures("unreadable")
def test_where_the_managers_cannot_be_read_nothing_is_changed(world: World) -> None:
    state = world.platform.state()
    kitchen = next(c for c in state["chats"] if c["chat_id"] == world.kitchen)
    names = {open_id: name for name, open_id in world.people.items()}
    owner = names[next(one for one in kitchen["members"] if one in names)]
    question, card = world.ask(owner, "/mode all", chat=world.kitchen)
    world.settled(question)
    assert "im:chat:readonly" in card
    assert world.rows("select * from chat_rules where chat_id = %s", world.kitchen) == []


@pytest.mark.parametrize("history", ["shown", "hidden"])
def test_a_thread_under_what_newcomers_do_not_see_is_begun_without_it(
    group: World, history: str
) -> None:
    eventually(lambda: members(group) == people(group), what="the members")
    question, _ = group.ask("Alice", "/settings")
    if history == "hidden":
        submitted(group, "Alice", card_of(group, question), history=history)
    root = group.say("Alice", "the quince launch is on 3 March")
    rejoin(group, "Bob")
    group.model.forget()

    group.settled(group.ask("Alice", "when is it?", root_id=root)[0])

    told = json.dumps(group.model.requests()[-1]["body"])
    assert ("3 March" in told) is (history == "shown")
