"""Recall by meaning through the real processes: embedded in the background, found by the turn."""

from __future__ import annotations

import pytest

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return {"EMBEDDING_MODEL": "stand-in", "SUMMARY_AFTER_MESSAGES": "0"}


def test_what_was_said_in_another_form_is_found_in_another_thread(world: World) -> None:
    said, _ = world.ask("Alice", "The rehearsals begin at nine")
    for text in ("noodles for lunch", "the report is late"):
        world.ask("Alice", text)
    eventually(lambda: len(_embedded(world)) >= 6, what="every message has its embedding")
    world.model.forget()

    world.ask("Alice", "do you remember, rehearsing?")

    (request,) = world.model.requests()
    assert "The rehearsals begin at nine" in str(request["body"])
    assert {row["turn_id"] for row in _embedded(world)} >= {said}


def _embedded(world: World) -> list[dict[str, object]]:
    return world.rows(
        "select turn_id from agent_embeddings where user_id = %s", world.people["Alice"]
    )


def test_an_embedding_model_that_hangs_is_not_waited_for_again_and_again(world: World) -> None:
    world.model.control("mode", {"mode": "echo", "embeddings": {"delay_s": 600}})
    log = world.bot.workers[-1]
    for number in range(3):
        world.ask("Alice", f"do you remember rehearsal number {number}?")
    eventually(lambda: "embedding.away" in log.output(), what="it counts as away")
    _, card = world.ask("Alice", "do you remember how it was in the end?")
    assert "in the end?" in card

    world.model.control("mode", {"mode": "echo", "embeddings": {}})

    def is_back() -> bool:
        world.ask("Alice", "do you remember the next one?")
        return "embedding.back" in log.output()

    eventually(is_back, what="it is tried again")
