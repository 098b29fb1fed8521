"""What facts said before they changed: when it is asked for, and how it reads."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from memory.models import FormerValue
from memory.recall.selection import RenderedPassages, asks_for_former, with_former_values
from tests.support.rows import every_row

NOW = datetime(2026, 3, 5, tzinfo=UTC)


@every_row(
    "question",
    [
        "Where did I live before?",
        "what was my old number",
        "which desk did I use to have, previously",
        "我以前住哪里？",
        "周会原来是几点？",
        "我的工位改过吗",
    ],
)
def test_a_question_about_how_it_was_asks_for_former_values(question: str) -> None:
    assert asks_for_former(question)


@every_row("question", ["Where do I live?", "我住哪里？", "how tall is he", "周会几点"])
def test_a_question_about_how_it_is_does_not(question: str) -> None:
    assert not asks_for_former(question)


def test_a_former_value_says_from_when_until_when_it_held() -> None:
    former = [
        FormerValue("Berlin", "2026-01-03T09:00:00+00:00", "2026-02-01T10:00:00+00:00", key="city"),
        FormerValue({"a": 1}, None, "2026-01-02T10:00:00+00:00", key="plan"),
    ]
    found = RenderedPassages("[2026-01-01 00:00] Alice: hello", (0.5,))

    told = with_former_values(found, former, question="my city before?", subject="Alice", now=NOW)

    assert told.text.splitlines() == [
        '[earlier, until 2026-01-02 10:00] kept of Alice: plan: {"a": 1}',
        "[2026-01-03 09:00 · earlier, until 2026-02-01 10:00] kept of Alice: city: Berlin",
        "[2026-01-01 00:00] Alice: hello",
    ]
    assert told.worth == (math.inf, math.inf, 0.5)


def test_of_many_those_are_told_that_the_question_names() -> None:
    untils = [f"2026-02-{day:02}T10:00:00+00:00" for day in range(20, 2, -1)]
    former = [FormerValue(f"v{n}", None, at, key=f"key{n}") for n, at in enumerate(untils)]
    asked = [*former, FormerValue("Berlin", None, "2026-01-01T10:00:00+00:00", key="home_city")]

    told = with_former_values(
        RenderedPassages(), asked, question="which city before?", subject="Alice", now=NOW
    ).text.splitlines()

    assert len(told) == 5
    assert "home_city: Berlin" in told[0]
    assert told[-1].endswith("key0: v0")
