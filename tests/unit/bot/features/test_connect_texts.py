"""What is asked for by need has its own sentence; what was allowed before is not called lost."""

from __future__ import annotations

from typing import Any, get_args

from bot.features.connect import connection_steps
from bot.feishu.user_scopes import (
    DOCUMENTS,
    PURPOSES,
    WRITING,
    missing_scopes,
    purposes_of,
    scopes_for,
)
from memory.tables.user_tokens import Outcome
from memory.text import has_han
from sandbox.world.user_scopes import USER_SCOPES
from tests.support.rows import every_row


@every_row("language", ["en", "zh"])
@every_row("purpose", PURPOSES)
def test_each_purpose_is_asked_for_alone_in_one_sentence(purpose: str, language: Any) -> None:
    shown = connection_steps.access_request(scopes_for((purpose,)), "https://link", 10, language)
    listed = [line for line in shown.splitlines() if line.startswith("- ")]
    assert connection_steps.say(f"purpose-{purpose}", language) in listed[-1]
    assert has_han(shown) == (language == "zh")
    promise = connection_steps.say("ask-limits", language)
    assert (promise in shown) == (purpose not in WRITING), "who writes does not say it cannot"


def test_every_scope_that_is_asked_for_is_one_that_people_can_grant() -> None:
    assert set(scopes_for(PURPOSES)) <= USER_SCOPES.keys()


def test_who_may_write_tasks_may_read_them() -> None:
    assert purposes_of(("task:task:write",)) == ("read-tasks", "write-tasks")
    assert missing_scopes(("read-tasks",), ()) == ("task:task:read",)


@every_row("language", ["en", "zh"])
@every_row("outcome", [one for one in get_args(Outcome) if one != "connected"])
def test_who_says_no_to_more_keeps_what_they_allowed(outcome: Outcome, language: Any) -> None:
    said = connection_steps.outcome_text(outcome, DOCUMENTS, language, scopes_for(("read-tasks",)))
    assert {"en": "stays as it is", "zh": "不变"}[language] in said
    assert said != connection_steps.outcome_text(outcome, (), language)


def test_what_was_left_out_of_a_grant_is_named() -> None:
    asked = scopes_for(("read-calendar", "write-calendar"))
    granted = scopes_for(("read-calendar",))
    said = connection_steps.outcome_text("connected", granted, "en", asked)
    assert "You did not allow me to book the meetings that you confirm" in said
