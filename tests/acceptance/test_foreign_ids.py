"""A bot of another app mentions this one by an id of its own app."""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import World
from tests.acceptance.test_chat_rules import decided


@pytest.fixture
def group(world: World) -> World:
    robot = world.platform.post("/people", name="Robo", kind="bot")["open_id"]
    world.platform.post("/join", chat_id=world.group, open_id=robot)
    world.people["Robo"] = robot
    return world


@pytest.mark.parametrize("text", ["when do we launch?", "我们什么时候发布？"])
@pytest.mark.parametrize("who", ["Robo", "Alice"])
def test_it_is_meant_whichever_id_the_event_gives_it(group: World, who: str, text: str) -> None:
    question = group.say(who, f"@{group.bot_name} {text}", foreign_ids=True)
    group.answer(question)
    row = decided(group, question)
    reason = "bot_asked" if who == "Robo" else "explicit_trigger"
    assert (row["respond"], row["reason"]) == (True, reason)
    assert text in str(group.model.requests()[-1])
    group.settled(question)


def test_somebody_else_of_the_same_name_is_not(group: World) -> None:
    twin = group.platform.post("/people", name=group.bot_name, kind="bot")["open_id"]
    group.platform.post("/join", chat_id=group.group, open_id=twin)
    said = group.platform.say(
        group.people["Robo"], group.group, "@_user_1 hello", mentions=[{"open_id": twin}],
        foreign_ids=True,
    )  # fmt: skip
    assert decided(group, said)["respond"] is False


def test_the_budget_holds_for_bots_that_mention_by_another_id(group: World) -> None:
    for number in range(2):
        group.settled(group.say("Robo", f"@{group.bot_name} round {number}", foreign_ids=True))
    last = decided(group, group.say("Robo", f"@{group.bot_name} go on", foreign_ids=True))
    assert (last["respond"], last["reason"]) == (False, "bot_loop_limit")
