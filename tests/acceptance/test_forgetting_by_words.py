"""“/forget the gym code” finds what was kept and said, anywhere in the chat, and deletes it."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from lab.doubles.processes import eventually
from memory.receipts import parse_receipt
from sandbox.cards.forms import tagged
from tests.acceptance.conftest import World, is_from_bot, markdown
from tests.acceptance.test_commands import click
from tests.acceptance.test_own_memory import after, buttons
from tests.acceptance.test_taking_back import take_back, where
from tests.acceptance.test_welcome import newcomer

OWN_PROCESSES = True


@pytest.fixture
def word() -> str:
    return f"q{uuid.uuid4().hex[:12]}"


def asked(world: World, who: str, text: str) -> dict[str, Any]:
    question, _ = world.ask(who, text)
    world.settled(question)
    return world.answers(question)[0]


def answers_with(world: World, word: str) -> list[dict[str, Any]]:
    """The cards of the bot that show the word."""
    mine = [m for m in world.platform.messages(world.group) if is_from_bot(m)]
    return [m for m in mine if not m["deleted"] and word in str(m)]


def press(world: World, who: str, card: dict[str, Any], label: str, **values: bool) -> str:
    """Submits the form of the card; returns what the bot says then."""
    index = buttons(card).index(label)

    def submit() -> None:
        shown = click(world, who, card, index=index, form=values)
        assert shown["code"] == 0, shown

    return markdown(after(world, world.group, submit))


def test_what_was_kept_and_said_is_shown_and_deleted_with_one_press(
    world: World, word: str
) -> None:
    call = {
        "name": "update_working_memory",
        "arguments": {"scope": "thread", "patch": {"gym_code": word}},
    }
    rules = [{"reply": {"tool_calls": [call]}}, {"reply": {"text": f"Kept: {word}"}}]
    world.model.control("script", {"rules": rules})
    world.model.control("mode", {"mode": "rules"})
    world.settled(world.ask("Alice", f"remember the gym code is {word}")[0])
    world.model.control("mode", {"mode": "echo"})
    said = world.say("Alice", f"@Bob by the way, the gym code {word} is on my desk")
    heard = "select 1 from chat_transcript where message_id = %s"
    eventually(lambda: world.rows(heard, said), what="the talk is heard")

    shown = len(answers_with(world, word))

    card = asked(world, "Alice", "/forget the gym code")
    assert markdown(card).count(word) == 3
    assert f"@{world.bot_name}" not in markdown(card).replace("&#64;", "@"), "its own words"

    told = press(world, "Alice", card, "Delete selected")

    assert f"Deleted: 1 fact, 2 messages, {shown} answer" in told
    signed = world.rows("select line from agent_receipts order by number desc limit 1")[0]["line"]
    assert parse_receipt(signed).label in told
    eventually(lambda: not where(world, word), what="it is gone everywhere")

    eventually(lambda: not answers_with(world, word), what="no card shows it")


def test_what_is_unchecked_stays(world: World, word: str) -> None:
    kept, dropped = (
        world.ask("Alice", f"the locker code is {word} {n}")[0] for n in ("blue", "red")
    )
    for one in (kept, dropped):
        world.settled(one)
    card = asked(world, "Alice", f"/forget {word}")
    checks = [one for one in tagged(card["card"]) if one["tag"] == "checker"]
    assert [one["checked"] for one in checks] == [True, True]
    stays = next(n for n in (1, 2) if "blue" in markdown(card).split(f"**{n}.**")[1].split("**")[0])

    told = press(world, "Alice", card, "Delete selected", **{f"item_{stays}": False})

    assert "Deleted: 1 message" in told
    query = "select 1 from agent_messages where turn_id = %s and role = 'user'"
    assert world.rows(query, kept)
    assert not world.rows(query, dropped)


@pytest.mark.parametrize("place", ["group", "p2p"])
def test_what_was_deleted_is_told_though_the_pressed_card_is_gone_already(
    world: World, word: str, place: str
) -> None:
    chat = world.group if place == "group" else newcomer(world, f"Nina {word}")[1]
    who = "Alice" if place == "group" else f"Nina {word}"
    world.settled(world.ask(who, f"the gym code is {word}", chat=chat)[0])
    question, _ = world.ask(who, "/forget the gym code", chat=chat)
    world.settled(question)
    card = world.answers(question, chat=chat)[0]
    reply = f"/open-apis/im/v1/messages/{card['message_id']}/reply"
    world.platform.post("/faults", path_prefix=reply, method="POST", code=230011)
    index = buttons(card).index("Delete selected")

    told = after(world, chat, lambda: click(world, who, card, index=index, form={}))

    assert "Deleted: " in markdown(told)
    assert told["root_id"] == ("" if place == "p2p" else question)


def test_nothing_found_and_the_words_of_others_are_never_said_to_be_deleted(
    world: World, word: str
) -> None:
    world.settled(world.ask("Bob", f"the cellar code is {word}")[0])

    assert "Bob" in markdown(asked(world, "Alice", f"/forget {word}"))
    told = markdown(asked(world, "Alice", "/忘记 地下室的暗号"))
    assert "没有找到" in told
    assert where(world, word)

    world.settled(world.ask("陈晨", f"is {word} still right?")[0])
    world.settled(world.ask("Alice", f"Bob told me {word}")[0])
    told = markdown(asked(world, "Alice", f"/forget {word}"))
    assert f"Bob told me {word}" in told
    assert "Bob said something about this here, too" in told, "and nobody who only asked"


def test_this_thread_in_the_main_chat_is_what_was_said_there(world: World, word: str) -> None:
    world.settled(world.ask("Alice", f"my code is {word}")[0])
    card = asked(world, "Alice", "/forget this thread")
    index = buttons(card).index("Confirm")
    click(world, "Alice", card, index=index)
    eventually(lambda: not where(world, word), what="it is gone everywhere")


def test_this_thread_in_the_main_chat_leaves_other_threads(world: World) -> None:
    group = world.in_a_new_group()
    opened = group.say("Bob", "who brings the projector?")
    in_thread, _ = group.ask("Alice", "I bring the yellow projector", root_id=opened)
    in_main, _ = group.ask("Alice", "I bring the blue cable")
    question, _ = group.ask("Alice", "/forget this thread")
    card = group.answers(question)[-1]
    after(group, group.group, lambda: click(group, "Alice", card, index=0))
    query = "select 1 from agent_messages where turn_id = %s and role = 'user'"
    eventually(lambda: not group.rows(query, in_main), what="the main chat is forgotten")
    assert group.rows(query, in_thread)


def test_who_said_the_same_in_another_group_is_told_alone_that_it_stays_there(
    world: World, word: str
) -> None:
    _, chat = newcomer(world, "Sam")
    here, there = (world.in_a_new_group(name=name) for name in ("Kitchen", "Launch *team*"))
    asked = [group.ask("Sam", f"the cellar code is {word}")[0] for group in (here, there)]
    for group, question in zip((here, there), asked, strict=True):
        group.settled(question)
        seen = ("select 1 from chat_members where chat_id = %s", group.group)
        eventually(lambda seen=seen: world.rows(*seen), what="it is known who is in the group")
    before = len(here.platform.messages(here.group))

    told = markdown(after(world, chat, lambda: take_back(here, "Sam", asked[0])))

    assert "Launch" in told
    assert "team" in told
    assert "Kitchen" not in told
    assert word not in told
    assert len(here.platform.messages(here.group)) == before, "the group is told nothing"
    assert world.rows("select 1 from agent_messages where turn_id = %s", asked[1])
