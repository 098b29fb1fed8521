"""Chats and their members, over every backend: what counts when news comes late, twice, or not."""

from __future__ import annotations

import itertools
import time
from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import psycopg
import pytest

from memory.rpc import Rpc
from memory.scope import FeishuPerson
from memory.tables.directory import ChatStore, MembershipChange, SeenChat, TakenChat
from tests.support.backends import Backend, SupabaseBackend

pytestmark = pytest.mark.anyio

TENANT = "tenant"
ALICE, BOB = (FeishuPerson(TENANT, f"ou_{name}") for name in ("alice", "bob"))
MINUTE, HOUR = 60_000, 3_600_000
PLENTY = 1_000_000


@pytest.fixture
async def rpc(backend: Backend) -> AsyncIterator[Rpc]:
    async with backend.rpc() as rpc:
        yield rpc


@pytest.fixture
def chats(rpc: Rpc) -> ChatStore:
    return ChatStore(rpc)


@pytest.fixture
def chat() -> str:
    return f"oc_{uuid4().hex}"


@pytest.fixture
def db(backend: Backend) -> Iterator[psycopg.Connection]:
    with psycopg.connect(backend.database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def now() -> int:
    """Half an hour ago, so that what follows it is still in the past."""
    return int(time.time() * 1000) - 30 * MINUTE


def members(db: psycopg.Connection, chat: str) -> dict[str, int | None]:
    """Who is in: open_id → when they joined, ms since epoch, None for from the beginning."""
    rows = db.execute(
        "select open_id, round(extract(epoch from joined_at) * 1000)::bigint"
        " from chat_members where chat_id = %s and left_at is null",
        [chat],
    )
    return dict(rows.fetchall())


def chat_row(db: psycopg.Connection, chat: str, columns: str, tenant: str = TENANT) -> tuple:
    row = db.execute(
        f"select {columns} from chats where chat_id = %s and tenant_key = %s",  # type: ignore[arg-type]
        [chat, tenant],
    ).fetchone()
    assert row is not None
    return row


async def met(chats: ChatStore, chat: str, at_ms: int, tenant: str = TENANT) -> None:
    await chats.remember([SeenChat(tenant, chat, "group", at_ms)])


async def taken(chats: ChatStore, chat: str, **wanted: bool) -> list[TakenChat]:
    wishes = {"infos": True, "members": True} | wanted
    found = await chats.take(a_minute=PLENTY, **wishes)
    return [one for one in found if one.chat_id == chat]


LISTED = MembershipChange
JUST_NOW = "when the list was read"
A, B = "ou_alice", "ou_bob"
BOTH, ALONE = [ALICE, BOB], [ALICE]
NEWS = [  # what happens, who, when after `now`; what comes of the last; who is in, since when
    ("a first list says nothing about when people joined", [("list", BOTH, 0)],
     LISTED(2, joined=0, left=0), {A: None, B: None}),
    ("a newcomer joined when the list was read",
     [("list", ALONE, 0), ("list", BOTH, HOUR // 4)],
     LISTED(2, joined=1, left=0), {A: None, B: JUST_NOW}),
    ("the absent are out", [("list", BOTH, 0), ("list", ALONE, 5 * MINUTE)],
     LISTED(1, joined=0, left=1), {A: None}),
    ("and come back as newcomers",
     [("list", BOTH, 0), ("list", ALONE, 5 * MINUTE), ("list", BOTH, 10 * MINUTE)],
     LISTED(2, joined=1, left=0), {A: None, B: JUST_NOW}),
    ("so does who left", [("list", BOTH, 0), ("remove", [BOB], MINUTE), ("list", BOTH, 5 * MINUTE)],
     LISTED(2, joined=1, left=0), {A: None, B: JUST_NOW}),
    ("an older list changes nothing", [("list", ALONE, 0), ("list", BOTH, -1)], None, {A: None}),
    ("leaving counts at once", [("list", BOTH, 0), ("remove", [BOB], MINUTE)], 1, {A: None}),
    ("a list asked for before somebody left does not bring them back",
     [("remove", [BOB], 2), ("list", BOTH, 0)], LISTED(1, joined=0, left=0), {A: None}),
    ("nor does one of half a minute later, since the clocks may differ",
     [("remove", [BOB], 2), ("list", BOTH, 0), ("list", BOTH, 30_000)],
     LISTED(1, joined=0, left=0), {A: None}),
    ("a list asked for before somebody joined does not put them out",
     [("add", [BOB], 1), ("list", ALONE, 0)], LISTED(1, joined=0, left=0), {A: None, B: 1}),
    ("a late leaving does not undo a later list",
     [("list", ALONE, 5 * MINUTE), ("remove", [ALICE], 0)], 0, {A: None}),
    ("nor does a late joining", [("list", ALONE, 5 * MINUTE), ("add", [BOB], 0)], 0, {A: None}),
    ("a joining of the day before yesterday gives nothing", [("add", [ALICE], -48 * HOUR)], 0, {}),
]  # fmt: skip


@pytest.mark.parametrize(("news", "last", "inside"), [row[1:] for row in NEWS],
                         ids=[row[0] for row in NEWS])  # fmt: skip
async def test_news_of_members_counts_by_its_own_time(
    chats: ChatStore,
    chat: str,
    db: psycopg.Connection,
    now: int,
    news: list[tuple[str, list[FeishuPerson], int]],
    last: object,
    inside: dict[str, int | str | None],
) -> None:
    await met(chats, chat, now)
    for what, who, after_ms in news:
        if what == "list":
            came = await chats.save_members(chat, who, asked_ms=now + after_ms)
        else:
            came = await getattr(chats, what)(TENANT, chat, who, at_ms=now + after_ms)

    assert came == last
    found = members(db, chat)
    assert found.keys() == inside.keys()
    for person, since in inside.items():
        if since == JUST_NOW:
            assert abs((found[person] or 0) / 1000 - time.time()) < 60
        else:
            assert found[person] == (since if since is None else now + int(since))


class TestAList:
    async def test_of_an_unknown_chat_is_not_kept(
        self, chats: ChatStore, chat: str, db: psycopg.Connection, now: int
    ) -> None:
        assert await chats.save_members(chat, [ALICE], asked_ms=now) is None
        assert members(db, chat) == {}

    async def test_with_people_of_two_tenants_keeps_each_in_their_own(
        self, chats: ChatStore, chat: str, db: psycopg.Connection, now: int
    ) -> None:
        guest = FeishuPerson("other", "ou_guest")
        await met(chats, chat, now)
        await met(chats, chat, now, tenant="other")

        await chats.save_members(chat, [ALICE, guest], asked_ms=now)

        rows = db.execute(
            "select tenant_key, open_id from chat_members where chat_id = %s", [chat]
        ).fetchall()
        assert set(rows) == {(TENANT, "ou_alice"), ("other", "ou_guest")}
        for tenant in (TENANT, "other"):
            assert chat_row(db, chat, "members_read_at is not null", tenant) == (True,)


class TestEvents:
    async def test_joining_is_known_from_its_own_time(
        self, chats: ChatStore, chat: str, db: psycopg.Connection, now: int
    ) -> None:
        assert await chats.add(TENANT, chat, [ALICE], at_ms=now) == 1

        assert members(db, chat) == {"ou_alice": now}
        assert chat_row(db, chat, "chat_type") == ("group",)

    async def test_in_every_order_and_however_often_the_latest_wins(
        self, backend: Backend, chats: ChatStore, db: psycopg.Connection, now: int
    ) -> None:
        # What comes of an order is decided in SQL: over HTTP a few of them are enough.
        every = 20 if isinstance(backend, SupabaseBackend) else 1
        news = [("add", now), ("remove", now + 1), ("add", now + 2), ("remove", now + 3)]
        for last in (3, 4):
            told = [*news[:last], news[0], news[1]]  # two are delivered twice
            for order in sorted(set(itertools.permutations(told)))[::every]:
                chat = f"oc_{uuid4().hex}"
                for what, at_ms in order:
                    await getattr(chats, what)(TENANT, chat, [ALICE], at_ms=at_ms)

                expected = {"ou_alice": now + 2} if last == 3 else {}
                assert members(db, chat) == expected, order

    async def test_a_later_list_with_a_person_never_undoes_their_coming_back(
        self, chats: ChatStore, db: psycopg.Connection, now: int
    ) -> None:
        news = ("remove", now + 1000), ("add", now + 2000), ("list", now + 3000)
        for order in itertools.permutations(news):
            chat = f"oc_{uuid4().hex}"
            await met(chats, chat, now)
            await chats.save_members(chat, [ALICE, BOB], asked_ms=now)
            for what, at_ms in order:
                if what == "list":
                    await chats.save_members(chat, [ALICE, BOB], asked_ms=at_ms)
                else:
                    await getattr(chats, what)(TENANT, chat, [BOB], at_ms=at_ms)

            assert members(db, chat) == {"ou_alice": None, "ou_bob": now + 2000}, order

    async def test_a_list_that_may_lag_behind_a_leaving_is_soon_asked_for_again(
        self, chats: ChatStore, chat: str, db: psycopg.Connection, now: int
    ) -> None:
        await met(chats, chat, now)
        await chats.save_members(chat, [ALICE, BOB], asked_ms=now)
        await chats.remove(TENANT, chat, [BOB], at_ms=now + 1000)

        saved = await chats.save_members(chat, [ALICE, BOB], asked_ms=now + 3000)

        assert saved == MembershipChange(members=1, joined=0, left=0)
        due = "select due_at < now() + interval '2 minutes' as soon from chats where chat_id = %s"
        assert db.execute(due, [chat]).fetchone() == (True,)

    async def test_a_joining_and_a_leaving_of_one_moment_leave_nobody_in(
        self, chats: ChatStore, db: psycopg.Connection, now: int
    ) -> None:
        for order in (("add", "remove"), ("remove", "add")):
            chat = f"oc_{uuid4().hex}"
            for what in order:
                await getattr(chats, what)(TENANT, chat, [ALICE], at_ms=now)

            assert members(db, chat) == {}

    async def test_a_time_in_the_future_is_now(
        self, chats: ChatStore, chat: str, db: psycopg.Connection, now: int
    ) -> None:
        await chats.add(TENANT, chat, [ALICE], at_ms=now + 1000 * HOUR)

        joined = members(db, chat)["ou_alice"]
        assert joined is not None
        assert joined / 1000 <= time.time() + 5


class TestTheBot:
    async def test_that_is_removed_knows_no_members(
        self, chats: ChatStore, chat: str, db: psycopg.Connection, now: int
    ) -> None:
        await met(chats, chat, now)
        await chats.save_members(chat, [ALICE, BOB], asked_ms=now)

        assert await chats.leave(TENANT, chat, at_ms=now + 1)

        assert members(db, chat) == {}
        assert chat_row(db, chat, "gone_at is not null") == (True,)
        assert await taken(chats, chat) == []

    async def test_that_is_out_takes_no_older_list_and_no_older_joining(
        self, chats: ChatStore, chat: str, db: psycopg.Connection, now: int
    ) -> None:
        await met(chats, chat, now)
        await chats.leave(TENANT, chat, at_ms=now + 2)

        assert await chats.save_members(chat, [ALICE], asked_ms=now + 1) is None
        assert await chats.add(TENANT, chat, [BOB], at_ms=now + 1) == 0
        assert members(db, chat) == {}

    async def test_that_comes_back_reads_the_list_and_everybody_is_new(
        self, chats: ChatStore, chat: str, db: psycopg.Connection, now: int
    ) -> None:
        await met(chats, chat, now)
        await chats.save_members(chat, [ALICE], asked_ms=now)
        await chats.leave(TENANT, chat, at_ms=now + 1)

        await chats.enter(TENANT, chat, name="Team", at_ms=now + 2)
        [due] = await taken(chats, chat)
        await chats.save_members(chat, [ALICE], asked_ms=now + 3)

        assert due.chat_type == "group"
        assert members(db, chat)["ou_alice"] is not None
        assert chat_row(db, chat, "gone_at, name") == (None, "Team")

    async def test_is_asked_for_its_form_until_that_is_known(
        self, chats: ChatStore, chat: str, now: int
    ) -> None:
        await chats.enter(TENANT, chat, name="Team", at_ms=now)
        [named_only] = await taken(chats, chat)
        assert not await chats.is_topic_group(chat)

        await chats.describe(chat, chat_type="group", name="", at_ms=now, topics=True)
        await chats.describe(chat, chat_type=None, name="Team", at_ms=now)
        await chats.enter(TENANT, chat, name="Team", at_ms=now + 1)
        [described] = await taken(chats, chat)

        assert (named_only.named, described.named) == (False, True)
        assert await chats.is_topic_group(chat)

    async def test_removal_that_is_older_than_its_adding_is_over(
        self, chats: ChatStore, chat: str, db: psycopg.Connection, now: int
    ) -> None:
        await chats.enter(TENANT, chat, name="Team", at_ms=now + 1)

        assert not await chats.leave(TENANT, chat, at_ms=now)

        assert chat_row(db, chat, "gone_at") == (None,)

    async def test_adding_that_is_older_than_its_removal_is_over(
        self, chats: ChatStore, chat: str, db: psycopg.Connection, now: int
    ) -> None:
        await chats.leave(TENANT, chat, at_ms=now + 1)
        await chats.enter(TENANT, chat, name="Team", at_ms=now)

        assert chat_row(db, chat, "gone_at is not null") == (True,)

    async def test_hears_a_message_and_is_back_unless_the_message_is_older(
        self, chats: ChatStore, chat: str, db: psycopg.Connection, now: int
    ) -> None:
        await chats.leave(TENANT, chat, at_ms=now)

        await met(chats, chat, now - 1)
        before = chat_row(db, chat, "gone_at is null")
        await met(chats, chat, now + 1)

        assert before == (False,)
        assert chat_row(db, chat, "gone_at is null") == (True,)
        assert await taken(chats, chat) != []


class TestWhatIsAskedOfFeishu:
    async def test_is_the_type_of_a_chat_that_only_older_rows_know(
        self, chats: ChatStore, chat: str, db: psycopg.Connection, now: int
    ) -> None:
        db.execute(
            "insert into agent_chats (id, user_id, tenant_key, chat_id, root_id)"
            " values (%s, 'ou_alice', %s, %s, 'main')",
            [f"feishu:{chat}:main", TENANT, chat],
        )

        assert await chats.find() >= 1
        assert await taken(chats, chat, infos=False) == []
        [due] = await taken(chats, chat)
        assert (due.chat_type, due.named) == (None, False)

        await chats.describe(chat, chat_type="p2p", name="", at_ms=due.asked_ms)
        db.execute("update chats set due_at = now() where chat_id = %s", [chat])
        assert await taken(chats, chat) == []
        assert chat_row(db, chat, "chat_type, name") == ("p2p", "")

    async def test_is_not_asked_by_two_workers_nor_soon_again(
        self, chats: ChatStore, chat: str, db: psycopg.Connection, now: int
    ) -> None:
        await met(chats, chat, now)

        assert len(await taken(chats, chat)) == 1
        assert await taken(chats, chat) == []

        await chats.save_members(chat, [ALICE], asked_ms=now)
        [hours] = chat_row(db, chat, "extract(epoch from due_at - now()) / 3600")
        assert 4.4 < hours <= 6

    async def test_is_paced_for_all_workers_together(
        self, chats: ChatStore, db: psycopg.Connection, now: int
    ) -> None:
        db.execute("update chats set asked_at = null")
        await chats.remember(
            [SeenChat(TENANT, f"oc_{uuid4().hex}", "group", now) for _ in range(5)]
        )

        first = await chats.take(a_minute=3, infos=True, members=True)
        second = await chats.take(a_minute=3, infos=True, members=True)

        assert (len(first), second) == (3, ())

    async def test_leaves_p2p_chats_and_groups_without_activity_alone(
        self, chats: ChatStore, chat: str, db: psycopg.Connection, now: int
    ) -> None:
        quiet, other = f"oc_{uuid4().hex}", f"oc_{uuid4().hex}"
        await met(chats, quiet, now - 31 * 24 * HOUR)
        await met(chats, other, now)
        await chats.remember([SeenChat(TENANT, chat, "p2p", now)])
        db.execute("update chats set members_read_at = now() where chat_id = %s", [quiet])

        found = await chats.take(a_minute=PLENTY, infos=True, members=True)

        assert {chat, quiet, other} & {one.chat_id for one in found} == {other}

    async def test_is_tried_again_after_growing_pauses(
        self, chats: ChatStore, chat: str, db: psycopg.Connection, now: int
    ) -> None:
        await met(chats, chat, now)
        pauses = []
        for _ in range(12):
            await chats.postpone(chat)
            pauses.append(
                round(chat_row(db, chat, "extract(epoch from due_at - now())::float8")[0] / 60)
            )
        await chats.postpone(chat, wait_s=3600)

        assert pauses[:4] == [2, 4, 8, 16]
        assert pauses[-1] == 360
        [left_s] = chat_row(db, chat, "extract(epoch from due_at - now())::float8")
        assert 3590 < left_s <= 3600

    async def test_gives_a_name_and_an_older_name_never_replaces_it(
        self, chats: ChatStore, chat: str, db: psycopg.Connection, now: int
    ) -> None:
        await met(chats, chat, now)
        await chats.describe(chat, chat_type=None, name="New", at_ms=now)
        await chats.describe(chat, chat_type=None, name="Old", at_ms=now - 1)
        await chats.describe(chat, chat_type=None, name="", at_ms=now + 1)

        assert chat_row(db, chat, "name, chat_type") == ("New", "group")
