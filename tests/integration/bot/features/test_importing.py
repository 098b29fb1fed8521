"""Imports from Feishu's list to the tables: over the real queue, killed, refused, repeated."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bot.features.history_import.feature import queue_idle_imports
from bot.queue.consumer import Lease
from bot.queue.jobs import EVENT_TASK, Job
from bot.queue.table import JobTable
from bot.worker import handle_event
from memory.backends.postgres import connection_pool
from sandbox.world.actors import Speech
from sandbox.world.scopes import MEMBERS
from sandbox.world.switches import turn as turn_switches
from tests.support.importing import (
    ImportScene,
    answering,
    expired,
    import_scene,
    shuffled,
    sometimes,
    twice,
)
from tests.support.whole_turns import stage

pytestmark = pytest.mark.anyio


@pytest.fixture
async def scene(database_url: str) -> AsyncIterator[ImportScene]:
    async with stage(database_url) as here, connection_pool(database_url, size=2) as pool:
        yield import_scene(here, JobTable(pool), database_url)


def kept(scene: ImportScene) -> dict[str, tuple[Any, ...]]:
    rows = scene.stage.database.execute(
        "select message_id, root_id, author_id, author_name, content from public.imported_messages"
    )
    return {row[0]: row[1:] for row in rows}


def row(scene: ImportScene, columns: str = "state, error") -> Any:
    return scene.stage.database.execute(f"select {columns} from public.chat_imports").fetchone()


async def imported(scene: ImportScene, *, whole: bool = False) -> dict[str, list[tuple[Any, ...]]]:
    """What an import leaves that nothing disturbs; it is taken away again."""
    await scene.begin(whole=whole)
    await scene.work()
    dump = scene.dump()
    scene.clear()
    return dump


async def test_everything_that_people_said_is_kept_once(scene: ImportScene) -> None:
    await scene.begin(whole=True)
    await scene.work()

    found, past = kept(scene), {one.message_id: one for one in scene.past.messages}
    texts = {key: one for key, one in past.items() if one.msg_type == "text" and not one.deleted}
    assert texts.keys() <= found.keys()
    assert not [key for key, one in past.items() if one.deleted and key in found]
    names = {one.open_id: one.name for one in scene.past.people}
    for key, one in texts.items():
        root, author, name, _ = found[key]
        in_thread = one.root_id or one.message_id
        assert root == (in_thread if one.thread_id else None)
        if author.startswith("ou_"):
            assert (author, name) == (one.sender, names[one.sender])
    kinds = {past[key].msg_type for key in found}
    assert {"text", "post", "interactive", "file", "merge_forward"} <= kinds
    assert not {"system", "image", "sticker"} & kinds
    state, report = row(scene, "state, report")
    assert state == "done"
    assert report["deleted"] == sum(one.deleted for one in past.values())
    assert report["system"] == sum(one.msg_type == "system" for one in past.values())


async def test_a_second_import_changes_nothing(scene: ImportScene) -> None:
    await scene.begin()
    await scene.work()
    before = scene.dump()
    await scene.begin()
    await scene.work()
    after = scene.dump()
    assert {**after, "imports": []} == {**before, "imports": []}


async def test_a_worker_that_is_killed_at_any_call_leaves_what_an_undisturbed_one_leaves(
    scene: ImportScene,
) -> None:
    wanted = await imported(scene)
    rng, deaths = random.Random(33), 0
    while deaths < 20:
        await scene.begin()
        while await scene.work_until_death(rng.randrange(1, 120), after=rng.random() < 0.5):
            deaths += 1
            await queue_idle_imports(scene.services, scene.table)
        assert scene.dump() == wanted
        scene.clear()


async def test_pages_that_come_twice_in_another_order_or_not_at_once_change_nothing(
    scene: ImportScene,
) -> None:
    wanted = await imported(scene)
    rng = random.Random(33)
    limited = {"code": 99991400, "msg": "request trigger frequency limit"}
    twists = {
        "twice": twice,
        "shuffled": shuffled(rng),
        "429": sometimes(rng, 0.3, answering(429, limited)),
        "502": sometimes(rng, 0.3, answering(502, b"<html>bad gateway</html>")),
    }
    for name, twist in twists.items():
        scene.twist = twist
        await scene.begin()
        await scene.work()
        assert scene.dump() == wanted, name
        scene.clear()


async def test_page_tokens_that_expire_cost_pages_and_no_message(scene: ImportScene) -> None:
    wanted = await imported(scene)
    scene.twist = sometimes(random.Random(33), 0.4, expired)
    await scene.begin()
    await scene.work()
    assert {**scene.dump(), "imports": []} == {**wanted, "imports": []}
    assert row(scene) == ("done", "")


async def test_a_message_that_is_taken_back_meanwhile_is_gone_at_the_end(
    scene: ImportScene,
) -> None:
    platform = scene.stage.town.platform
    texts = [one for one in scene.past.messages if one.msg_type == "text" and not one.deleted]
    read, unread = texts[0], texts[-1]
    await scene.begin(whole=True)
    await scene.work(jobs=3)
    assert read.message_id in kept(scene)
    assert unread.message_id not in kept(scene)
    for one in (read, unread):
        platform.actors.recall(one.message_id, one.sender)
    for event in scene.stage.town.events:
        if event["header"]["event_type"] == "im.message.recalled_v1":
            await recalled(scene, event)
    await scene.work()
    assert not {read.message_id, unread.message_id} & kept(scene).keys()
    left = scene.dump()
    scene.clear()
    assert {**await imported(scene, whole=True), "imports": []} == {**left, "imports": []}


async def recalled(scene: ImportScene, event: dict[str, Any]) -> None:
    job = Job(1, EVENT_TASK, {"payload": event, "received_ms": 1}, None, 1)
    await handle_event(scene.services, Lease(job, 1, lambda _: None))


@pytest.mark.parametrize(
    ("switch", "error"),
    [
        ({"secret_chats": True}, "secret_mode"),
        ({"im:message.group_msg": False}, "no_scope"),
    ],
)
async def test_what_feishu_does_not_show_is_said_and_not_guessed(
    scene: ImportScene, switch: dict[str, bool], error: str
) -> None:
    platform = scene.stage.town.platform
    turn(platform, switch)
    await scene.begin()
    await scene.work()
    assert row(scene) == ("failed", error)
    assert kept(scene) == {}
    [card] = scene.cards()
    assert ("secret mode" if error == "secret_mode" else "im:message.group_msg") in card
    turn(platform, {name: not on for name, on in switch.items()})
    await scene.store.resume(scene.chat, None)
    await queue_idle_imports(scene.services, scene.table)
    await scene.work()
    assert row(scene) == ("done", "")


async def test_where_feishu_does_not_say_who_is_in_the_group_the_report_says_so(
    scene: ImportScene,
) -> None:
    platform = scene.stage.town.platform
    readers = [one for one in MEMBERS if one in platform.world.console.granted]
    turn(platform, dict.fromkeys(readers, False))
    await scene.begin()
    await scene.work()
    state, report = row(scene, "state, report")
    assert (state, report["members_unknown"]) == ("done", 1)
    [card] = scene.cards()
    assert "I can't use it yet" in card
    assert "/settings history shown" in card
    turn(platform, dict.fromkeys(readers, True))
    scene.clear()
    assert "members_unknown" not in (await imported(scene))["imports"][0][-2]


async def test_threads_from_before_the_bot_are_counted_where_they_are_hidden(
    scene: ImportScene,
) -> None:
    turn(scene.stage.town.platform, {"history_hidden": True})
    await scene.begin(whole=True)
    await scene.work()
    state, report = row(scene, "state, report")
    threads = {one.thread_id for one in scene.past.messages if one.thread_id}
    assert (state, report["old_threads"]) == ("done", len(threads))
    [card] = scene.cards()
    assert f"{len(threads)} threads from before I joined" in card


async def test_pages_that_lead_nowhere_end_with_one_clear_error(scene: ImportScene) -> None:
    scene.twist = answering(200, {"code": 0, "data": {"has_more": True, "items": []}})
    await scene.begin()
    await scene.work()
    assert row(scene) == ("failed", "unintelligible")
    assert len(scene.cards()) == 1


async def test_the_group_is_told_once_who_imported_what(scene: ImportScene) -> None:
    ann = scene.past.people[0]
    await scene.begin(started_by=ann.open_id)
    await scene.work()
    [count] = scene.column("select messages from public.chat_imports")
    [card] = scene.cards()
    assert f"{count} messages, asked for by {ann.name}" in card
    assert "use the button in `/import`" in card
    await scene.table.queue_import(scene.column("select id from public.chat_imports")[0], {})
    await scene.work()
    assert len(scene.cards()) == 1


@pytest.mark.parametrize("after", [False, True])
async def test_the_report_is_sent_once_wherever_the_worker_dies(
    scene: ImportScene, *, after: bool
) -> None:
    await scene.begin()
    while row(scene, "phase") != ("finishing",):
        await scene.work(jobs=1)
    for dies_at in range(1, 20):
        await scene.work_until_death(dies_at, after=after)
    await scene.work()
    assert len(scene.cards()) == 1


async def test_what_is_removed_is_gone_with_a_receipt(scene: ImportScene) -> None:
    await scene.begin()
    await scene.work()
    [count] = scene.column("select messages from public.chat_imports")
    await scene.store.remove(scene.chat, None)
    await queue_idle_imports(scene.services, scene.table)
    for dies_at in range(1, 25):
        await scene.work_until_death(dies_at, after=dies_at % 2 == 0)
    await scene.work()
    assert {name: rows for name, rows in scene.dump().items() if rows} == {}
    assert scene.column("select count(*) from feishu_bot.jobs") == [0]
    receipts = [card for card in scene.cards() if "has been removed" in card]
    assert len(receipts) == 1
    assert f"{count} messages" in receipts[0]


async def test_a_quiet_removal_leaves_no_word(scene: ImportScene) -> None:
    await scene.begin()
    await scene.work()
    said = len(scene.cards())
    await scene.store.remove(scene.chat, None)
    [number] = scene.column("select id from public.chat_imports")
    await scene.table.queue_import(number, {"quiet": True})
    await queue_idle_imports(scene.services, scene.table)
    await scene.work()
    assert {name: rows for name, rows in scene.dump().items() if rows} == {}
    assert len(scene.cards()) == said


async def test_a_paused_import_stops_and_goes_on_where_it_was(scene: ImportScene) -> None:
    wanted = await imported(scene)
    await scene.begin()
    await scene.work(jobs=4)
    await scene.store.pause(scene.chat, None)
    await scene.work()
    [pages] = scene.column("select pages from public.chat_imports")
    assert pages <= 5
    assert await queue_idle_imports(scene.services, scene.table) == 0
    await scene.store.resume(scene.chat, None)
    assert await queue_idle_imports(scene.services, scene.table) == 1
    await scene.work()
    assert scene.dump() == wanted


async def test_where_memory_is_kept_per_person_nothing_is_imported(database_url: str) -> None:
    async with (
        stage(database_url, memory_sharing="person") as here,
        connection_pool(database_url, size=2) as pool,
    ):
        scene = import_scene(here, JobTable(pool), database_url, messages=500)
        await scene.begin()
        await scene.work()
        assert row(scene) == ("failed", "not_offered")
        assert kept(scene) == {}


async def test_an_error_of_ours_ends_the_import_and_does_not_go_round(scene: ImportScene) -> None:
    feishu: Any = scene.services.feishu

    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a defect")

    feishu.history_page = broken
    await scene.begin()
    await scene.work()
    assert row(scene) == ("failed", "defect")


async def test_a_chat_with_one_person_is_imported_without_asking_who_is_in_it(
    scene: ImportScene,
) -> None:
    platform = scene.stage.town.platform
    alice = next(one for one in platform.world.people.values() if one.name == "Alice")
    chat = platform.world.p2p_chat(alice.open_id)
    for text in ("the key is under the mat", "and the alarm is off"):
        platform.actors.say(Speech(alice.open_id, chat.chat_id, text))
    where = (scene.chat[0], chat.chat_id)
    until_ms = platform.world.now_ms() + 60_000
    found = await scene.store.start(where, "p2p", context=None, since_ms=None, until_ms=until_ms)
    await scene.table.queue_import(found.id, {})
    await scene.work()
    assert {one[-1] for one in kept(scene).values()} == {
        "the key is under the mat",
        "and the alarm is off",
    }
    assert row(scene) == ("done", "")
    assert not [one for one in scene.told if one.path.endswith("/members")]


def turn(platform: Any, wanted: dict[str, bool]) -> None:
    turn_switches(platform.world.switches, platform.world.console.granted, wanted)
