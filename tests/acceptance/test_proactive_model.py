"""Proactive answers of a model: it may find that there is nothing to say."""

from __future__ import annotations

import json

import pytest

from tests.acceptance.conftest import World, markdown
from tests.acceptance.test_commands import decision_on
from tests.acceptance.test_proactive import come, noted, unasked
from tests.acceptance.test_proactive import group as group  # the fixture


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return {"PROACTIVE_HOURS": "0-24", "FOLLOWUP_WINDOW_SECONDS": "0"}


def test_a_model_that_finds_no_answer_says_nothing_and_nothing_is_kept(group: World) -> None:
    group.model.control("script", {"rules": [{"reply": {"text": "NO_ANSWER"}}]})
    group.model.forget()
    question, timer = noted(group, "Bob", "Who ordered the quince launch cake?")
    come(group, timer)
    assert unasked(group) == []
    (request,) = group.model.requests()
    assert "Nobody asked you" in json.dumps(request["body"])
    assert not decision_on(group, question)["respond"]
    assert group.rows("select 1 from agent_messages where turn_id = %s", question) == []


def test_a_model_that_is_away_says_nothing(group: World) -> None:
    group.model.control("script", {"rules": [{"reply": {"text": ""}}]})
    question, timer = noted(group, "Bob", "When is the quince launch?")
    come(group, timer)
    assert unasked(group) == []
    assert not decision_on(group, question)["respond"]


def test_what_it_finds_it_says(group: World) -> None:
    group.model.control("script", {"rules": [{"reply": {"text": "On the third of March."}}]})
    _, timer = noted(group, "Bob", "When is the quince launch?")
    come(group, timer)
    (card,) = unasked(group)
    assert markdown(card).endswith("On the third of March.")
