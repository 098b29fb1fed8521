"""What nobody configures: whether the model sees pictures, and whether a group lets the bot mention
everybody."""

from __future__ import annotations

from typing import Any

import pytest

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, markdown
from tests.acceptance.test_reminders import cards_of, make_due, over, shown, timers

SEES = {"when": {"regex": "Which two colours"}, "reply": {"text": "Yellow and purple."}}
BLIND = {"when": {"regex": "Which two colours"}, "reply": {"text": "I cannot tell."}}
OTHERWISE = {"reply": {"text": "It is a bird."}}


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return {"ALLOW_MENTION_ALL": "true", "OPENAI_VISION": "", "TIMEZONE": "Europe/Berlin"}


def starts_with(world: World, answer: dict[str, Any]) -> None:
    """The worker starts anew, and its model answers so when it is asked what it sees."""
    world.model.control("mode", {"mode": "rules"})
    world.model.control("script", {"rules": [answer, OTHERWISE]})
    world.bot.workers[-1].terminate()
    worker = world.bot.start_worker()
    eventually(lambda: "model.sight" in worker.output(), what="it knows whether the model sees")


def pictures_shown(world: World) -> int:
    picture = world.say("Bob", "", message_type="image")
    question, _ = world.ask("Alice", "what is this?", reply_to=picture, quote=True)
    world.settled(question)
    content = world.model.requests()[-1]["body"]["messages"][-1]["content"]
    return sum(part["type"] == "image_url" for part in content if isinstance(part, dict))


def test_a_model_is_shown_pictures_once_it_has_told_what_it_sees(world: World) -> None:
    starts_with(world, BLIND)
    assert pictures_shown(world) == 0
    starts_with(world, SEES)
    assert pictures_shown(world) == 1


def test_where_only_the_owner_mentions_everybody_the_card_goes_without_and_says_so(
    world: World,
) -> None:
    set_reminder(world, "water the zinnia")
    (card,) = reminded(world, "zinnia")
    assert "<at id=all></at>" in markdown(card), "where the group allows it everybody is called"

    world.platform.post("/switches", all_by_owner=True)
    try:
        set_reminder(world, "feed the ocelot")
        (card,) = reminded(world, "ocelot")
    finally:
        world.platform.post("/switches", all_by_owner=False)
    assert "<at" not in markdown(card)
    assert "lets only its owner and admins mention everyone" in markdown(card)
    (stored,) = cards_of(world, timers(world)[-1]["id"])
    assert (stored["content"], stored["message_id"]) == (markdown(card), card["message_id"])


def set_reminder(world: World, what: str) -> None:
    arguments = {"text": what, "at": "2027-01-02T15:00", "for_whom": ["us"]}
    call = {"tool_calls": [{"name": "set_reminder", "arguments": arguments}]}
    world.model.control("mode", {"mode": "rules"})
    rules = [{"reply": call, "after_tool": False}, {"reply": {"text": "I will."}}]
    world.model.control("script", {"rules": rules})
    world.ask("Alice", f"remind us to {what} on 2 January 2027 at 3 pm")


def reminded(world: World, word: str) -> list[dict[str, Any]]:
    id = timers(world)[-1]["id"]
    make_due(world, id)
    over(world, id)
    return shown(world, word)
