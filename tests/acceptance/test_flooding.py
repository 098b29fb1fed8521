"""One person asks for far more than a person does: told once, skipped, and nobody else's loss."""

from __future__ import annotations

import time

import pytest

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World
from tests.acceptance.test_buttons import click, toast
from tests.acceptance.test_own_memory import private_chat

pytestmark = pytest.mark.slow

AT_ONCE = 8
LIMIT = 4 * AT_ONCE
TOLD = "more than I can take from one person"


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return {"REQUESTS_PER_MINUTE": str(LIMIT), "WORKER_CONCURRENCY": "16"}


def flood(world: World, who: str, number: int, **more: object) -> list[str]:
    return [world.say(who, f"@{world.bot_name} question {n}", **more) for n in range(number)]


def decided(world: World, questions: list[str]) -> list[str]:
    """The reasons, once there is one for each."""

    def found() -> list[dict[str, object]]:
        rows = world.rows(
            "select reason from agent_decisions where message_id = any(%s)", questions
        )
        return rows if len(rows) >= len(questions) else []

    return [str(row["reason"]) for row in eventually(found, what="every message is decided")]


def test_a_flood_is_answered_up_to_the_limit_and_told_once(world: World) -> None:
    started = time.monotonic()
    questions = flood(world, "Alice", 40)
    question, _ = world.ask("Bob", "and me?")
    reasons = decided(world, questions)
    filled = (time.monotonic() - started) * LIMIT / 60

    answered = reasons.count("explicit_trigger")
    assert AT_ONCE <= answered <= AT_ONCE + filled + 1
    assert reasons.count("rate_limited") == 40 - answered
    eventually(
        lambda: sum(bool(world.answers(one)) for one in questions) == answered + 1,
        what="the answers and one notice",
    )
    cards = [world.answers(one)[0] for one in questions if world.answers(one)]
    assert sum(TOLD in str(card) for card in cards) == 1
    assert world.settled(question)

    skipped = next(one for one in questions if not world.answers(one))
    _, why = world.ask("Bob", "/why", reply_to=skipped, quote=True)
    assert "more than I can take from one person" in why


def test_in_p2p_the_limit_is_the_same_and_why_tells_it(world: World) -> None:
    chat = private_chat(world, "陈晨")
    questions = flood(world, "陈晨", AT_ONCE + 16, chat=chat)
    eventually(
        lambda: sum(bool(world.answers(one, chat=chat)) for one in questions) > AT_ONCE,
        what="the answers and the notice",
    )
    shown = [str(card) for one in questions for card in world.answers(one, chat=chat)]
    assert sum(TOLD in one for one in shown) == 1

    def asked() -> bool:
        question = world.say("陈晨", "/why", chat=chat)
        time.sleep(2)
        return any(
            "more than I can take from one person" in str(card)
            for card in world.answers(question, chat=chat)
        )

    eventually(asked, what="why, as soon as there is something left")


def test_what_is_taken_back_goes_in_a_flood(world: World) -> None:
    question, _ = world.ask("Bob", "keep this")
    world.settled(question)
    flood(world, "Bob", AT_ONCE + 5)
    world.platform.post("/recall", message_id=question, **{"as": world.people["Bob"]})
    eventually(
        lambda: not world.rows("select from agent_messages where turn_id = %s", question),
        what="it is gone",
    )


def test_a_press_over_the_limit_is_answered_by_a_toast_and_the_button_stays(world: World) -> None:
    question, _ = world.ask("陈晨", "/help")
    world.settled(question)
    counted = "select 1 from feishu_bot.person_rates where open_id = %s"
    person = world.people["陈晨"]
    eventually(lambda: world.rows(counted, person), what="the level is shared")
    set_level = "update feishu_bot.person_rates set level = %s where open_id = %s returning 1"

    world.rows(set_level, -LIMIT, person)
    assert "Too many requests" in toast(click(world, "陈晨", question, None, index=0))
    world.rows(set_level, AT_ONCE, person)
    assert "On it" in toast(click(world, "陈晨", question, None, index=0))
