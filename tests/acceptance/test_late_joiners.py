"""A group that says new members see nothing earlier, through the real processes."""

from __future__ import annotations

import pytest

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, markdown
from tests.acceptance.test_chat_rules import selects, submitted
from tests.acceptance.test_membership import members, people, rejoin
from tests.support import profiles


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return profiles.OFFLINE


@pytest.fixture
def group(world: World) -> World:
    """A new group that Alice owns, its members known."""
    fresh = world.in_a_new_group()
    owned = [world.people["Alice"], *world.people.values()]
    fresh.group = world.platform.post("/chats", name="Late", members=owned)["chat_id"]
    eventually(lambda: members(fresh) == people(fresh), what="the members")
    return fresh


def ask(world: World, who: str, text: str, *, chat: str | None = None) -> str:
    question, card = world.ask(who, text, chat=chat)
    world.settled(question)
    return card


def set_history(world: World, value: str) -> str:
    saved = submitted(world, "Alice", world.ask_alone("Alice", "/settings"), history=value)
    assert selects(saved)["history"] == value
    return markdown(saved)


def test_what_was_said_before_the_newest_member_joined_is_not_told_where_the_group_says_so(
    group: World,
) -> None:
    question = "what do you know about the quince launch?"
    ask(group, "Alice", "remember that the quince launch is on 3 March")
    rejoin(group, "Bob")
    assert "3 March" in ask(group, "Alice", question), "usually the group's members decide"

    set_history(group, "hidden")
    rejoin(group, "Bob")

    assert "3 March" not in ask(group, "Alice", question)
    assert "3 March" not in ask(group, "Bob", question)
    assert "quince launch is on" not in ask(group, "Alice", "/digest")
    chats = {chat["name"]: chat["chat_id"] for chat in group.platform.state()["chats"]}
    assert "3 March" in ask(group, "Alice", question, chat=chats["Alice"])

    ask(group, "Alice", "remember that the medlar launch is on 4 April")
    assert "4 April" in ask(group, "Bob", "what do you know about the medlar launch?")

    set_history(group, "shown")
    assert "quince launch is on" in ask(group, "Alice", "/digest")


def test_nor_is_what_was_said_to_nobody_before_the_first_question(group: World) -> None:
    set_history(group, "hidden")
    group.say("Bob", "the quince party is on Friday")
    rejoin(group, "陈晨")
    group.say("Bob", "the medlar party is on Sunday")

    assert "Friday" not in ask(group, "Alice", "when is the quince party?")
    assert "Sunday" in ask(group, "Alice", "when is the medlar party?")


def test_nor_is_who_said_the_same_when_somebody_who_joined_later_forgets_their_own_words(
    group: World,
) -> None:
    ask(group, "Alice", "the cellar code is k7q2m9")
    set_history(group, "hidden")
    rejoin(group, "Bob")
    ask(group, "Bob", "the cellar code is k7q2m9")

    told = ask(group, "Bob", "/forget the cellar code")

    assert "k7q2m9" in told
    assert "Alice" not in told
