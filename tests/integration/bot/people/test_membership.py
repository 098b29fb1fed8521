"""Who is in which group, learned over real HTTP from the stand-in platform into a real database."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import psycopg
import pytest
from structlog.testing import capture_logs

from bot.features.registry import HOOKS
from bot.feishu.caller import RetryPolicy
from bot.feishu.client import FeishuClient
from bot.feishu.errors import Denials
from bot.mentions import Person
from bot.operations.maintenance import tend_members
from bot.people.membership import ChatKeeper, Membership
from bot.people.people_directory import People
from bot.queue.consumer import Lease
from bot.services import Services
from bot.worker import handle_event
from memory.backends.postgres import PostgresRpc
from memory.errors import StoreUnavailable
from memory.tables.directory import ChatStore
from sandbox.app import create_sandbox
from sandbox.config import SandboxConfig
from sandbox.faults import PreparedFault
from sandbox.server import SandboxServer
from sandbox.world.switches import turn

pytestmark = pytest.mark.anyio

TENANT = "sandbox00tenant1"
MEMO = Person("ou_memo", "Memo", is_bot=True)


WITHOUT_MEMBERS = {"im:chat:read": True, "im:chat:readonly": False, "im:chat.members:read": False}


class Town:
    """The stand-in platform over HTTP; what it pushes is kept here instead of being sent."""

    def __init__(self) -> None:
        self.config = SandboxConfig(webhook_url="http://app/event", rate_limits=False)
        app = create_sandbox(self.config, inspector=None, post=lambda *_: (200, b"{}"))
        self.platform = app.extensions["sandbox"]
        self.server = SandboxServer(app, 0, None)
        self.url = f"http://127.0.0.1:{self.server.port}"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        world = self.platform.world
        self.people = {one.name: one.open_id for one in world.people.values()}
        self.bot = world.bot.open_id
        self.pushed: list[dict[str, Any]] = []
        self.platform.pusher.push = lambda event, **_: self.pushed.append(event)

    def group(self, *names: str, name: str = "Team") -> str:
        members = [self.people[one] for one in names]
        return str(self.platform.groups.add(name, members).chat_id)

    def crowd(self, count: int) -> list[str]:
        return [self.platform.actors.add_person(f"Person {n}").open_id for n in range(count)]

    def set(self, **scopes: bool) -> None:
        turn(self.platform.world.switches, self.platform.world.console.granted, scopes)

    def asked(self, what: str = "/open-apis/im/v1/chats") -> list[str]:
        return [one.path for one in self.platform.switchboard.calls if what in one.path]

    def close(self) -> None:
        self.platform.close()
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


@pytest.fixture(autouse=True)
def without_first_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those have tests of their own; here there is no worker who could say them."""
    monkeypatch.setattr("bot.features.welcome.WELCOME_EVENTS", frozenset())


@pytest.fixture
def town() -> Iterator[Town]:
    town = Town()
    yield town
    town.close()


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Bot:
    """What a worker knows of memberships, and the database it keeps them in."""

    membership: Membership
    people: People
    store: ChatStore
    clock: Clock
    db: psycopg.Connection
    town: Town

    async def hears(self, *events: dict[str, Any]) -> None:
        """The worker's own way of an event, from the queue's payload on."""
        services = cast(Services, SimpleNamespace(membership=self.membership, hooks=HOOKS))
        for payload in events or self.town.pushed:
            job = SimpleNamespace(args={"payload": payload}, received_ms=int(time.time() * 1000))
            await handle_event(services, cast(Lease, SimpleNamespace(job=job)))
        if not events:
            self.town.pushed.clear()

    def meets(self, chat_id: str, *, chat_type: str = "group", at_ms: int | None = None) -> None:
        """A message came from there."""
        event = SimpleNamespace(
            tenant_key=TENANT,
            chat_id=chat_id,
            chat_type=chat_type,
            create_time_ms=at_ms or int(time.time() * 1000),
            mentions=(),
            sender_open_id="",
            sender_tenant="",
            sender_type="user",
        )
        self.people.meet(cast(Any, event), MEMO)

    async def written(self, chat_id: str) -> None:
        for _ in range(6000):
            if self.row(chat_id):
                return
            await asyncio.sleep(0.01)
        pytest.fail("the chat did not get its row")

    def row(self, chat_id: str, columns: str = "chat_type, name, gone_at is null") -> Any:
        query = f"select {columns} from chats where chat_id = %s"
        return self.db.execute(query.encode(), [chat_id]).fetchone()

    def names(self, chat_id: str) -> set[str]:
        rows = self.db.execute(
            "select open_id from chat_members where chat_id = %s and left_at is null"
            " and tenant_key = %s",
            [chat_id, TENANT],
        ).fetchall()
        by_id = {open_id: name for name, open_id in self.town.people.items()}
        return {by_id.get(open_id, open_id) for (open_id,) in rows}

    def due(self, chat_id: str) -> float:
        """Seconds until it is asked about again."""
        [left] = self.row(chat_id, "extract(epoch from due_at - now())::float8")
        return float(left)

    def make_due(self) -> None:
        self.db.execute("update chats set due_at = now(), asked_at = null")


@pytest.fixture
async def bot(town: Town, rpc: PostgresRpc, connection: psycopg.Connection) -> AsyncIterator[Bot]:
    once = RetryPolicy(max_attempts=1)
    feishu = FeishuClient(town.url, town.config.app_id, town.config.app_secret, policy=once)
    store, clock = ChatStore(rpc), Clock()
    membership = Membership(
        feishu,
        store,
        keeper=ChatKeeper(store, gather_s=0),
        denials=Denials(clock, stands_s=3600),
    )
    people = People(feishu, membership=membership)
    yield Bot(membership, people, store, clock, connection, town)
    await membership.close()
    await feishu.close()


async def test_a_group_that_a_message_came_from_gets_its_type_its_name_and_its_members(
    bot: Bot, town: Town
) -> None:
    chat = town.group("Alice", "Bob")
    bot.meets(chat)
    await bot.written(chat)

    assert bot.names(chat) == set()  # nobody is asked on the way of the message
    assert town.asked() == []
    assert await bot.membership.refresh() == 1

    assert bot.row(chat) == ("group", "Team", True)
    assert bot.names(chat) == {"Alice", "Bob"}


async def test_p2p_chats_are_known_and_never_asked_about(bot: Bot, town: Town) -> None:
    chat = town.platform.world.p2p_chat(town.people["Alice"]).chat_id
    bot.meets(chat, chat_type="p2p")
    await bot.written(chat)

    assert await bot.membership.refresh() == 0
    assert bot.row(chat) == ("p2p", "", True)
    assert town.asked() == []


async def test_events_say_who_came_and_who_went_at_once(bot: Bot, town: Town) -> None:
    chat, groups = town.group("Alice"), town.platform.groups
    await bot.hears()
    await bot.membership.refresh()

    groups.set_membership(chat, town.people["Bob"], member=True)
    groups.set_membership(chat, town.people["陈晨"], member=True)
    await bot.hears()
    everybody = bot.names(chat)
    groups.set_membership(chat, town.people["Bob"], member=False)
    groups.withdraw(chat, town.people["陈晨"])
    await bot.hears()

    assert everybody == {"Alice", "Bob", "陈晨"}
    assert bot.names(chat) == {"Alice"}
    assert len(town.asked("/members")) == 1


@pytest.mark.parametrize("what", ["removed", "disbanded"])
async def test_a_group_that_the_bot_is_out_of_has_no_members(
    bot: Bot, town: Town, what: str
) -> None:
    chat, groups = town.group("Alice"), town.platform.groups
    await bot.hears()
    await bot.membership.refresh()
    if what == "removed":
        groups.set_membership(chat, town.bot, member=False)
    else:
        groups.dissolve(chat)
    await bot.hears()

    assert bot.row(chat) == ("group", "Team", False)
    assert bot.names(chat) == set()
    bot.make_due()
    assert await bot.membership.refresh() == 0


async def test_a_group_that_refuses_the_bot_is_gone_until_it_is_back(bot: Bot, town: Town) -> None:
    chat, groups = town.group("Alice"), town.platform.groups
    await bot.hears()
    await bot.membership.refresh()
    groups.set_membership(chat, town.bot, member=False)
    town.pushed.clear()  # the event is lost
    bot.make_due()
    await bot.membership.refresh()
    out = bot.row(chat), bot.names(chat)

    groups.set_membership(chat, town.bot, member=True)
    await bot.hears()
    await bot.membership.refresh()

    assert out == (("group", "Team", False), set())
    assert bot.row(chat) == ("group", "Team", True)
    assert bot.names(chat) == {"Alice"}


async def test_a_group_whose_first_news_is_a_new_member_has_its_name(bot: Bot, town: Town) -> None:
    chat = town.group("Alice")
    town.pushed.clear()  # that the bot was added is not heard
    town.platform.groups.set_membership(chat, town.people["Bob"], member=True)
    await bot.hears()

    assert bot.row(chat, "name") == ("Team",)
    assert town.asked() == []


async def test_a_missing_scope_is_said_once_and_tried_again_after_an_hour(
    bot: Bot, town: Town
) -> None:
    town.set(**WITHOUT_MEMBERS)
    first, second = town.group("Alice"), town.group("Bob")
    await bot.hears()

    with capture_logs() as lines:
        await bot.membership.refresh()
        await bot.membership.refresh()
        bot.make_due()
        assert await bot.membership.refresh() == 0
    asked = len(town.asked("/members"))
    town.set(**dict.fromkeys(WITHOUT_MEMBERS, True))
    bot.clock.now += 3601
    bot.make_due()
    with capture_logs() as later:
        await bot.membership.refresh()

    [said] = [line for line in lines if line["event"] == "members.denied"]
    assert "im:chat.members:read" in said["scopes"]
    assert said["log_level"] == "error"
    assert asked <= 2
    assert [line["event"] for line in later].count("members.allowed") == 1
    assert bot.names(first) == {"Alice"}
    assert bot.names(second) == {"Bob"}


async def test_without_the_scope_for_names_members_are_learned_all_the_same(
    bot: Bot, town: Town
) -> None:
    town.set(**{"im:chat:readonly": False})
    chat = town.group("Alice")
    bot.meets(chat)
    await bot.written(chat)
    await bot.membership.refresh()

    assert bot.names(chat) == {"Alice"}
    assert bot.row(chat, "name") == ("",)


async def test_feishu_that_does_not_answer_is_asked_after_growing_pauses(
    bot: Bot, town: Town
) -> None:
    chat = town.group("Alice", "Bob")
    await bot.hears()
    await bot.membership.refresh()
    town.platform.switchboard.add(
        PreparedFault(f"/open-apis/im/v1/chats/{chat}/members", status=503, left=2)
    )
    pauses = []
    for _ in range(2):
        bot.make_due()
        await bot.membership.refresh()
        pauses.append(round(bot.due(chat) / 60))
    kept = bot.names(chat)
    bot.make_due()
    await bot.membership.refresh()

    assert pauses == [2, 4]
    assert kept == bot.names(chat) == {"Alice", "Bob"}
    assert bot.row(chat, "failures") == (0,)


async def test_a_message_is_written_once_an_hour_and_brings_back_what_was_gone(
    bot: Bot, town: Town
) -> None:
    chat, now = town.group("Alice"), int(time.time() * 1000) - 7_200_000
    bot.meets(chat, at_ms=now)
    await bot.written(chat)
    seen = bot.row(chat, "active_at")
    bot.meets(chat, at_ms=now + 60_000)
    await asyncio.sleep(0.1)
    assert bot.row(chat, "active_at") == seen

    await bot.store.leave(TENANT, chat, at_ms=now + 120_000)
    bot.meets(chat, at_ms=now + 3_700_000)
    for _ in range(6000):
        if bot.row(chat, "gone_at is null") == (True,):
            break
        await asyncio.sleep(0.01)
    assert bot.row(chat, "gone_at is null") == (True,)


async def test_the_background_learns_a_new_group_soon_and_outlives_a_memory_that_is_away(
    bot: Bot, town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop of a worker, with a first look at a database that does not answer."""
    away = [True]
    find = bot.store.find

    async def found() -> int:
        if away and away.pop():
            raise StoreUnavailable("away")
        return await find()

    monkeypatch.setattr(bot.store, "find", found)
    services = cast(Services, SimpleNamespace(membership=bot.membership, hooks=HOOKS))
    loop = asyncio.create_task(tend_members(services, every_s=0.1))
    try:
        chat = town.group("Alice")
        await bot.hears()
        for _ in range(6000):
            if bot.names(chat):
                break
            await asyncio.sleep(0.01)
        assert bot.names(chat) == {"Alice"}
    finally:
        loop.cancel()
        with suppress(asyncio.CancelledError):
            await loop
