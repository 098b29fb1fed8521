"""With MEMORY_SHARING=person nobody's prompt holds a word that somebody else said, in any place."""

from __future__ import annotations

import json

import pytest

from tests.acceptance.conftest import World


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return {"MEMORY_SHARING": "person"}


def last_request(world: World) -> str:
    return json.dumps(world.model.requests()[-1]["body"])


def test_people_in_one_thread_and_threads_of_one_person_stay_apart(world: World) -> None:
    first, _ = world.ask("Alice", "my secret word is apricot")
    world.ask("Bob", "what do you know?", root_id=first)
    assert "apricot" not in last_request(world), "Bob was given Alice's words"

    world.ask("Alice", "what do you know?", root_id=first)
    assert "Alice: my secret word is apricot" in last_request(world)

    elsewhere = world.say("Bob", "see you all tomorrow")
    world.ask("Alice", "what do you know?", root_id=elsewhere)
    assert "apricot" not in last_request(world), "another thread was given them"


def test_a_chat_tells_nobody_what_others_said_or_were_answered_there(world: World) -> None:
    question, _ = world.ask("Alice", "the handover is on 3 March")
    world.settled(question)
    world.say("Alice", "the caterer is called Plum")
    for asked in ("when is the handover?", "who is the caterer?"):
        world.ask("Bob", asked)
        assert "3 March" not in last_request(world)
        assert "Plum" not in last_request(world)
