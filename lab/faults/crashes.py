"""Experiments on a Postgres that goes away and comes back: how soon the bot works again.

Times are counted from the moment when the server takes connections again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from lab.faults.counting import Count, CountedQuestion
from lab.faults.door import Mode, door_to
from lab.faults.scene import FaultScene
from memory.backends import server_folders

_CRASHES = 5
_EVERY_S = 6.0
_PER_S = 6.0
_BEFORE_S, _AFTER_S = 5.0, 20.0
_FROZEN_S = 10.0
_REFUSED_S = 5.0


@dataclass(frozen=True, slots=True)
class Recovery:
    """`accepts_s`: until the first event was acknowledged, by the slowest of the crashes;
    `refuses_s`: until the last one was refused, after the last crash; `answers_s`: until the first
    answer was seen; `refused`: how many answers other than 200 Feishu got."""

    accepts_s: float
    refuses_s: float
    answers_s: float
    refused: int
    longest_s: float

    def __str__(self) -> str:
        return (
            f"accepts after {self.accepts_s:.1f} s, refuses until {self.refuses_s:.1f} s, "
            f"answers after {self.answers_s:.1f} s, {self.refused} refused, "
            f"longest wait {self.longest_s:.1f} s"
        )


def crashes(scene: FaultScene, count: Count, rounds: int) -> None:
    """Five immediate restarts of Postgres, six seconds apart, while people ask."""
    scene.model.control("mode", {"mode": "echo", "delay_s": 0.5})
    scene.start()
    for number in range(rounds):
        asked: list[CountedQuestion] = []
        back: list[float] = []
        with scene.asking(asked, per_s=_PER_S, text=f"crash {number}"):
            time.sleep(_BEFORE_S)
            for _ in range(_CRASHES):
                began = time.monotonic()
                back.append(scene.restart_postgres(away_s=0.0))
                time.sleep(max(0.0, began + _EVERY_S - time.monotonic()))
            time.sleep(_AFTER_S)
        scene.count(count, asked)
        count.notes.append(str(recovery(scene, asked, back)))
        count.rounds += 1


def hanging(scene: FaultScene, count: Count, rounds: int) -> None:
    """Postgres does nothing for ten seconds, as a machine that swaps, while people ask."""
    scene.model.control("mode", {"mode": "echo", "delay_s": 0.5})
    scene.start()
    asked: list[CountedQuestion] = []
    back: list[float] = []
    with scene.asking(asked, per_s=_PER_S, text="hanging"):
        for _ in range(rounds):
            time.sleep(_BEFORE_S)
            with scene.frozen_postgres():
                time.sleep(_FROZEN_S)
            back.append(time.time())
            time.sleep(_EVERY_S)
            count.rounds += 1
    scene.count(count, asked)
    count.notes.append(str(recovery(scene, asked, back)))


_REFUSALS: tuple[Mode, ...] = ("refuse", "hang", "cut", "starting", "full")


def refusing(scene: FaultScene, count: Count, rounds: int) -> None:
    """What stands before Postgres cuts every connection and lets nobody in for a while: refused,
    never answered, cut off, still starting, too many clients, in turn, while people ask."""
    scene.model.control("mode", {"mode": "echo", "delay_s": 0.5})
    folder = parse_qs(urlsplit(scene.database_url).query)["host"][0]
    with door_to(Path(folder) / server_folders.SOCKET) as door:
        options = "sslmode=disable&gssencmode=disable"
        scene.start(DATABASE_URL=f"postgresql://postgres@127.0.0.1:{door.port}/postgres?{options}")
        asked: list[CountedQuestion] = []
        back: dict[Mode, list[float]] = {}
        with scene.asking(asked, per_s=_PER_S, text="refusing"):
            for number in range(rounds):
                mode = _REFUSALS[number % len(_REFUSALS)]
                time.sleep(_EVERY_S)
                door.set(mode)
                time.sleep(_REFUSED_S)
                door.set("open")
                back.setdefault(mode, []).append(time.time())
                count.rounds += 1
            time.sleep(_AFTER_S)
        scene.count(count, asked)
        for mode, times in back.items():
            found = recovery(scene, asked, times)
            soon = f"accepts after {found.accepts_s:.1f} s, answers after {found.answers_s:.1f} s"
            count.notes.append(f"{mode}: {soon}")
        last = max(at for times in back.values() for at in times)
        count.notes.append(str(recovery(scene, asked, [last])))
        scene.stop()


def recovery(
    scene: FaultScene, asked: Sequence[CountedQuestion], back: Sequence[float]
) -> Recovery:
    """How the bot recovered; `back` are the times when Postgres took connections again, in seconds
    since epoch."""
    attempts = scene.attempts(asked)
    taken = [_ended_s(one) for one in attempts if one["status"] == 200]
    refused = [_ended_s(one) for one in attempts if one["status"] != 200]
    answered = scene.answered(asked)
    return Recovery(
        accepts_s=max(_first_after(at, taken) for at in back),
        refuses_s=max([0.0, *(at - back[-1] for at in refused)]),
        answers_s=max(_first_after(at, [end for _, end in answered]) for at in back),
        refused=len(refused),
        longest_s=max((end - start for start, end in answered), default=0.0),
    )


def _ended_s(attempt: dict[str, Any]) -> float:
    return float(attempt["at_ms"] + attempt["latency_ms"]) / 1000


def _first_after(moment: float, times: Sequence[float]) -> float:
    """Seconds from `moment` to the first of `times` after it."""
    return min((at - moment for at in times if at >= moment), default=float("inf"))
