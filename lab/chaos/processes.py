"""Experiments: killed processes, and Feishu out of reach."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from statistics import median

import psutil  # type: ignore[import-untyped]

from lab.chaos.counting import Count, CountedQuestion
from lab.chaos.scene import WORKERS, FaultScene
from lab.doubles.processes import eventually

_WORKER, _WEB = "bot.worker", "gunicorn"
_MODEL_S = 1.0
_SETTLES_S = 5.0


def kills(scene: FaultScene, count: Count, rounds: int) -> None:
    """kill -9 to a worker, to the web processes and to everything, in turn, while people ask."""
    scene.model.control("mode", {"mode": "echo", "delay_s": 1.0})
    scene.start()
    asked: list[CountedQuestion] = []
    for number in range(rounds):
        with scene.asking(asked, per_s=4, text=f"round {number}"):
            time.sleep(random.uniform(1.0, 2.5))  # noqa: S311
            _kill(scene, ("worker", "web", "everything")[number % 3])
            time.sleep(1.5)
        count.rounds += 1
    scene.count(count, asked)


def _kill(scene: FaultScene, what: str) -> None:
    if what == "everything":
        scene.kill()
        scene.start_again()
        return
    found = scene.processes(_WORKER if what == "worker" else _WEB)
    _shoot(found[:1] if what == "worker" else found)


def _shoot(processes: Sequence[psutil.Process]) -> None:
    """kill -9 to each; some go with the one before them."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)


def takeover(scene: FaultScene, count: Count, rounds: int) -> None:
    """kill -9 to one of two workers and to both, in turn, with questions in hand. Notes how long
    until these are answered, less the second that the model takes."""
    scene.model.control("mode", {"mode": "echo", "delay_s": _MODEL_S})
    scene.start()
    asked: list[CountedQuestion] = []
    waited: dict[int, list[float]] = {1: [], WORKERS: []}
    for number in range(rounds):
        most = (1, WORKERS)[number % 2]
        eventually(scene.is_complete, what="both workers work")
        time.sleep(_SETTLES_S)  # who falls earlier than that is started again after a pause
        questions = [scene.ask(f"taken over {number}", scene.new_chat()) for _ in range(6)]
        eventually(partial(scene.are_in_hand, questions), what="all are in hand")
        _shoot(scene.processes(_WORKER)[:most])
        killed_ms = time.time() * 1000
        meanwhile = scene.count(Count("takeover", scene.bot_id), questions)
        last_ms = max(meanwhile.answered_ms, default=killed_ms)
        waited[most].append(max(0.0, (last_ms - killed_ms) / 1000 - _MODEL_S))
        asked += questions
        count.rounds += 1
    for most, times in waited.items():
        if times:
            count.notes.append(f"{most} killed: p50 {median(times):.1f} s, max {max(times):.1f} s")
    scene.count(count, asked)


def feishu_away(scene: FaultScene, count: Count, rounds: int, *, minutes: float) -> None:
    """Nobody reaches Feishu for some minutes: refused, hanging, cut off, behind a gateway that says
    so, a quarter of the time each."""
    scene.model.control("mode", {"mode": "echo", "delay_s": 0.2})
    scene.start()
    asked: list[CountedQuestion] = []
    for number in range(rounds):
        with scene.asking(asked, per_s=1, text=f"outage {number}"):
            for mode in ("refuse", "hang", "cut", "bad gateway"):
                scene.feishu.set(mode)
                time.sleep(minutes * 15)
            scene.feishu.set("open")
        count.rounds += 1
    count.notes.append(f"away {minutes:g} min")
    scene.count(count, asked)


def rest(scene: FaultScene) -> None:
    """Cleans up after an experiment."""
    scene.stop()
    scene.feishu.set("open")
    scene.platform.forget_faults()
    scene.model.control("mode", {"mode": "echo", "delay_s": 0.0})
    scene.execute(
        "set search_path = feishu_bot;"
        " delete from jobs where status in ('failed', 'waiting', 'running')"
    )
