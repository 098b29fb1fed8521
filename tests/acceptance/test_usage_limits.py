"""A day's tokens used up: the card says so, the model is not asked, commands go on working."""

from __future__ import annotations

import pytest

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World

pytestmark = pytest.mark.slow

LIMIT = 1000


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return {"USAGE_LIMIT_PERSON": str(LIMIT), "TIMEZONE": "UTC"}


def used(world: World, who: str) -> int:
    [row] = world.rows(
        "select coalesce(sum(tokens_in + tokens_out), 0)::bigint as tokens"
        " from feishu_bot.model_usage where actor_id = %s",
        world.people[who],
    )
    return row["tokens"]


def test_a_person_reaches_the_limit_and_is_told_and_others_are_not(world: World) -> None:
    for _ in range(20):
        question, _ = world.ask("Alice", "tell me something long " * 20)
        world.settled(question)
        if used(world, "Alice") >= LIMIT:
            break

    def refused() -> bool:
        asked = len(world.model.requests())
        _, answer = world.ask("Alice", "and now?")
        return "model allowance for today" in answer and len(world.model.requests()) == asked

    eventually(refused, what="the limit holds")
    _, chinese = world.ask("Alice", "现在呢？")
    assert "已达上限" in chinese
    _, command = world.ask("Alice", "/help")
    assert "allowance" not in command
    _, other = world.ask("Bob", "and me?")
    assert "allowance" not in other
