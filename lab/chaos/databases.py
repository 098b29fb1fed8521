"""Experiments: Postgres and Supabase go away and come back. How soon does the bot work again?

Times count from the moment when the server takes connections again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from lab.chaos.counting import Count, CountedQuestion
from lab.chaos.door import Mode, door_to
from lab.chaos.scene import FaultScene
from lab.doubles import lite
from lab.doubles.faulty_api import ApiFault, FaultyApi, faulty_api
from lab.doubles.processes import eventually
from memory import migrations
from memory.backends import embedded_host

_CRASHES = 5
_EVERY_S = 6.0
_UP_S = 3.0  # at least, on a machine on which a restart takes most of the time
_PER_S = 6.0
_BEFORE_S, _AFTER_S = 5.0, 20.0
_FROZEN_S = 10.0
_REFUSED_S = 5.0
_ASKED_FOR_S = 4.0


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
        away: list[float] = []
        with scene.asking(asked, per_s=_PER_S, text=f"crash {number}"):
            time.sleep(_BEFORE_S)
            for _ in range(_CRASHES):
                began = time.time()
                back.append(scene.restart_postgres(away_s=0.0))
                away.append(back[-1] - began)
                time.sleep(max(_UP_S, _EVERY_S - away[-1]))
            time.sleep(_AFTER_S)
        scene.count(count, asked)
        found = recovery(scene, asked, back)
        count.notes.append(f"away for up to {max(away):.1f} s, {found}")
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
    with door_to(Path(folder) / embedded_host.SOCKET) as door:
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


def _said(status: int, *, of_people: bool = False, **body: object) -> ApiFault:
    return ApiFault(status, json.dumps(body), of_people=of_people)


FAULTS: Mapping[str, ApiFault] = {
    "401": _said(401, message="Invalid API key"),
    "401 for people": _said(401, of_people=True, code="PGRST301", message="wrong key"),
    "429": _said(429, message="API rate limit exceeded"),
    "500": _said(500, code=500, message="An unexpected error occurred"),
    "500 of Postgres": _said(500, code="XX000", message="cache lookup failed"),
    "503 of a gateway": ApiFault(503, "<html></html>", content_type="text/html"),
    "404 of a gateway": ApiFault(404, "<html></html>", content_type="text/html"),
    "200 without JSON": ApiFault(200, "<html></html>", content_type="text/html"),
    "cut off": ApiFault(200, '{"state": "op', cut=True),
    "slow": ApiFault(504, "", delay_s=20.0),
}


@contextmanager
def _scene_of_supabase(scene: FaultScene, count: Count) -> Iterator[FaultyApi | None]:
    """Runs the bot with its memory in Supabase, whose API can fail; None if that is missing."""
    if why := lite.missing():
        count.notes.append(f"not run: {why}")
        yield None
        return
    scene.execute("drop database if exists memory with (force)")
    scene.execute("create database memory")
    scene.memory_url = scene.database_url.replace("/postgres?", "/memory?")
    migrations.apply_migrations(scene.memory_url)
    socket_folder = unquote(parse_qs(urlsplit(scene.memory_url).query)["host"][0])
    with (
        lite.run(scene.memory_url, socket_folder=socket_folder) as server,
        faulty_api(server.port) as api,
    ):
        scene.start(
            SUPABASE_URL=api.url,
            SUPABASE_PUBLISHABLE_KEY=server.publishable_key,
            SUPABASE_SECRET_KEY=server.secret_key,
            SUPABASE_JWT_SECRET=server.jwt_secret,
        )
        yield api
        scene.stop()
    scene.memory_url = ""


def supabase(scene: FaultScene, count: Count, rounds: int) -> None:
    """Supabase fails in each way while people ask; afterwards the memory is complete."""
    with _scene_of_supabase(scene, count) as api:
        if api is None:
            return
        asked = [scene.ask(f"hello {number}", chat) for number, chat in enumerate(scene.chats)]
        scene.count(Count("before", scene.bot_id), asked)
        for name in list(FAULTS)[:rounds]:
            asked += _during(scene, count, api, name)
            count.rounds += 1
        eventually(lambda: _unstored(scene) == 0, what="all of it is written")
        scene.count(count, asked)


def _during(scene: FaultScene, count: Count, api: FaultyApi, name: str) -> list[CountedQuestion]:
    """Returns what was asked during the fault."""
    asked: list[CountedQuestion] = []
    api.fault = FAULTS[name]
    with scene.asking(asked, per_s=3, text=name):
        time.sleep(_ASKED_FOR_S)
    meanwhile = Count(name, scene.bot_id)
    scene.count(meanwhile, asked)
    api.fault = None
    half = median(meanwhile.silences_s) if meanwhile.silences_s else float("nan")
    count.notes.append(f"{name}: p50 {half:.2f} s")
    eventually(lambda: _unstored(scene) == 0, what="all of it is written")
    return asked


def _unstored(scene: FaultScene) -> int:
    return int(scene.rows("select count(*) from feishu_bot.jobs where task = 'feishu.store'")[0][0])
