"""A hundred and sixty requests for reminders as people type them, in both languages.

Each is understood rightly or asked about: by the offline model, and by the tool when a model hands
over the words instead of a date. `tests/data/reminder_requests.jsonl`: `at` lists what is right,
"ask" where it has to be asked, `text` is empty where that does not say of what; said on Wednesday
2026-11-25 at 10:00.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from bot.agents.offline.notes import Call
from bot.agents.offline.reminder_wishes import reminder_wish
from bot.agents.offline.reminders import next_reminder_step
from bot.agents.tool_types import ToolFailed
from bot.features.reminders.planning import due_moment
from bot.text.languages import language_of

NOW = datetime(2026, 11, 25, 10, 0, tzinfo=ZoneInfo("Asia/Shanghai"))
TOLD = f"Now:\n{NOW:%Y-%m-%d %H:%M %A} (Asia/Shanghai)"
LINES = (Path(__file__).parents[3] / "data" / "reminder_requests.jsonl").read_text().splitlines()
REQUESTS: list[dict[str, Any]] = [json.loads(line) for line in LINES]


@pytest.mark.parametrize("asked", REQUESTS, ids=[one["request"] for one in REQUESTS])
def test_the_offline_model_sets_what_is_meant_or_asks(asked: dict[str, Any]) -> None:
    wanted = reminder_wish(asked["request"])
    assert wanted
    assert wanted.kind == "set"
    step = next_reminder_step(wanted, [], TOLD, language_of([asked["request"]]))
    if not isinstance(step, Call):
        assert "ask" in asked["at"], step
        return
    given: dict[str, Any] = step.arguments
    assert given["at"] in asked["at"]
    assert given["repeats"] == asked["repeats"]
    assert given["for_whom"] == asked["whom"]
    assert given["text"] in asked["text"]


@pytest.mark.parametrize("asked", REQUESTS, ids=[one["request"] for one in REQUESTS])
def test_the_tool_reads_the_words_that_a_model_hands_over(asked: dict[str, Any]) -> None:
    try:
        local, _, repeats = due_moment(asked["request"], "once", NOW)
    except ToolFailed:
        found = ("ask", asked["repeats"])
    else:
        found = (f"{local:%Y-%m-%dT%H:%M}", repeats)
    assert found in [(at, asked["repeats"]) for at in asked["at"]]
