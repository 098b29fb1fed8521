"""The table of people, over every backend: names, renames, tenants, links, who reads what."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from uuid import uuid4

import httpx
import jwt
import psycopg
import pytest

from lab.doubles.lite import SupabaseLite
from memory.rpc import Rpc
from memory.scope import FeishuPerson
from memory.tables.directory import KnownName, PeopleStore, Sighting, StoredPerson
from memory.tables.operations import Operations
from tests.support.backends import Backend
from tests.support.people import Group
from tests.support.postgres import waits_for_a_lock

pytestmark = pytest.mark.anyio


@pytest.fixture
async def rpc(backend: Backend) -> AsyncIterator[Rpc]:
    async with backend.rpc() as rpc:
        yield rpc


@pytest.fixture
def people(rpc: Rpc) -> PeopleStore:
    return PeopleStore(rpc)


@pytest.fixture
def tenant() -> str:
    """A tenant nobody else uses; with a separator, as ids may have."""
    return f"tenant:{uuid4().hex[:8]}"


async def test_names_of_many_are_read_in_one_call_and_who_is_unknown_is_absent(
    people: PeopleStore, tenant: str
) -> None:
    await people.remember(
        [Sighting(tenant, "ou_a", "Alice", 5000), Sighting(tenant, "ou_b", "陈晨", 6000)]
    )

    found = await people.named(tenant, ["ou_a", "ou_b", "ou_c"])

    assert set(found) == {KnownName("ou_a", "Alice", 5000), KnownName("ou_b", "陈晨", 6000)}
    assert await people.named(tenant, []) == ()


async def test_a_rename_is_the_same_person_with_the_same_memory(
    rpc: Rpc, people: PeopleStore, tenant: str, backend: Backend
) -> None:
    await people.remember([Sighting(tenant, "ou_a", "Alice", 5000)])
    person = FeishuPerson(tenant, "ou_a")
    await people.link(person, person.auth_user_id)

    assert await people.remember([Sighting(tenant, "ou_a", "Alice Lee", 6000)]) == 0

    assert await people.listed(tenant_key=tenant) == (
        StoredPerson(person, "Alice Lee", person.auth_user_id),
    )


async def test_an_older_sighting_never_replaces_a_later_one(
    people: PeopleStore, tenant: str
) -> None:
    await people.remember([Sighting(tenant, "ou_a", "Alice Lee", 6000)])
    await people.remember([Sighting(tenant, "ou_a", "Alice", 5000)])
    await people.remember([Sighting(tenant, "ou_a", "", 7000)])

    assert await people.named(tenant, ["ou_a"]) == (KnownName("ou_a", "Alice Lee", 6000),)


async def test_of_one_batch_the_latest_name_counts(people: PeopleStore, tenant: str) -> None:
    seen = [("Alice", 5000), ("Alice Lee", 7000), ("", 8000), ("Ali", 6000)]

    new = await people.remember([Sighting(tenant, "ou_a", name, at) for name, at in seen])

    assert new == 1
    assert await people.named(tenant, ["ou_a"]) == (KnownName("ou_a", "Alice Lee", 7000),)


async def test_the_same_name_seen_again_changes_only_when_it_was_seen(
    people: PeopleStore, tenant: str, backend: Backend
) -> None:
    await people.remember([Sighting(tenant, "ou_a", "Alice", 5000)])
    await people.remember([Sighting(tenant, "ou_a", "Alice", 9000)])

    with psycopg.connect(backend.database_url) as connection:
        row = connection.execute(
            "select created_at = updated_at from public.people where tenant_key = %s", [tenant]
        ).fetchone()
    assert row == (True,)
    assert await people.named(tenant, ["ou_a"]) == (KnownName("ou_a", "Alice", 9000),)


async def test_the_same_open_id_in_two_tenants_is_two_people(
    people: PeopleStore, tenant: str
) -> None:
    other = f"other {tenant}"
    await people.remember(
        [Sighting(tenant, "ou_a", "Alice", 5000), Sighting(other, "ou_a", "Anne", 9000)]
    )

    assert await people.named(tenant, ["ou_a"]) == (KnownName("ou_a", "Alice", 5000),)
    assert await people.named(other, ["ou_a"]) == (KnownName("ou_a", "Anne", 9000),)


async def test_two_workers_that_learn_the_same_people_write_each_once(
    people: PeopleStore, tenant: str
) -> None:
    forwards = [Sighting(tenant, f"ou_{n:02}", f"Person {n}", 5000) for n in range(50)]

    new = await asyncio.gather(
        people.remember(forwards),
        people.remember(forwards[::-1]),
        people.remember(forwards),
        people.remember(forwards[::-1]),
    )

    assert sum(new) == 50
    assert len(await people.listed(tenant_key=tenant)) == 50


async def test_people_are_listed_page_by_page_linked_or_not(
    people: PeopleStore, tenant: str
) -> None:
    await people.remember([Sighting(tenant, f"ou_{n}", "", 0) for n in range(5)])
    first = FeishuPerson(tenant, "ou_0")
    await people.link(first, first.auth_user_id)

    page = await people.listed(tenant_key=tenant, only_unlinked=True, limit=2)
    rest = await people.listed(tenant_key=tenant, only_unlinked=True, after=page[-1].person)

    assert [one.person.open_id for one in page + rest] == ["ou_1", "ou_2", "ou_3", "ou_4"]


async def test_the_first_link_stays_and_a_stranger_is_not_linked(
    people: PeopleStore, tenant: str
) -> None:
    await people.remember([Sighting(tenant, "ou_a", "Alice", 5000)])
    person = FeishuPerson(tenant, "ou_a")

    assert await people.link(person, person.auth_user_id) == person.auth_user_id
    assert await people.link(person, uuid4()) == person.auth_user_id
    assert await people.link(FeishuPerson(tenant, "ou_b"), uuid4()) is None
    assert await people.listed(tenant_key=tenant, open_id="ou_b") == ()


async def test_a_forgotten_person_is_gone_from_one_tenant_and_exported_before(
    rpc: Rpc, people: PeopleStore, tenant: str, group: Group
) -> None:
    alice, other = group.person("alice"), f"other {tenant}"
    await people.remember([Sighting(t, alice, "Alice", 5000) for t in (tenant, other)])
    operations = Operations(rpc)

    exported = [row async for table, row in operations.export_person(alice) if table == "people"]
    counts = await operations.forget_person(alice, tenant)

    assert [row["name"] for row in exported] == ["Alice", "Alice"]
    assert counts["people"] == 1
    assert [one.person.tenant_key for one in await people.listed(open_id=alice)] == [other]


class TestTheTokenOfAnAuthUser:
    @pytest.fixture
    async def linked(self, people: PeopleStore, tenant: str) -> FeishuPerson:
        """Alice, linked, beside Bob, linked, and Carol, who is not."""
        names = (("ou_alice", "Alice"), ("ou_bob", "Bob"), ("ou_carol", "Carol"))
        await people.remember([Sighting(tenant, i, name, 5000) for i, name in names])
        for open_id, _ in names[:2]:
            person = FeishuPerson(tenant, open_id)
            await people.link(person, person.auth_user_id)
        return FeishuPerson(tenant, "ou_alice")

    async def test_serves_the_policy_of_another_app(
        self, backend: Backend, linked: FeishuPerson
    ) -> None:
        with psycopg.connect(backend.database_url) as connection:
            connection.execute(
                "create table public.todos (tenant_key text, assignee text, words text)"
            )
            connection.execute("alter table public.todos enable row level security")
            connection.execute("grant select on public.todos to authenticated")
            connection.execute(_POLICY)
            connection.execute(
                "insert into public.todos values (%s, 'ou_alice', 'hers'), (%s, 'ou_bob', 'his'),"
                " ('another tenant', 'ou_alice', 'of a namesake')",
                [linked.tenant_key, linked.tenant_key],
            )
            _become(connection, str(linked.auth_user_id))
            found = connection.execute("select words from public.todos").fetchall()
            connection.rollback()
        assert found == [("hers",)]

    async def test_asks_over_supabases_api_who_it_is(
        self, supabase_lite: SupabaseLite, tenant: str
    ) -> None:
        person = FeishuPerson(tenant, "ou_alice")
        server = supabase_lite
        with psycopg.connect(server.database_url, autocommit=True) as connection:
            connection.execute(
                "insert into public.people (tenant_key, open_id, auth_user_id) values (%s, %s, %s)",
                [person.tenant_key, person.open_id, person.auth_user_id],
            )
        claims = {"sub": str(person.auth_user_id), "role": "authenticated", "exp": 4102444800}
        token = jwt.encode(claims, server.jwt_secret, algorithm="HS256")
        async with httpx.AsyncClient() as client:
            answer = await client.post(
                f"{server.url}/rest/v1/rpc/feishu_person",
                headers={"apikey": server.publishable_key, "Authorization": f"Bearer {token}"},
                json={},
            )
            anonymous = await client.post(
                f"{server.url}/rest/v1/rpc/feishu_person",
                headers={"apikey": server.publishable_key},
                json={},
            )
        assert answer.json() == [{"tenant_key": tenant, "open_id": "ou_alice", "name": ""}]
        assert anonymous.status_code in (401, 403)


# As docs/setup-supabase.md gives it.
_POLICY = """
create policy todos_select on public.todos for select to authenticated using (
  (tenant_key, assignee) = (select p.tenant_key, p.open_id from public.feishu_person() p))
"""


def _become(connection: psycopg.Connection, sub: str, **claims: str) -> None:
    """From here to the end of the transaction, whoever has this token."""
    given = json.dumps({"sub": sub, "role": "authenticated", **claims})
    connection.execute("select set_config('request.jwt.claims', %s, true)", [given])
    connection.execute("set local role authenticated")


async def test_a_forgotten_person_is_known_again_only_when_they_are_met(
    rpc: Rpc, people: PeopleStore, tenant: str
) -> None:
    alice = f"ou_{uuid4().hex}"
    later = int((time.time() + 60) * 1000)
    await people.remember([Sighting(tenant, alice, "Alice", 5000)])
    await Operations(rpc).forget_person(alice)

    await people.remember([Sighting(tenant, alice, "Alice", 6000)])  # from before it
    await people.remember([Sighting(tenant, alice, "Alice", later, met=False)])
    assert await people.named(tenant, [alice]) == ()

    await people.remember([Sighting(tenant, alice, "Alice", later)])
    await people.remember([Sighting(tenant, alice, "Alice Lee", later + 1, met=False)])
    assert await people.named(tenant, [alice]) == (KnownName(alice, "Alice Lee", later + 1),)


async def test_a_name_that_is_written_during_a_forgetting_is_not_stored(
    people: PeopleStore, tenant: str, backend: Backend
) -> None:
    alice = f"ou_{uuid4().hex}"
    seen = int(time.time() * 1000)
    with psycopg.connect(backend.database_url) as forgetting:
        forgetting.execute("select public.forget_person(%s, null)", [alice])
        writing = asyncio.create_task(people.remember([Sighting(tenant, alice, "Alice", seen)]))
        with psycopg.connect(backend.database_url, autocommit=True) as watching:
            await waits_for_a_lock(watching)
        forgetting.commit()
        await writing
    assert await people.named(tenant, [alice]) == ()
