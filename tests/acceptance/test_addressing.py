"""Whom an answer addresses, and how, when the operator has it otherwise than usual."""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import World


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return {"AUTO_MENTION": "meant", "MENTION_TEMPLATE": "Hi {at}! "}


def at(world: World, name: str) -> str:
    return f"<at id={world.people[name]}></at>"


def test_the_person_a_question_is_about_is_addressed_in_the_templates_words(world: World) -> None:
    world.model.control("script", {"rules": [{"reply": {"text": "It is blue."}}]})
    question, about_bob = world.ask("Alice", "@Bob which design was it?")
    assert about_bob == f"Hi {at(world, 'Bob')}! It is blue."
    (row,) = world.settled(question)
    assert row["content"] == about_bob

    _, own = world.ask("Alice", "which design was it?")
    assert own == f"Hi {at(world, 'Alice')}! It is blue."


def test_before_a_block_the_template_stands_in_a_paragraph_of_its_own(world: World) -> None:
    world.model.control("script", {"rules": [{"reply": {"text": "- blue\n- green"}}]})
    _, card = world.ask("Alice", "which designs are there?")
    assert card == f"Hi {at(world, 'Alice')}!\n\n- blue\n- green"


def test_an_answer_that_was_read_back_is_not_addressed_twice(world: World) -> None:
    world.model.control("script", {"rules": [{"reply": {"text": "Hi @Alice! It is blue."}}]})
    _, card = world.ask("Alice", "say it again")
    assert card == f"Hi {at(world, 'Alice')}! It is blue."
