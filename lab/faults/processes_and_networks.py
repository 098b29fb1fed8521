"""Experiments on processes, the database, Feishu's absence and the log."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import IO

import psutil  # type: ignore[import-untyped]

from lab.doubles.processes import eventually
from lab.faults.counting import Count, CountedQuestion
from lab.faults.scene import WORKERS, FaultScene

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


def kill_one(scene: FaultScene) -> None:
    """kill -9 to a worker."""
    _kill(scene, "worker")


def _shoot(processes: Sequence[psutil.Process]) -> None:
    """kill -9 to each; some go with the one before them."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)


def takeover(scene: FaultScene, count: Count, rounds: int) -> None:
    """kill -9 to one of two workers and to both, in turn, with questions in hand: how long until
    they are answered all the same, without the second that the model takes."""
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


def postgres(scene: FaultScene, count: Count, rounds: int) -> None:
    """Postgres is stopped at once, without a checkpoint, and started again, while people ask."""
    scene.model.control("mode", {"mode": "echo", "delay_s": 0.5})
    scene.start()
    asked: list[CountedQuestion] = []
    for number in range(rounds):
        with scene.asking(asked, per_s=4, text=f"restart {number}"):
            time.sleep(1.5)
            scene.restart_postgres(away_s=random.uniform(0.0, 2.0))  # noqa: S311
            time.sleep(2.0)
        count.rounds += 1
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


def logs(scene: FaultScene, count: Count, rounds: int) -> None:
    """A log that nobody can write: a full disk, a pipe without a reader, a reader that sleeps."""
    scene.model.control("mode", {"mode": "echo", "delay_s": 0.1})
    asked: list[CountedQuestion] = []
    for kind in ("full disk", "broken pipe", "sleeping reader")[:rounds]:
        out, keeps = _unwritable(kind)
        scene.start(out=out)
        before = len(asked)
        with scene.asking(asked, per_s=6, text=kind):
            time.sleep(3)
        scene.count(Count(kind, scene.bot_id), asked[before:])
        scene.stop()
        for one in (out, keeps):
            if one:
                one.close()
        count.rounds += 1
    if not scene.is_settled(asked):
        scene.start()
    scene.count(count, asked)


def _unwritable(kind: str) -> tuple[IO[bytes], IO[bytes] | None]:
    if kind == "full disk":
        return Path("/dev/full").open("wb", buffering=0), None
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)  # full after a few lines
    if kind == "broken pipe":
        os.close(read)
        return os.fdopen(write, "wb", 0), None
    return os.fdopen(write, "wb", 0), os.fdopen(read, "rb", 0)


def rest(scene: FaultScene) -> None:
    """Everything as it was: what an experiment leaves to the next."""
    scene.stop()
    scene.feishu.set("open")
    scene.platform.forget_faults()
    scene.model.control("mode", {"mode": "echo", "delay_s": 0.0})
    scene.execute(
        "set search_path = feishu_bot;"
        " delete from jobs where status in ('failed', 'waiting', 'running')"
    )
