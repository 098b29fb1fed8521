"""Who reaches what people granted, and their sealed tokens: they alone, at their own place."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import psycopg
import pytest

from memory import migrations
from tests.support.actors import ACTORS, ALICE, BOB, OWN_PLACES, TENANT, Actor, become
from tests.support.attacks import HOSTED_DEFAULTS, VERBS, expected, found, seed
from tests.support.postgres import Server

EVERYBODY = {**ACTORS, **OWN_PLACES}
AT_HOME = "subject at their own place"
FUNCTIONS = {
    "get_user_tokens": "",
    "get_user_seal": "'access'",
    "use_user_token": "'holder'",
    "ask_user": "'a', 's', 600, 5, '{}', 'k', 'new'",
    "note_user_ask": "'ask', 'om_x', true, 60, '{}'",
    "answer_user_ask": "'ask', 'denied'",
    "connect_user": "'ask', 's', 'k', 'new', 7200, 'new', 7200",
    "close_user_ask": "'ask'",
    "keep_refreshed": "'holder', 's', 'k', 'new', 7200, 'new', 7200",
    "end_refresh": "'holder', 'lost'",
    "spend_user_token": "1",
    "disconnect_user": "",
    "note_ending_told": "",
    "reseal_user_tokens": "'k', 'access of ou_alice', 'new', 'refresh of ou_alice', 'new'",
}
SEALS = "select array_agg(s::text order by s::text) from bot_private.user_token_seals s"
CONDITIONS = {
    "tenant_key": "tenant_key = (select public.claim('tenant_key'))",
    "actor": "open_id = (select public.claim('actor'))",
    "sub": "open_id = (select public.claim('sub'))",
    "chat_id": "open_id = (select public.claim('chat_id'))",
    "chat_type": "(select public.claim('chat_type')) = 'p2p'",
    "guests": "(select public.claim('actor_tenant')) is null",
}


@pytest.fixture(scope="module")
def world(postgres_server: Server, migrated_template: str) -> Iterator[psycopg.Connection]:
    """Alice and Bob are connected, and Alice is asked for more."""
    with (
        postgres_server.fresh_database() as url,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        connection.execute(HOSTED_DEFAULTS)
        migrations.apply_migrations(url)
        seed(connection)
        connection.execute(
            "update user_tokens set granted_at = now(), access_until = now() + interval '1 hour',"
            " ask = 'ask', refreshed_by = 'holder'"
        )
        for person in (ALICE, BOB):
            for kind in ("access", "refresh", "device"):
                connection.execute(
                    "insert into bot_private.user_token_seals values (%s, %s, %s, %s)",
                    [TENANT, person, kind, f"{kind} of {person}"],
                )
        yield connection


def _doors(connection: psycopg.Connection, *verbs: str) -> Iterator[str]:
    for who, actor in EVERYBODY.items():
        for verb in verbs or VERBS:
            if found(connection, "user_tokens", actor, verb) != expected(
                "user_tokens", actor, verb
            ):
                yield f"{who}: {verb}"


def _call(connection: psycopg.Connection, actor: Actor, call: str) -> str:
    """What it gives, or the SQLSTATE of the refusal."""
    try:
        with connection.transaction():
            become(connection, actor)
            return str(connection.execute(f"select {call}".encode()).fetchall())
    except psycopg.Error as exc:
        return exc.sqlstate or "?"


def test_nobody_but_the_person_at_their_own_place_reaches_the_row(
    world: psycopg.Connection,
) -> None:
    assert list(_doors(world)) == []
    assert found(world, "user_tokens", OWN_PLACES[AT_HOME], "select") == {ALICE}


@pytest.mark.parametrize("left_out", CONDITIONS)
@pytest.mark.parametrize("policy", ["select", "insert"])
def test_each_condition_of_each_policy_keeps_somebody_out(
    world: psycopg.Connection, policy: str, left_out: str
) -> None:
    """Updates and deletions reach only rows that the policy for reading lets through, so a
    condition left out of their own policies opens nothing."""
    left = " and ".join(text for name, text in CONDITIONS.items() if name != left_out)
    clause = {"insert": f"with check ({left})"}.get(policy, f"using ({left})")
    with world.transaction(force_rollback=True):
        world.execute(f"alter policy user_tokens_{policy} on user_tokens {clause}".encode())
        assert next(_doors(world, policy), None)


@pytest.mark.parametrize("verb", ["select", "insert", "update", "delete"])
def test_no_role_reads_or_writes_the_seals(world: psycopg.Connection, verb: str) -> None:
    for role in ("anon", "authenticated", "service_role", "bot_console"):
        held = "select has_any_column_privilege(%(r)s, %(t)s, %(v)s)"
        if verb == "delete":
            held = "select has_table_privilege(%(r)s, %(t)s, %(v)s)"
        asked = {"r": role, "t": "bot_private.user_token_seals", "v": verb}
        assert world.execute(held.encode(), asked).fetchone() == (False,), role


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_serves_the_token_of_the_own_place_and_refuses_every_other(
    world: psycopg.Connection, function: str
) -> None:
    before = world.execute(SEALS.encode()).fetchone()
    refused = []
    for who, actor in EVERYBODY.items():
        with world.transaction(force_rollback=True):
            given = _call(world, actor, f"public.{function}({FUNCTIONS[function]})")
            world.execute("reset role")
            if "PT403" in given or "42501" in given:
                refused.append(who)
                assert world.execute(SEALS.encode()).fetchone() == before, who
            assert BOB not in given, who

    assert set(EVERYBODY) - set(refused) <= {
        AT_HOME,
        "a member at their own place",
        "another tenant's subject at their own place",
    }
    assert AT_HOME not in refused


@pytest.mark.parametrize("of_functions", ["seal_of('access')", "drop_seals('{access}')"])
def test_what_runs_as_its_owner_serves_the_token_s_own_person(
    world: psycopg.Connection, of_functions: str
) -> None:
    for who, actor in EVERYBODY.items():
        with world.transaction(force_rollback=True):
            given = _call(world, actor, f"bot_private.{of_functions}")
            world.execute("reset role")
            assert "of ou_" not in given or who == AT_HOME, who
            [left] = world.execute(
                "select count(*) from bot_private.user_token_seals"
                " where open_id = %s or kind <> 'access'",
                [BOB],
            ).fetchone() or [0]
            assert left == 5


def test_the_console_and_operators_see_since_when_and_no_seal(world: psycopg.Connection) -> None:
    with world.transaction(force_rollback=True):
        become(world, ACTORS["service"])
        [exported] = world.execute(
            "select public.export_person(%s, %s, 'user_tokens', null, 10)::text", [ALICE, TENANT]
        ).fetchone() or [""]
        tended = str(world.execute("select public.user_tokens_to_tend('k')").fetchall())
        counted = world.execute("select public.count_user_tokens('k')").fetchone()

    assert "granted_at" in exported
    assert "ou_alice" in tended
    assert "of ou_alice" not in exported + tended
    assert counted == ({"connected": 2, "other_key": 2},)


def test_whoever_is_forgotten_or_leaves_the_last_group_has_no_tokens(
    world: psycopg.Connection,
) -> None:
    count = "select count(*) from bot_private.user_token_seals where open_id = %s"
    with world.transaction(force_rollback=True):
        become(world, ACTORS["service"])
        world.execute("select public.forget_person(%s, null)", [BOB])
        world.execute("reset role")
        assert world.execute(count.encode(), [BOB]).fetchone() == (0,)
        assert world.execute(count.encode(), [ALICE]).fetchone() == (3,)
    with world.transaction(force_rollback=True):
        world.execute(
            "insert into chat_members (tenant_key, chat_id, open_id) values (%s, 'oc_2', %s)",
            [TENANT, ALICE],
        )
        world.execute("delete from chat_members where open_id = %s", [BOB])
        become(world, ACTORS["service"])
        world.execute("select public.drop_tokens_of_leavers(array[%s, %s])", [ALICE, BOB])
        world.execute("reset role")
        assert world.execute(count.encode(), [BOB]).fetchone() == (0,)
        assert world.execute(count.encode(), [ALICE]).fetchone() == (3,)


@pytest.mark.parametrize(
    "news",
    [
        "remove_chat_members(%(tenant)s, 'oc_2', %(bob)s, %(now)s)",
        "save_chat_members('oc_2', '[]', %(now)s)",
    ],
    ids=["by an event", "by a list"],
)
def test_the_news_that_somebody_left_their_last_group_takes_their_tokens(
    world: psycopg.Connection, news: str
) -> None:
    person = [{"tenant_key": TENANT, "open_id": BOB}]
    with world.transaction(force_rollback=True):
        world.execute("delete from chat_members where open_id = %s", [BOB])
        world.execute(
            "insert into chats (tenant_key, chat_id, chat_type) values (%s, 'oc_2', 'group')",
            [TENANT],
        )
        world.execute(
            "insert into chat_members (tenant_key, chat_id, open_id, seen_at)"
            " values (%s, 'oc_2', %s, now() - interval '1 hour')",
            [TENANT, BOB],
        )
        now = {"now": int(time.time() * 1000), "tenant": TENANT, "bob": json.dumps(person)}
        become(world, ACTORS["service"])
        world.execute(f"select public.{news}".encode(), now)
        world.execute("reset role")
        left = world.execute("select distinct open_id from bot_private.user_token_seals")
        assert left.fetchall() == [(ALICE,)]
