"""The way out while the memory is away: kept before it is sent, sent once, written once, unaltered.

A worker is killed at each step of an answer that is given without the memory, and at each step of
writing it afterwards. Other workers go on from the queue alone, and from the memory once it is
back. Each worker's model would say something else: what differs was asked for twice.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any, cast

import psycopg
import pytest
from psycopg.rows import dict_row

from bot.queue.inbox import Inbox
from lab.doubles.sentinel import tables_with
from tests.contract.test_way_out import resume
from tests.support.mortal_worker import Cradle, Life, Worker, cradle, living
from tests.support.origins import Scene
from tests.support.postgres import Server
from tests.support.whole_turns import Town

pytestmark = pytest.mark.anyio

WHILE_AWAY = ("unkept", "kept", "before", "arriving", "after", "marked")
WHEN_BACK = ("unwritten", "written")
_ROWS = """
    select m.role, m.content, m.status, m.message_id, t.state
    from agent_messages m join agent_turns t on t.id = m.turn_id
    where m.turn_id = %s order by m.id
"""


@dataclass
class House:
    """What all cases share: the platform, the queue's database and where workers are born."""

    url: str
    town: Town
    database: psycopg.Connection[dict[str, Any]]
    inbox: Inbox
    cradle: Cradle
    worker: Worker

    def life(self, says: str, memory: str, point: str = "") -> Life:
        config = self.town.config
        settings = {
            "feishu_app_id": config.app_id,
            "feishu_app_secret": config.app_secret,
            "feishu_domain": self.town.url,
            "supabase_url": "http://memory",
            "stream_replies": False,
            "followup_window_seconds": 0,
        }
        return Life(self.url, settings, says, point=point, memory=memory)  # type: ignore[arg-type]

    def tables_with(self, word: str) -> set[str]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            return tables_with(connection, word)

    async def killed(self, life: Life) -> None:
        """Lives it in a process of its own, up to its death."""
        assert await asyncio.to_thread(self.cradle.live, life) == signal.SIGKILL

    async def goes_on(self, scene: Scene, life: Life) -> None:
        """A worker that lives takes over, with all that waits."""
        async with living(life) as worker:
            await resume(replace(scene, worker=worker))


@pytest.fixture(scope="module")
async def house(postgres_server: Server, migrated_template: str) -> AsyncIterator[House]:
    town = Town()
    with (
        postgres_server.fresh_database(template=migrated_template) as url,
        cradle() as born,
        psycopg.connect(url, autocommit=True, row_factory=dict_row) as database,
    ):
        database.execute("set search_path = public, feishu_bot")
        inbox, nobody = Inbox(url, size=1), cast(Worker, None)
        house = House(url, town, database, inbox, born, nobody)
        async with living(house.life("nothing", "away")) as house.worker:
            yield house
        inbox.close()
    town.close()


@pytest.mark.parametrize("taken_back", [False, True], ids=["stays", "taken back"])
@pytest.mark.parametrize("point", [*WHILE_AWAY, *WHEN_BACK])
async def test_an_answer_without_the_memory_is_sent_and_written_once(
    house: House, point: str, taken_back: bool
) -> None:
    scene = Scene(house.town, house.worker, house.database, house.inbox)
    word = f"zarf{point}{taken_back}".lower()
    question = scene.say(f"@{house.town.platform.world.bot.name} the code is {word}")
    if point in WHILE_AWAY:
        await house.killed(house.life(f"first {word}", "away", point))
        if taken_back:
            _take_back(scene, question)
        await house.goes_on(scene, house.life(f"second {word}", "away"))
    else:
        await house.goes_on(scene, house.life(f"first {word}", "away"))
        if taken_back:
            _take_back(scene, question)
            await house.goes_on(scene, house.life("nothing", "away"))
        scene.run("update feishu_bot.jobs set scheduled_at = null")
        await house.killed(house.life("nothing", "there", point))
    if taken_back:
        assert house.tables_with(word) == set()
    await house.goes_on(scene, house.life("third", "there"))

    shown = {one: text for one, text in scene.shown().items() if word in text}
    rows = scene.run(_ROWS, question)
    assert not scene.run("select 1 from feishu_bot.jobs")
    if taken_back:
        assert (shown, rows) == ({}, [])
        assert house.tables_with(word) == set()
        return
    asked, answered = rows
    assert (asked["role"], asked["message_id"]) == ("user", question)
    assert shown == {answered["message_id"]: answered["content"]}
    assert (answered["status"], answered["state"]) == ("sent", "sent")
    said_by = "second" if point == "unkept" else "first"
    assert answered["content"].endswith(f"{said_by} {word}")


def _take_back(scene: Scene, message_id: str) -> None:
    scene.town.platform.actors.recall(message_id, scene.alice)
    scene.take()
