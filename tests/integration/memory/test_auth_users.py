"""Feishu people as users of Supabase Auth: made once, never confused, whatever Auth does."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import psycopg
import pytest
import structlog

from bot.feishu.transport import OwnSlots, SharedPace
from bot.mentions import Person
from bot.process.concurrency import cancel_tasks
from bot.settings import Settings, SettingsError, load
from bot.wiring import open_services
from lab.doubles import lite
from lab.doubles.lite import SupabaseLite
from memory.accounts import AccountLinker, AuthUsers
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.errors import AuthRefused, AuthUnavailable, NotTheSamePerson
from memory.scope import FeishuPerson
from memory.tables.directory import PeopleStore, Sighting
from tests.support.auth_server import LEGACY_KEY, SECRET_KEY, AuthServer, auth_server
from tests.support.forking import run_script
from tests.support.postgres import Server

pytestmark = pytest.mark.anyio

ALICE = FeishuPerson("tenant", "ou_alice")
NAMESAKE = FeishuPerson("other tenant", "ou_alice")
_OURS = ("FEISHU_", "SUPABASE_", "OPENAI_", "DATABASE_URL", "PORT", "DATA_DIR")
AWAY = (503, {"message": "name resolution failed"})


@pytest.fixture
def server() -> Iterator[AuthServer]:
    with auth_server() as server:
        yield server


@contextlib.asynccontextmanager
async def client(server: AuthServer, key: str = SECRET_KEY, **options: float) -> Any:
    users = AuthUsers(server.url, key, **options)
    yield users
    await users.close()


@pytest.fixture
async def users(server: AuthServer) -> AsyncIterator[AuthUsers]:
    async with client(server) as users:
        yield users


class Table(PeopleStore):
    """The real table; says when a link was made."""

    def __init__(self, rpc: PostgresRpc) -> None:
        super().__init__(rpc)
        self.linked = asyncio.Event()

    async def link(self, person: FeishuPerson, auth_user_id: UUID) -> UUID | None:
        made = await super().link(person, auth_user_id)
        self.linked.set()
        return made

    async def links(self) -> dict[str, UUID | None]:
        return {one.person.open_id: one.auth_user_id for one in await self.listed()}


@pytest.fixture
async def table(database_url: str) -> AsyncIterator[Table]:
    pool = connection_pool(database_url, size=4)
    await pool.open()
    yield Table(PostgresRpc(pool))
    await pool.close()


async def meet(table: PeopleStore, *people: FeishuPerson) -> None:
    await table.remember([Sighting(p.tenant_key, p.open_id, "", 0) for p in people])


class TestOneUser:
    async def test_is_made_with_the_id_the_address_and_the_person(
        self, server: AuthServer, users: AuthUsers
    ) -> None:
        made = await users.ensure(ALICE)

        [user] = server.users.values()
        assert made == ALICE.auth_user_id == UUID(user["id"])
        assert user["email"] == ALICE.placeholder_email
        assert user["email_confirmed_at"]
        assert user["app_metadata"]["provider"] == "feishu"
        assert user["app_metadata"]["tenant_key"] == "tenant"
        assert user["app_metadata"]["open_id"] == "ou_alice"

    async def test_is_made_once(self, server: AuthServer, users: AuthUsers) -> None:
        assert await users.ensure(ALICE) == await users.ensure(ALICE)
        assert len(server.users) == 1

    async def test_stays_theirs_when_they_change_their_address_in_another_app(
        self, server: AuthServer, users: AuthUsers
    ) -> None:
        await users.ensure(ALICE)
        server.users[str(ALICE.auth_user_id)]["email"] = "alice@example.org"

        assert await users.ensure(ALICE) == ALICE.auth_user_id
        assert len(server.users) == 1

    async def test_of_a_namesake_in_another_tenant_is_another(
        self, server: AuthServer, users: AuthUsers
    ) -> None:
        assert await users.ensure(ALICE) != await users.ensure(NAMESAKE)
        assert len(server.users) == 2

    async def test_of_a_legacy_service_key_is_made_with_that_as_the_token(
        self, server: AuthServer
    ) -> None:
        async with client(server, LEGACY_KEY) as users:
            await users.ensure(ALICE)
        assert len(server.users) == 1

    @pytest.mark.parametrize("metadata", [NAMESAKE.app_metadata, {"provider": "email"}, {}])
    async def test_whose_id_is_somebody_elses_is_refused_and_left_as_it_is(
        self, server: AuthServer, users: AuthUsers, metadata: dict[str, str]
    ) -> None:
        taken = server.add(id=str(ALICE.auth_user_id), app_metadata=metadata)
        before = dict(taken)

        with pytest.raises(NotTheSamePerson, match="app_metadata"):
            await users.ensure(ALICE)
        with pytest.raises(NotTheSamePerson):
            await users.delete(ALICE)
        assert server.users == {taken["id"]: before}

    async def test_whose_address_somebody_else_signed_up_with_is_refused(
        self, server: AuthServer, users: AuthUsers
    ) -> None:
        server.add(email=ALICE.placeholder_email)

        with pytest.raises(NotTheSamePerson, match="another Auth user"):
            await users.ensure(ALICE)
        assert len(server.users) == 1

    async def test_is_deleted_for_good_and_not_twice(
        self, server: AuthServer, users: AuthUsers
    ) -> None:
        await users.ensure(ALICE)
        await users.ensure(NAMESAKE)

        assert await users.delete(ALICE)
        assert not await users.delete(ALICE)
        assert list(server.users) == [str(NAMESAKE.auth_user_id)]


class TestTrouble:
    async def test_an_answer_that_got_lost_makes_no_second_user(
        self, server: AuthServer, users: AuthUsers
    ) -> None:
        await users.ensure(ALICE)
        server.trouble.append((502, {"message": "An invalid response was received"}))

        assert await users.ensure(ALICE) == ALICE.auth_user_id
        assert len(server.users) == 1

    @pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 520])
    async def test_is_for_later(self, server: AuthServer, users: AuthUsers, status: int) -> None:
        server.trouble += [(status, {"message": "busy"})] * 2

        with pytest.raises(AuthUnavailable):
            await users.ensure(ALICE)

    async def test_of_a_server_that_hangs_or_is_not_there_is_for_later(
        self, server: AuthServer
    ) -> None:
        server.answering.clear()
        async with client(server, timeout_s=0.1) as users:
            with pytest.raises(AuthUnavailable):
                await users.ensure(ALICE)
        nowhere = AuthUsers("http://127.0.0.1:1", SECRET_KEY)
        with pytest.raises(AuthUnavailable):
            await nowhere.ensure(ALICE)
        await nowhere.close()

    async def test_with_the_key_names_the_setting(self, server: AuthServer) -> None:
        async with client(server, "sb_secret_wrong") as users:
            with pytest.raises(AuthRefused, match="SUPABASE_SECRET_KEY"):
                await users.ensure(ALICE)

    async def test_with_an_api_that_is_not_there_is_a_refusal(
        self, server: AuthServer, users: AuthUsers
    ) -> None:
        server.trouble.append((404, {"message": "no Route matched with those values"}))

        with pytest.raises(AuthRefused, match="SUPABASE_URL"):
            await users.ensure(ALICE)

    async def test_with_ids_leaves_no_stray_user(
        self, server: AuthServer, users: AuthUsers
    ) -> None:
        server.gives_own_ids = True

        with pytest.raises(AuthRefused, match="update it"):
            await users.ensure(ALICE)
        assert server.users == {}


class TestLinking:
    async def test_gives_everybody_their_user_and_repeats_without_a_request(
        self, server: AuthServer, users: AuthUsers, table: Table
    ) -> None:
        people = [FeishuPerson("tenant", f"ou_{n:03}") for n in range(120)]
        await meet(table, *people)
        linker = AccountLinker(table, users)

        assert (await linker.link_everybody()).people == 120
        assert len(server.requests) == len(server.users) == 120
        assert (await linker.link_everybody()).people == 0
        assert len(server.requests) == 120

    async def test_by_two_workers_at_once_makes_one_user_and_one_row(
        self, server: AuthServer, database_url: str, table: Table
    ) -> None:
        await meet(table, ALICE)
        server.creations_meet = threading.Barrier(2)
        async with client(server) as one, client(server) as other:
            done = await asyncio.gather(
                AccountLinker(table, one).link_everybody(),
                AccountLinker(table, other).link_everybody(),
            )

        assert [linked.refused for linked in done] == [(), ()]
        assert list(server.users) == [str(ALICE.auth_user_id)]
        assert await table.links() == {"ou_alice": ALICE.auth_user_id}
        assert server.requests.count("POST /auth/v1/admin/users") == 2

    async def test_twice_in_one_process_asks_once(
        self, server: AuthServer, users: AuthUsers, table: Table
    ) -> None:
        await meet(table, ALICE)
        linker = AccountLinker(table, users)

        await asyncio.gather(*(linker.link_everybody() for _ in range(5)))

        assert len(server.requests) == 1

    async def test_never_links_somebody_elses_user_and_says_so_once(
        self, server: AuthServer, users: AuthUsers, table: Table
    ) -> None:
        bob = FeishuPerson("tenant", "ou_bob")
        await meet(table, ALICE, bob)
        server.add(id=str(ALICE.auth_user_id), app_metadata=NAMESAKE.app_metadata)
        linker = AccountLinker(table, users)

        with structlog.testing.capture_logs() as logs:
            linked = await linker.link_everybody()
            await linker.link_everybody()

        assert linked.people == 1
        assert [person for person, _ in linked.refused] == [ALICE]
        assert await table.links() == {"ou_alice": None, "ou_bob": bob.auth_user_id}
        assert [line["event"] for line in logs] == ["people.not_linked"]
        assert logs[0]["open_id"] == "ou_alice"

    async def test_waits_for_auth_to_come_back(
        self, server: AuthServer, users: AuthUsers, table: Table
    ) -> None:
        await meet(table, ALICE)
        server.trouble += [AWAY] * 4
        linking = asyncio.create_task(AccountLinker(table, users, retry_first_s=0.01).run())

        with structlog.testing.capture_logs() as logs:
            await asyncio.wait_for(table.linked.wait(), 60)
        await cancel_tasks([linking])

        assert await table.links() == {"ou_alice": ALICE.auth_user_id}
        assert {line["event"] for line in logs} == {"people.linking_postponed"}

    async def test_looks_at_once_when_somebody_new_comes(
        self, users: AuthUsers, table: Table
    ) -> None:
        linker = AccountLinker(table, users, look_every_s=3600)
        linking = asyncio.create_task(linker.run())
        await meet(table, ALICE)
        linker.wake()
        await asyncio.wait_for(table.linked.wait(), 60)
        await cancel_tasks([linking])
        assert await table.links() == {"ou_alice": ALICE.auth_user_id}

    async def test_of_somebody_forgotten_meanwhile_brings_no_row_back(
        self, users: AuthUsers, table: Table, database_url: str
    ) -> None:
        await meet(table, ALICE)
        [stored] = await table.listed()
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute("delete from public.people")

        assert await table.link(stored.person, await users.ensure(stored.person)) is None
        assert await table.links() == {}


@pytest.fixture(scope="module")
def api(postgres_server: Server, migrated_template: str) -> Iterator[SupabaseLite]:
    """Supabase's API over a database of these tests alone: everybody there is to be linked."""
    folder = postgres_server.socket_folder
    with (
        postgres_server.fresh_database(template=migrated_template) as url,
        lite.run(url, socket_folder=folder) as api,
    ):
        yield api


@pytest.fixture
def empty_database_url(api: SupabaseLite) -> str:
    """The database behind the API, in which nobody is known or was forgotten."""
    with psycopg.connect(api.database_url, autocommit=True) as connection:
        connection.execute("truncate public.people, public.forgotten_people cascade")
    return api.database_url


async def test_whoever_the_bot_meets_gets_a_user_behind_the_turn(
    server: AuthServer, api: SupabaseLite, empty_database_url: str
) -> None:
    server.rest_url = api.url
    settings = Settings(
        feishu_app_id="cli_tests",
        feishu_app_secret="secret",
        feishu_domain="http://127.0.0.1:1",
        supabase_url=server.url,
        supabase_publishable_key=api.publishable_key,
        supabase_secret_key=api.secret_key,
        supabase_jwt_secret=api.jwt_secret,
        supabase_auth_users=True,
    )
    event = SimpleNamespace(
        mentions=(),
        create_time_ms=0,
        chat_id="oc_here",
        chat_type="group",
        sender_open_id=ALICE.open_id,
        sender_type="user",
        tenant_key=ALICE.tenant_key,
        sender_tenant="",
    )
    async with (
        connection_pool(empty_database_url, size=2) as pool,
        open_services(settings, empty_database_url, pool, SharedPace(OwnSlots())) as services,
    ):
        services.people.meet(cast(Any, event), Person("ou_bot", "Memo", is_bot=True))
        user = await asyncio.to_thread(server.wait_for_user, str(ALICE.auth_user_id))
    assert user["app_metadata"]["open_id"] == "ou_alice"


class TestTheScript:
    """`scripts/memory` as it is run, on the configured database and project."""

    @pytest.fixture
    def database_url(self, empty_database_url: str) -> str:
        return empty_database_url

    @pytest.fixture
    def environment(
        self, database_url: str, server: AuthServer, api: SupabaseLite, tmp_path: Path
    ) -> dict[str, str]:
        """The memory over Supabase's API."""
        server.rest_url = api.url
        kept = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
        return {
            **kept,
            "DATABASE_URL": database_url,
            "DATA_DIR": str(tmp_path),
            "SUPABASE_URL": server.url,
            "SUPABASE_PUBLISHABLE_KEY": api.publishable_key,
            "SUPABASE_SECRET_KEY": api.secret_key,
            "SUPABASE_JWT_SECRET": api.jwt_secret,
        }

    async def test_links_everybody_known_so_far_and_can_be_run_again(
        self, environment: dict[str, str], server: AuthServer, table: Table
    ) -> None:
        await meet(table, ALICE, NAMESAKE)

        assert _run(environment, "link-users").stdout == "2 people linked\n"
        assert json.loads(_run(environment, "link-users", "--json").stdout)["linked"] == 0
        assert server.users.keys() == {str(ALICE.auth_user_id), str(NAMESAKE.auth_user_id)}

        del server.users[str(ALICE.auth_user_id)]
        _run(environment, "link-users", "--all")
        assert str(ALICE.auth_user_id) in server.users

    async def test_says_who_was_not_linked_and_why(
        self, environment: dict[str, str], server: AuthServer, table: Table
    ) -> None:
        await meet(table, ALICE)
        server.add(email=ALICE.placeholder_email)

        done = _run(environment, "link-users")

        assert done.returncode == 1
        assert "ou_alice\tthe address" in done.stdout

    async def test_names_the_setting_when_auth_refuses(
        self, environment: dict[str, str], server: AuthServer, table: Table
    ) -> None:
        await meet(table, ALICE)
        server.trouble.append((403, {"code": "bad_jwt", "message": "invalid JWT"}))

        done = _run(environment, "link-users")

        assert done.returncode == 2
        assert "check SUPABASE_URL and SUPABASE_SECRET_KEY" in done.stderr
        assert "Traceback" not in done.stderr

    async def test_forgets_a_person_and_leaves_the_user_that_other_apps_share(
        self, environment: dict[str, str], server: AuthServer, table: Table
    ) -> None:
        await meet(table, ALICE, NAMESAKE)
        _run(environment, "link-users")

        done = _run(environment, "forget", "--person", "ou_alice", "--tenant", "tenant", "--yes")

        assert "stays, for other apps share it" in done.stdout
        assert "--person ou_alice --tenant tenant --auth-user" in done.stdout
        assert len(server.users) == 2
        [left] = await table.listed()
        assert left.person == NAMESAKE

    @pytest.mark.parametrize("forgotten_before", [False, True])
    async def test_deletes_the_user_as_well_when_told_to(
        self,
        environment: dict[str, str],
        server: AuthServer,
        table: Table,
        forgotten_before: bool,
    ) -> None:
        await meet(table, ALICE, NAMESAKE)
        _run(environment, "link-users")
        whom = ("--person", "ou_alice", "--tenant", "tenant", "--yes")
        if forgotten_before:
            _run(environment, "forget", *whom)

        done = _run(environment, "forget", *whom, "--auth-user", "--json")

        assert done.stdout, done.stderr
        deleted = json.loads(done.stdout)["auth_users"]["deleted"]
        assert deleted == [str(ALICE.auth_user_id)]
        assert list(server.users) == [str(NAMESAKE.auth_user_id)]
        assert [one.person for one in await table.listed()] == [NAMESAKE]

    async def test_deletes_nothing_when_auth_is_away(
        self, environment: dict[str, str], server: AuthServer, table: Table
    ) -> None:
        await meet(table, ALICE)
        server.trouble.append(AWAY)

        done = _run(environment, "forget", "--person", "ou_alice", "--yes", "--auth-user")

        assert done.returncode == 2
        assert len(await table.listed()) == 1

    def test_without_supabase_there_are_no_users_to_link(self, environment: dict[str, str]) -> None:
        done = _run(environment | {"SUPABASE_URL": ""}, "link-users")

        assert done.returncode == 2
        assert "SUPABASE_URL is not set" in done.stderr


def _run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_script("memory", *arguments, env=environment)


@pytest.mark.parametrize("missing", ["SUPABASE_URL", "SUPABASE_SECRET_KEY"])
def test_users_without_a_project_are_a_settings_error_that_names_what_is_missing(
    missing: str,
) -> None:
    given = {"supabase_url": "https://project.supabase.co", "supabase_secret_key": "sb_secret_x"}
    given[missing.lower()] = ""

    with pytest.raises(SettingsError, match=missing):
        load(supabase_auth_users=True, **given)
