"""Two bots in one group stop: two copies of this bot, and this bot beside one that always answers.

Each copy runs with a platform of its own; the test carries what one says to the other's group, as
Feishu would push it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from bot.answering.texts import say
from tests.acceptance.conftest import World, is_from_bot, markdown, running_world
from tests.acceptance.test_chat_rules import decided
from tests.support import postgres

CHATTER = ("lunch at noon?", "my train is late again", "nice work everybody", "哈哈哈", "see you")


@pytest.fixture(scope="module")
def second(
    processes: World,
    tmp_path_factory: pytest.TempPathFactory,
    postgres_server: postgres.Server,
    migrated_template: str,
) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("second")
    with (
        postgres_server.fresh_database(template=migrated_template) as database_url,
        running_world(folder, database_url, {}) as world,
    ):
        yield world


@dataclass
class Side:
    """A bot's view of the group: `robot` is the other bot there."""

    world: World
    robot: str
    seen: set[str] = field(default_factory=set)

    def hear(self, who: str, text: str, **more: Any) -> bool:
        """Whether the bot answers; if so, once its answer is sent."""
        message = self.world.platform.say(who, self.world.group, text, **more)
        if not decided(self.world, message)["respond"]:
            return False
        self.world.settled(message)
        return True

    def people_say(self, *texts: str) -> None:
        for number, text in enumerate(texts):
            self.hear(self.world.people[("Alice", "Bob")[number % 2]], text)

    def new_cards(self) -> list[dict[str, Any]]:
        """What the bot said since the last look, oldest first."""
        everything = self.world.platform.messages(self.world.group)
        cards = [m for m in everything if is_from_bot(m) and not m["visible_to"]]
        new = [card for card in cards if card["message_id"] not in self.seen]
        self.seen |= {card["message_id"] for card in new}
        return new


def side(world: World) -> Side:
    robot = world.platform.post("/people", name="Robo", kind="bot")["open_id"]
    world.platform.post("/join", chat_id=world.group, open_id=robot)
    return Side(world, robot)


@pytest.fixture
def memo(world: World) -> Side:
    asks = {"text": "Interesting.\n\n@Robo and what do you think about that?"}
    world.model.control("script", {"rules": [{"reply": asks}]})
    world.model.control("mode", {"mode": "rules"})
    return side(world)


def tags_robot(card: dict[str, Any], here: Side) -> bool:
    return f"<at id={here.robot}>" in json.dumps(card["card"])


@pytest.mark.parametrize("named", [("us",), ("robo",), ("us", "robo")], ids="-".join)
def test_this_bot_beside_one_that_always_answers(memo: Side, named: tuple[str, ...]) -> None:
    names = {"us": f"@{memo.world.bot_name}", "robo": "@Robo"}
    for _ in range(2):
        said = 0
        asked = " ".join(names[one] for one in named)
        memo.hear(memo.world.people["Alice"], f"{asked} what about the launch?")
        waiting = ["robo"] * ("robo" in named) + [c["message_id"] for c in memo.new_cards()]
        said += len(waiting) - ("robo" in named)
        while waiting:
            waiting.pop(0)
            memo.people_say(*CHATTER)
            memo.hear(memo.robot, f"@{memo.world.bot_name} why is that so, and what follows?")
            new = memo.new_cards()
            said += 1 + len(new)
            waiting += [card["message_id"] for card in new]
            assert said <= 6


def test_two_copies_of_this_bot(memo: Side, second: World) -> None:
    twin = side(second.in_a_new_group())
    asks = {"text": "Quite so.\n\n@Robo but can you tell me more?"}
    second.model.control("script", {"rules": [{"reply": asks}]})
    second.model.control("mode", {"mode": "rules"})
    other = {id(memo): twin, id(twin): memo}
    for both in (False, True):
        said = 0
        question = f"@{memo.world.bot_name} what about the launch?"
        memo.hear(memo.world.people["Alice"], f"@Robo {question}" if both else question)
        asked = f"@{second.bot_name} @Robo what about it?" if both else "@Robo what about it?"
        twin.hear(twin.world.people["Alice"], asked)
        waiting = [(here, card) for here in (memo, twin) for card in here.new_cards()]
        said += len(waiting)
        while waiting:
            here, _ = waiting.pop(0)
            there = other[id(here)]
            there.people_say(*CHATTER)
            text = f"@{there.world.bot_name} and what do you think about that?"
            there.hear(there.robot, text)
            new = [(there, card) for card in there.new_cards()]
            said += len(new)
            waiting += new
            assert said <= 6


def test_the_budget_outlives_the_worker_and_the_last_answer_says_so(memo: Side) -> None:
    question = f"@{memo.world.bot_name} when is the launch?"
    assert memo.hear(memo.robot, question)
    memo.world.bot.workers[-1].kill()
    memo.world.bot.start_worker()
    assert memo.hear(memo.robot, question)
    assert not memo.hear(memo.robot, question)
    first, last = memo.new_cards()
    assert say("last-to-bots", "en") not in markdown(first)
    assert markdown(last).endswith(say("last-to-bots", "en"))
    _, card = memo.world.ask("Alice", "/why")
    assert "bots from talking forever" in card
    assert memo.hear(memo.robot, question)


def test_a_bot_is_mentioned_where_it_asked_and_not_where_it_told(memo: Side) -> None:
    us = f"@{memo.world.bot_name}"
    assert memo.hear(memo.robot, f"{us} CPU of db-1 is at 98 %. What should we do?")
    assert memo.hear(memo.robot, f"{us} the build is green again")
    asked, told = memo.new_cards()
    assert tags_robot(asked, memo)
    assert not tags_robot(told, memo)


def test_a_person_can_have_us_ask_another_bot_which_we_mention_unasked_never(memo: Side) -> None:
    us, alice = f"@{memo.world.bot_name}", memo.world.people["Alice"]
    memo.hear(memo.robot, f"{us} the build is green again")
    assert memo.hear(alice, f"{us} what did Robo say?")
    assert memo.hear(alice, f"{us} please ask @Robo")
    _, unasked, wanted = memo.new_cards()
    assert not tags_robot(unasked, memo)
    assert tags_robot(wanted, memo)
