"""What both readers of dates make of the same words, in both languages.

`tests/data/date_readings.jsonl`: `reminder` is [time, repetition, problem, words besides] of what
is to come, `recall` the first three spans of days [since, until) of what has been, or null; `fuzzy`
stands with those like “lately”. All is said on Wednesday 2026-11-25 at 10:00 in Shanghai.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from bot.text.moments import read_moment
from memory.recall.dates import date_range

NOW = datetime(2026, 11, 25, 10, 0, tzinfo=ZoneInfo("Asia/Shanghai"))
LINES = (Path(__file__).parents[3] / "data" / "date_readings.jsonl").read_text().splitlines()
READINGS: list[dict[str, Any]] = [json.loads(line) for line in LINES]


def reading(text: str) -> dict[str, Any]:
    said, past = read_moment(text, NOW), date_range(text, NOW)
    return {
        "text": text,
        "reminder": [said.at, said.repeats, said.problem, " ".join(said.rest.split())],
        "recall": past and [[f"{s.since:%F}", f"{s.until:%F}"] for s in past.spans[:3]],
        "fuzzy": bool(past and past.fuzzy),
    }


def test_words_about_time_keep_their_meaning() -> None:
    changed = [(one, read) for one in READINGS if (read := reading(one["text"])) != one]
    assert changed == []
