"""The menu of the private chat: an item starts what its command starts, once, for who pressed."""

from __future__ import annotations

from typing import Any

import pytest

from bot.feishu.manifest import MENU
from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, is_from_bot, markdown

pytestmark = pytest.mark.slow

UNFINISHED = "select 1 from feishu_bot.jobs where status in ('running', 'waiting')"
SAYS = {
    "help": "Here is what I can do",
    "memory": "remember",
    "settings": "Settings for our private chat",
    "quiet": "nothing to mute",
    "connect": "onnect",
}


def p2p_of(world: World, name: str) -> str:
    chats = world.platform.state()["chats"]
    person = world.people[name]
    return next(c["chat_id"] for c in chats if c["mode"] == "p2p" and person in c["members"])


def cards(world: World, chat: str) -> list[dict[str, Any]]:
    return [one for one in world.platform.messages(chat) if is_from_bot(one)]


def press(world: World, who: str, key: str, **more: Any) -> list[dict[str, Any]]:
    """The cards that a press leads to, once the bot has done with it."""
    chat = p2p_of(world, who)
    before = len(cards(world, chat))
    world.platform.post("/menu", **{"as": world.people[who], "event_key": key, **more})
    world.platform.get("/deliveries", wait_s=20)
    eventually(lambda: len(cards(world, chat)) > before, what="a card")
    eventually(lambda: not world.rows(UNFINISHED), what="the jobs are done")
    return cards(world, chat)[before:]


def test_every_item_starts_its_command_in_the_chat_of_who_pressed_it(world: World) -> None:
    for item in MENU:
        (card,) = press(world, "Alice", item.key)
        assert SAYS[item.key] in markdown(card), item.key
        assert card["parent_id"] == ""


def test_a_press_is_answered_once_however_often_it_is_told(world: World) -> None:
    assert len(press(world, "Bob", "help", times=3, new_event_ids=True)) == 1
    assert len(press(world, "Bob", "memory", times=2)) == 1


def test_an_item_without_a_command_says_which_there_are(world: World) -> None:
    (card,) = press(world, "Carol" if "Carol" in world.people else "Alice", "sales_report")

    assert "sales" in markdown(card)
    assert "`help`, `memory`, `settings`, `quiet`, `connect`" in markdown(card)
