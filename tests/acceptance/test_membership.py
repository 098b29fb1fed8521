"""Who is in which group, from the platform's events and lists to the tables, by real processes."""

from __future__ import annotations

import pytest
import requests

from lab.doubles.processes import eventually, free_port
from tests.acceptance.conftest import World


@pytest.fixture(scope="module")
def metrics_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def bot_options(metrics_port: int) -> dict[str, str]:
    return {"METRICS_PORT": str(metrics_port)}


@pytest.fixture
def world(world: World) -> World:
    return world.in_a_new_group(told=True)


def members(world: World) -> set[str]:
    """The names of who is known to be in the world's group."""
    rows = world.rows(
        "select open_id from chat_members where chat_id = %s and left_at is null"
        " and seen_at > now() - membership_lasts()",
        world.group,
    )
    names = {open_id: name for name, open_id in world.people.items()}
    return {names[row["open_id"]] for row in rows}


def people(world: World) -> set[str]:
    """The names of everybody but the bot."""
    return set(world.people) - {world.bot_name}


def rejoin(world: World, who: str) -> None:
    for step, inside in (("/leave", False), ("/join", True)):
        world.platform.post(step, chat_id=world.group, open_id=world.people[who])
        eventually(lambda now=inside: (who in members(world)) is now, what=step)


def test_a_new_group_is_known_with_its_members_without_a_message(world: World) -> None:
    eventually(lambda: members(world) == people(world), what="the members")

    [chat] = world.rows(
        "select chat_type, name, gone_at from chats where chat_id = %s", world.group
    )
    assert chat == {"chat_type": "group", "name": "Test", "gone_at": None}


def test_who_joins_and_leaves_is_known_by_the_events_alone(world: World) -> None:
    eventually(lambda: members(world) == people(world), what="the members")
    path = f"/open-apis/im/v1/chats/{world.group}/members"
    asked = len(world.platform.calls(path))
    bob = world.people["Bob"]

    world.platform.post("/leave", chat_id=world.group, open_id=bob)
    eventually(lambda: "Bob" not in members(world), what="Bob is out")
    world.platform.post("/join", chat_id=world.group, open_id=bob)
    eventually(lambda: "Bob" in members(world), what="Bob is in")

    [row] = world.rows(
        "select joined_at is not null as known from chat_members where open_id = %s"
        " and chat_id = %s",
        bob,
        world.group,
    )
    assert row["known"]
    assert len(world.platform.calls(path)) == asked


def test_a_group_without_the_bot_has_no_members(world: World) -> None:
    eventually(lambda: members(world) == people(world), what="the members")

    world.platform.post("/leave", chat_id=world.group, open_id=world.bot_id)

    eventually(lambda: not members(world), what="nobody is in")


def test_an_answer_waits_for_no_list_of_members(world: World) -> None:
    path = "/open-apis/im/v1/chats"
    for _ in range(2):
        world.platform.post("/faults", path_prefix=path, delay_s=20, times=0)
    try:
        fresh = world.in_a_new_group()
        question, _ = fresh.ask("Alice", "hello")
        assert fresh.settled(question)
        assert members(fresh) == set()
    finally:
        world.platform.forget_faults()


def test_p2p_chats_are_known_as_such(world: World) -> None:
    chats = {chat["name"]: chat for chat in world.platform.state()["chats"]}
    chat_id = chats["Alice"]["chat_id"]
    world.ask("Alice", "hello", chat=chat_id)

    def known() -> bool:
        return world.rows("select chat_type from chats where chat_id = %s", chat_id) == [
            {"chat_type": "p2p"}
        ]

    eventually(known, what="the p2p chat is known")


def test_the_metrics_count_what_was_asked(world: World, metrics_port: int) -> None:
    eventually(lambda: members(world) == people(world), what="the members")

    def text() -> str:
        return requests.get(f"http://127.0.0.1:{metrics_port}/metrics", timeout=10).text

    counted = 'bot_members_refresh_total{outcome="done"}'
    eventually(lambda: counted in text(), what="it is counted")
