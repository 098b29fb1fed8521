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
from tests.acceptance.test_own_memory import after, private_chat
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
    with world.without_scopes("im:chat:readonly"):
        yield


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
    """Presses the button of the form; returns the card that takes its place."""

    def press() -> None:
        assert click(world, who, message, index=0, form=chosen)["toast"]["type"] == "success"

    card = after(world, world.group, press)
    assert card["visible_to"] == world.people[who]
    return card


def test_the_settings_are_shown_with_a_form(group: World) -> None:
    card = group.ask_alone("Alice", "/settings")
    assert selects(card) == UNCHANGED
    assert "Messages I answer" not in markdown(card), "each setting stands there once"
    assert "**Custom instructions**: none" in markdown(card)
    chinese = group.ask_alone("Alice", "/设置")
    assert "保存设置" in json.dumps(chinese["card"], ensure_ascii=False)
    assert list(selects(group.ask_alone("Alice", "/mode"))) == ["mode"]


def test_who_cannot_change_the_settings_reads_a_line_for_each(group: World) -> None:
    shown = group.ask_alone("Bob", "/settings")
    told = markdown(shown)
    assert "**Messages I answer**: mentions, replies, and follow-ups right after" in told
    assert "**Reply language**: same as the question" in told
    assert "**Scheduled digest**: off" in told
    assert "Only the group owner" in told
    assert len(told.splitlines()) <= len(RULES) + 6
    assert "form" not in [one["tag"] for one in shown["card"]["body"]["elements"]]
    chinese = markdown(group.ask_alone("陈晨", "/设置"))
    assert "**回答哪些消息**：@我的消息、回复我的消息，以及我刚回答后的追问" in chinese
    assert "**新成员能否查看入群前的消息**：可以，导入的历史消息除外" in chinese


def test_in_a_thread_the_settings_of_the_group_come_in_p2p(group: World) -> None:
    question, _ = group.ask("Alice", "when do we launch?")
    group.settled(question)
    alone = private_chat(group, "Alice")
    asked = lambda: group.say("Alice", f"@{group.bot_name} /mode", root_id=question)  # noqa: E731
    card = after(group, alone, asked)
    assert "for the group you asked in" in markdown(card)
    saved = after(group, alone, lambda: click(group, "Alice", card, index=0, form={"mode": "all"}))
    assert selects(saved) == {"mode": "all"}
    rows = group.rows("select chat_id, mode from chat_rules")
    assert {"chat_id": group.group, "mode": "all"} in rows
    assert all(row["chat_id"] != alone for row in rows)


def test_in_p2p_the_settings_are_those_of_the_private_chat(world: World) -> None:
    _, chat = newcomer(world, "Paula")  # with no language yet
    world = copy.copy(world)
    world.group = chat

    question, card = world.ask("Paula", "/settings")
    assert "**Settings for our private chat**" in card
    assert "You can change these" in card
    assert not any(word in card for word in ("owner", "group", "`/mode`", "`/proactive"))
    assert set(selects(card_of(world, question))) == {"language", "digest"}
    assert "Only groups" in set_rule(world, "Paula", "/mode mention")
    assert world.rows("select 1 from chat_rules where chat_id = %s", world.group) == []
    assert "Saved." in set_rule(world, "Paula", "/language en")
    assert "Saved." in set_rule(world, "Paula", "/language default")
    chinese = world.ask("Paula", "/设置")[1]
    assert "**单聊设置**" in chinese
    assert "群" not in chinese


def test_only_who_manages_the_group_changes_its_rules(group: World) -> None:
    assert "so nothing was changed" in markdown(group.ask_alone("Bob", "/mode all"))
    assert group.rows("select * from chat_rules where chat_id = %s", group.group) == []

    assert "Saved." in set_rule(group, "Alice", "/mode mention")
    (row,) = group.rows("select * from chat_rules where chat_id = %s", group.group)
    assert row["mode"] == "mention"
    assert "only mentions and replies to me" in markdown(group.ask_alone("Bob", "/settings"))
    loud = group.ask_alone("Alice", "/mode loud")
    assert "one of these: mention, threads" in markdown(loud)


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
    assert "提及、话题、跟随、全部、默认" in markdown(group.ask_alone("Alice", "/模式 大声"))


def test_a_submitted_form_changes_what_was_chosen_with_the_rights_of_who_submits(
    group: World,
) -> None:
    form = group.ask_alone("Alice", "/settings")
    wanted = {"mode": "all", "language": "en", "digest": "weekly mon 9:00"}
    saved = submitted(group, "Alice", form, **wanted)
    assert markdown(saved).startswith("Saved.")
    assert selects(saved) == {**UNCHANGED, "mode": "all", "language": "en", "digest": "as it is"}
    rules = "select mode, language from chat_rules where chat_id = %s"
    assert group.rows(rules, group.group) == [{"mode": "all", "language": "en"}]

    again = submitted(group, "Alice", saved)
    assert "These are the current settings" in markdown(again)
    back = submitted(group, "Alice", again, mode="default", language="default", digest="off")
    assert selects(back)["mode"] == "default"
    assert selects(back)["digest"] == "off"


def test_a_form_of_somebody_who_is_a_manager_no_more_changes_nothing(group: World) -> None:
    form = group.ask_alone("Alice", "/settings")
    with psycopg.connect(group.database_url, autocommit=True) as database:
        database.execute("delete from chat_managers where chat_id = %s", (group.group,))
    with group.without_scopes("im:chat:readonly"):
        assert "im:chat:readonly" in markdown(submitted(group, "Alice", form, mode="all"))
    assert group.rows("select 1 from chat_rules where chat_id = %s", group.group) == []


def test_what_a_form_does_not_offer_is_not_chosen(group: World) -> None:
    form = group.ask_alone("Alice", "/设置")
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
    long = group.ask_alone("Alice", "/instructions " + "x" * 501)
    assert "at most 500" in markdown(long)


@pytest.mark.usefixtures("unreadable")
def test_where_the_managers_cannot_be_read_nothing_is_changed(world: World) -> None:
    state = world.platform.state()
    kitchen = next(c for c in state["chats"] if c["chat_id"] == world.kitchen)
    names = {open_id: name for name, open_id in world.people.items()}
    owner = names[next(one for one in kitchen["members"] if one in names)]
    card = world.ask_alone(owner, "/mode all", chat=world.kitchen)
    assert "im:chat:readonly" in markdown(card)
    assert world.rows("select * from chat_rules where chat_id = %s", world.kitchen) == []


@pytest.mark.parametrize("history", ["shown", "hidden"])
def test_a_thread_under_what_newcomers_do_not_see_is_begun_without_it(
    group: World, history: str
) -> None:
    eventually(lambda: members(group) == people(group), what="the members")
    if history == "hidden":
        submitted(group, "Alice", group.ask_alone("Alice", "/settings"), history=history)
    root = group.say("Alice", "the quince launch is on 3 March")
    rejoin(group, "Bob")
    group.model.forget()

    group.settled(group.ask("Alice", "when is it?", root_id=root)[0])

    told = json.dumps(group.model.requests()[-1]["body"])
    assert ("3 March" in told) is (history == "shown")
