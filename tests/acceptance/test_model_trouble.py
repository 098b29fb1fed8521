"""A model that is down, slow or talks nonsense: nobody waits in silence, nobody sees its errors."""

from __future__ import annotations

import time

import pytest

from tests.acceptance.conftest import World
from tests.support.processes import eventually


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return {"MODEL_TIMEOUT_SECONDS": "5"}


def tell(world: World, **reply: object) -> None:
    world.model.control("script", {"rules": [{"reply": reply}]})
    world.model.control("mode", {"mode": "rules"})


@pytest.mark.parametrize(
    "trouble",
    [
        {"fault": "hang"},
        {"fault": "cut"},
        {"fault": "malformed"},
        {"status": 500, "body": "Traceback: secret upstream text"},
        {"status": 401, "body": {"error": {"message": "secret upstream text"}}},
        {"status": 429, "body": {"error": {"message": "secret upstream text"}}},
        {"text": ""},
    ],
    ids=lambda trouble: str(trouble.get("fault") or trouble.get("status") or "empty"),
)
def test_an_honest_card_comes_and_the_question_is_kept(
    world: World, trouble: dict[str, object]
) -> None:
    tell(world, **trouble)
    started = time.monotonic()
    question, card = world.ask("Alice", "what is the plan?")

    assert time.monotonic() - started < 20
    assert "Sorry, I cannot get an answer" in card
    assert "secret" not in card
    (row,) = world.settled(question)
    assert row["content"] == card
    world.model.control("mode", {"mode": "echo"})
    world.model.forget()
    world.ask("Alice", "and now?", root_id=question)
    (request,) = world.model.requests()
    assert "what is the plan?" in str(request["body"])


def test_in_chinese_the_honest_card_is_chinese(world: World) -> None:
    tell(world, status=500, body="x")
    _, card = world.ask("陈晨", "计划是什么？")
    assert "抱歉" in card


def test_a_sign_of_work_appears_within_two_seconds_without_a_message(world: World) -> None:
    tell(world, text="done", delay_s=3)
    question = world.say("Alice", f"@{world.bot_name} take your time")

    def reactions() -> list[object]:
        messages = world.platform.messages(world.group)
        return next(m["reactions"] for m in messages if m["message_id"] == question)

    eventually(reactions, within_s=2.5, what="a reaction")
    world.answer(question)
    eventually(lambda: not reactions(), what="the reaction is taken back")
    assert len(world.platform.messages(world.group)) == 2


def test_other_threads_are_not_held_up(world: World) -> None:
    slow = {"when": [{"contains": "slowly"}], "reply": {"text": "slow", "delay_s": 4}}
    world.model.control("script", {"rules": [slow, {"reply": {"text": "quick"}}]})
    world.model.control("mode", {"mode": "rules"})
    waiting = world.say("Alice", f"@{world.bot_name} slowly")
    started = time.monotonic()
    world.ask("Bob", "hello")

    assert time.monotonic() - started < 3
    assert not world.answers(waiting)
    world.answer(waiting)
