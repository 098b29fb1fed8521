"""Postgres crashes, and the bot works again as soon as it is back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.chaos.counting import Count, CountedQuestion
from lab.chaos.databases import recovery
from lab.chaos.scene import FaultScene, scene_in

pytestmark = pytest.mark.slow

_AWAY_S = 3.5  # pauses that double each time would last for seconds after it


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[FaultScene]:
    with scene_in(tmp_path) as made:
        made.model.control("mode", {"mode": "echo", "delay_s": 0.5})
        made.start()
        yield made


def test_events_are_accepted_and_work_goes_on_as_soon_as_the_database_is_back(
    scene: FaultScene,
) -> None:
    asked: list[CountedQuestion] = []
    back: list[float] = []
    with scene.asking(asked, per_s=3):
        for away_s in (0.0, _AWAY_S):
            time.sleep(2.0)
            back.append(scene.restart_postgres(away_s=away_s))
        time.sleep(4.0)
    count = scene.count(Count("recovery", scene.bot_id), asked)
    found = recovery(scene, asked, back)

    assert (count.lost, count.doubled, count.mismatched) == (0, 0, 0), count.details
    assert len(asked) > 20
    assert found.accepts_s < 2.0, found
    assert found.longest_s < 15.0, found
    assert found.answers_s < 4.0, found
    log = (scene.folder / "bot.log").read_text(encoding="utf-8")
    assert 3 <= log.count("database.away") <= 12, "a line for each process and crash, or so"
