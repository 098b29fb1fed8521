"""Experiments on a Supabase that is away, slow, or has its own trouble."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from urllib.parse import parse_qs, unquote, urlsplit

from lab.doubles import lite
from lab.doubles.faulty_api import ApiFault, FaultyApi, faulty_api
from lab.doubles.processes import eventually
from lab.faults.counting import Count, CountedQuestion
from lab.faults.scene import FaultScene
from memory import migrations

_ASKED_FOR_S = 4.0


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
def scene_of_supabase(scene: FaultScene, count: Count) -> Iterator[FaultyApi | None]:
    """The bot with its memory in Supabase, whose API can fail; None where there is none."""
    if why := lite.missing():
        count.notes.append(f"not run: {why}")
        yield None
        return
    scene.execute("drop database if exists memory with (force)")
    scene.execute("create database memory")
    scene.memory_url = scene.database_url.replace("/postgres?", "/memory?")
    migrations.apply(scene.memory_url)
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
    """Each kind for some seconds while people ask; what they said is written when it is over."""
    with scene_of_supabase(scene, count) as api:
        if api is None:
            return
        asked = [scene.ask(f"hello {number}", chat) for number, chat in enumerate(scene.chats)]
        scene.count(Count("before", scene.bot_id), asked)
        for name in list(FAULTS)[:rounds]:
            asked += _during(scene, count, api, name)
            count.rounds += 1
        eventually(lambda: unstored(scene) == 0, what="all of it is written")
        scene.count(count, asked)


def _during(scene: FaultScene, count: Count, api: FaultyApi, name: str) -> list[CountedQuestion]:
    """What was asked while the fault was there, half of it before anybody knew of the fault."""
    asked: list[CountedQuestion] = []
    api.fault = FAULTS[name]
    with scene.asking(asked, per_s=3, text=name):
        time.sleep(_ASKED_FOR_S)
    meanwhile = Count(name, scene.bot_id)
    scene.count(meanwhile, asked)
    api.fault = None
    half = median(meanwhile.silences_s) if meanwhile.silences_s else float("nan")
    count.notes.append(f"{name}: p50 {half:.2f} s")
    eventually(lambda: unstored(scene) == 0, what="all of it is written")
    return asked


def unstored(scene: FaultScene) -> int:
    return int(scene.rows("select count(*) from feishu_bot.jobs where task = 'feishu.store'")[0][0])
