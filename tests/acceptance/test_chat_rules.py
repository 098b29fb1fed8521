"""A chat's own rules: who may change them, and what they change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.acceptance.conftest import World
from tests.acceptance.test_commands import buttons, card_of, click, decision_on
from tests.support.processes import eventually


@pytest.fixture
def group(world: World) -> World:
    """A new group that Alice owns, and to which she added the bot."""
    fresh = world.in_a_new_group()
    members = [world.people["Alice"], *world.people.values()]
    fresh.group = world.platform.post("/chats", name="Rules", members=members)["chat_id"]
    return fresh


@pytest.fixture
def unreadable(world: World) -> Iterator[None]:
    world.platform.post("/switches", chat_info=False)
    yield
    world.platform.post("/switches", chat_info=True)


def decided(world: World, message: str) -> dict[str, Any]:
    return eventually(lambda: decision_on(world, message), what="a decision")


def set_rule(world: World, who: str, command: str) -> str:
    question, card = world.ask(who, command)
    world.settled(question)
    return card


def test_the_settings_are_shown_with_a_button_for_each_choice(group: World) -> None:
    question, card = group.ask("Bob", "/settings")
    assert "`follow` (default)" in card
    assert "`auto` (default)" in card
    assert buttons(card_of(group, question)) == [
        *("/mode mention", "/mode threads", "/mode follow", "/mode all"),
        *("/language zh", "/language en", "/language auto"),
    ]
    _, chinese = group.ask("陈晨", "/设置")
    assert "这个群的设置" in chinese


def test_only_who_manages_the_group_changes_its_rules(group: World) -> None:
    assert "Nothing was changed" in set_rule(group, "Bob", "/mode all")
    assert group.rows("select * from chat_rules where chat_id = %s", group.group) == []

    assert "Saved." in set_rule(group, "Alice", "/mode mention")
    (row,) = group.rows("select * from chat_rules where chat_id = %s", group.group)
    assert row["mode"] == "mention"
    assert "`mention` (set here)" in set_rule(group, "Bob", "/settings")
    assert "one of mention, threads" in set_rule(group, "Alice", "/mode loud")


def test_a_button_changes_a_rule_with_the_rights_of_who_presses_it(group: World) -> None:
    question, _ = group.ask("Bob", "/settings")
    click(group, "Bob", card_of(group, question), index=3)
    eventually(lambda: len(refusals(group)) == 1, what="a refusal")
    question, _ = group.ask("Bob", "/settings")
    click(group, "Alice", card_of(group, question), index=3)
    rules = "select mode from chat_rules where chat_id = %s"
    eventually(lambda: group.rows(rules, group.group) == [{"mode": "all"}], what="a rule")


def test_the_buttons_of_the_settings_can_be_pressed_again(group: World) -> None:
    question, _ = group.ask("Alice", "/settings")
    card = card_of(group, question)
    rules = "select mode from chat_rules where chat_id = %s"
    for index, mode in ((3, "all"), (0, "mention"), (3, "all"), (0, "mention")):
        pressed = click(group, "Alice", card, index=index)
        assert pressed["toast"]["type"] == "success"
        wanted = [{"mode": mode}]
        eventually(lambda: group.rows(rules, group.group) == wanted, what=mode)  # noqa: B023
    said = "select 1 from agent_turns where id like 'click:%%' and chat_id = %s and state = 'sent'"
    eventually(lambda: len(group.rows(said, group.group)) == 4, what="each press is answered")


def refusals(world: World) -> list[dict[str, Any]]:
    return world.rows(
        "select id from agent_messages where conversation_id like %s and content like %s",
        f"feishu:{world.group}:%",
        "%Nothing was changed%",
    )


def test_the_mode_says_who_is_answered(group: World) -> None:
    set_rule(group, "Alice", "/mode mention")
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


def test_where_the_managers_cannot_be_read_nothing_is_changed(
    world: World, unreadable: None
) -> None:
    state = world.platform.state()
    kitchen = next(c for c in state["chats"] if c["chat_id"] == world.kitchen)
    names = {open_id: name for name, open_id in world.people.items()}
    owner = names[next(one for one in kitchen["members"] if one in names)]
    question, card = world.ask(owner, "/mode all", chat=world.kitchen)
    world.settled(question)
    assert "im:chat:readonly" in card
    assert world.rows("select * from chat_rules where chat_id = %s", world.kitchen) == []
