"""The way out, whatever a card comes from: stored before it is sent, sent once, exactly that.

A worker dies around the call that sends the card (killed, in a process of its own, where another
goes on at once), or its connection does. Another worker goes on from the database alone: at once,
while Feishu recognises a repeated uuid; or an hour later, when it has forgotten it and is asked
what stands in the chat, which it tells or not; or nobody does, for the job is lost.
`WAY_OUT_MATRIX=file` writes what came of each.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
import structlog
from psycopg.rows import dict_row

from bot.answering.unfinished_turns import finish_left_cards, send_pending_replies
from bot.features.timers import queue_due
from bot.outbox.retractions import withdraw_cards
from bot.queue.inbox import Inbox
from sandbox.faults import PreparedFault
from tests.support.mortal_worker import Cradle, Died, Fate, Life, Worker, collapse, cradle, living
from tests.support.origins import ORIGINS, Origin, Scene
from tests.support.postgres import Server
from tests.support.whole_turns import Town

pytestmark = pytest.mark.anyio

DEATHS = ("before", "arriving", "after", "marked")
SENT = frozenset({"arriving", "after", "marked", "broken"})  # Feishu has taken the card
CELLS = [
    *((point, "at once") for point in (*DEATHS, "broken", "refused")),
    *((point, says) for says in ("tells", "silent")
      for point in ("before", "after", "broken", "refused")),
    *((point, "lost") for point in ("before", "after", "marked")),
]  # fmt: skip

_HOUR = (
    """update feishu_bot.workers
    set last_heartbeat = last_heartbeat - interval '61 minutes'""",
    """update agent_turns set updated_at = updated_at - interval '61 minutes',
    created_at = created_at - interval '61 minutes'""",
    """update feishu_bot.jobs set args = args
    || jsonb_build_object('received_ms', (args ->> 'received_ms')::bigint - 3660000)
    || case when args ? 'maybe_sent_ms' then
         jsonb_build_object('maybe_sent_ms', (args ->> 'maybe_sent_ms')::bigint - 3660000)
       else '{}' end""",
)
_FORGOTTEN = (
    "delete from feishu_bot.jobs",
    "update agent_turns set state = 'cancelled' where state in ('open', 'pending')",
    "update agent_cards set streaming = false",
    "update agent_timers set state = 'done'",
)
_ROWS = """
    select m.status, m.content, m.message_id, t.state
    from agent_messages m join agent_turns t on t.id = m.turn_id
    where m.role = 'assistant' and m.id > %s order by m.id
"""
_JOBS = "select status, args ->> 'failed_with' as why from feishu_bot.jobs"


Matrix = dict[str, dict[str, list[str]]]


@dataclass
class House:
    """What all cells share: the database, the platform, and where workers are born."""

    database_url: str
    town: Town
    worker: Worker
    database: psycopg.Connection
    inbox: Inbox
    cradle: Cradle

    async def end(self, life: Life, *, kill: bool) -> None:
        """Lives it, in a process of its own where it is to be killed."""
        if kill:
            assert await asyncio.to_thread(self.cradle.live, life) == signal.SIGKILL
            return
        fate = Fate(life, collapse)
        with contextlib.suppress(Died):
            async with living(life) as worker:
                fate.befall(worker)
                await worker.work()
        assert fate.is_dead == (life.point in DEATHS)

    def life(self, origin: Origin, **more: Any) -> Life:
        config = self.town.config
        settings = {
            "feishu_app_id": config.app_id,
            "feishu_app_secret": config.app_secret,
            "feishu_domain": self.town.url,
            "stream_replies": origin.streams,
            "proactive_hours": "0-24",
            "followup_window_seconds": 0,
        }
        return Life(self.database_url, settings, origin.says, streams=origin.streams, **more)


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)


@pytest.fixture(scope="module")
def matrix() -> Iterator[Matrix]:
    """What came of each, by origin and by what Feishu says; written as Markdown at the end."""
    seen: Matrix = defaultdict(lambda: defaultdict(list))
    yield seen
    if path := os.environ.get("WAY_OUT_MATRIX"):
        says = list(dict.fromkeys(says for _, says in CELLS))
        rows = [[name, *(" ".join(row[one]) for one in says)] for name, row in seen.items()]
        table = [["origin", *says], ["---"] * (len(says) + 1), *rows]
        lines = (f"| {' | '.join(row)} |\n" for row in table)
        Path(path).write_text("".join(lines), encoding="utf-8")


@pytest.fixture(scope="module")
def migrated(postgres_server: Server, migrated_template: str) -> Iterator[str]:
    with postgres_server.fresh_database(template=migrated_template) as url:
        yield url


@pytest.fixture(scope="module")
async def house(migrated: str) -> AsyncIterator[House]:
    town, inbox = Town(), Inbox(migrated, size=1)
    with (
        cradle() as born,
        psycopg.connect(migrated, autocommit=True, row_factory=dict_row) as database,
    ):
        database.execute("set search_path = public, feishu_bot")
        worker: Any = None
        house = House(migrated, town, worker, database, inbox, born)
        async with living(house.life(ORIGINS["message"])) as house.worker:
            yield house
    inbox.close()
    town.close()


@dataclass(frozen=True)
class Outcome:
    """What people see and what is stored. `arrived`: cards before the first worker ended."""

    arrived: int
    shown: dict[str, str]
    stored: list[dict[str, Any]]
    jobs: list[dict[str, Any]]

    @property
    def is_sent_as_stored(self) -> bool:
        """Every card is stored with its text, and nothing else is."""
        stored = {row["message_id"]: row["content"] for row in self.stored}
        return stored == self.shown and self.states == {"sent"}

    @property
    def states(self) -> set[str]:
        """Of the cards and of their turns."""
        return {row[key] for row in self.stored for key in ("status", "state")}

    def mark(self) -> str:
        """In the table: how many cards; ? where somebody has to look."""
        return f"{len(self.shown)}{'?' if {'pending', 'failed'} & self.states else ''}"


async def play(house: House, origin: Origin, point: str, says: str) -> Outcome:
    scene = Scene(house.town, house.worker, house.database, house.inbox)
    for statement in _FORGOTTEN:
        scene.run(statement)
    house.worker.model.life = house.life(origin)
    await origin.prepare(scene)
    before, [last] = set(scene.shown()), scene.run("select max(id) as id from agent_messages")
    life = house.life(origin, point=point, sends=origin.sends, fails=house.worker.model.life.fails)
    await house.end(life, kill=point in DEATHS and says == "at once")
    arrived = len(set(scene.shown()) - before)
    if says != "at once":
        hour(scene)
    if says == "lost":
        await lose(scene)
    if says == "silent":
        house.town.platform.switchboard.add(
            PreparedFault("/open-apis/im/v1/messages", method="GET", code=99991672)
        )
        house.town.platform.switchboard.add(
            PreparedFault("/open-apis/drive/v1/files/", path_suffix="/batch_query", code=99991672)
        )
    await resume(scene)
    house.town.platform.switchboard.clear()
    shown = {one: text for one, text in scene.shown().items() if one not in before}
    return Outcome(arrived, shown, scene.run(_ROWS, last["id"] or 0), scene.run(_JOBS))


def hour(scene: Scene) -> None:
    """An hour passes in which nobody works, and Feishu forgets the uuids."""
    for statement in _HOUR:
        scene.run(statement)
    scene.town.platform.messenger._by_uuid.clear()


async def lose(scene: Scene) -> None:
    """The job is gone; the sweepers find what it left."""
    scene.run("delete from feishu_bot.jobs")
    services, table = scene.worker.services, scene.worker.table
    await send_pending_replies(services, table, older_s=0)
    await finish_left_cards(services, older_s=0, untouched_s=0)
    await withdraw_cards(services)
    scene.run("update agent_timers set queued_until = null")
    await queue_due(services, table)


async def resume(scene: Scene) -> None:
    """Another worker takes over what a dead one had, and tries as often as need be."""
    for gone in scene.run(
        "select distinct worker_id from feishu_bot.jobs where status = 'running'"
    ):
        while not await scene.worker.table.take_over([gone["worker_id"]]):  # noqa: ASYNC110
            await asyncio.sleep(0.002)  # Postgres has not seen it die yet
    for _ in range(3):
        await scene.settle()


@pytest.mark.parametrize(("point", "says"), CELLS)
@pytest.mark.parametrize("name", ORIGINS)
async def test_a_card_is_sent_once_and_as_it_is_stored(
    house: House, matrix: Matrix, name: str, point: str, says: str
) -> None:
    origin = ORIGINS[name]
    found = await play(house, origin, point, says)
    matrix[name][says].append(found.mark())

    if origin.ephemeral:
        require_shown_to_one(name, point, says, found)
    elif says == "silent":
        require_doubt(name, point, found)
    else:
        assert len(found.shown) == 1
        assert found.is_sent_as_stored
        assert {job["status"] for job in found.jobs} == ({"failed"} if stays(name, says) else set())


def stays(name: str, says: str) -> bool:
    """Whether the job stays for operators: the excuse names it."""
    return name == "excuse" and says != "lost"


def require_doubt(name: str, point: str, found: Outcome) -> None:
    """Nothing is sent again, and somebody is told to look, or the job goes on trying."""
    new = len(found.shown) - found.arrived
    assert new == 0 or (name == "message, first seen" and new == 1 and point == "before")
    assert len(found.shown) <= 1
    assert found.states <= {"pending", "failed"}
    assert found.jobs or found.states == {"failed"}


def require_shown_to_one(name: str, point: str, says: str, found: Outcome) -> None:
    """Such a card has no uuid, and no list of messages shows it: who pressed sees it twice rather
    than never, and an offer, which nobody waits for, never rather than twice."""
    assert not found.jobs
    if name == "offer":
        assert len(found.shown) == found.arrived
        return
    assert len(found.shown) == (2 if point in SENT - {"marked"} else 1)
    shown = sorted(found.shown.values(), key=len)
    assert all(text.endswith(shown[0]) for text in shown)  # one that comes late says so
    kept = {row["content"] for row in found.stored}  # what is kept is shown once, and not kept
    assert kept == (set() if name == "own memory" else {shown[-1]})
