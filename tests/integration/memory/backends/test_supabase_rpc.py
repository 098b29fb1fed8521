"""What Supabase's API says besides results, over real HTTP, and what it is called."""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from typing import Any

import psycopg
import pytest

from lab.doubles import lite
from lab.doubles.faulty_api import ApiFault, faulty_api
from lab.doubles.lite import SupabaseLite
from memory.backends.supabase import SupabaseRpc, key_of_secret
from memory.backends.supabase_answers import (
    NULLABLE_FUNCTIONS,
    READ_FUNCTIONS,
    VOID_FUNCTIONS,
)
from memory.errors import KeyRefused, NotMigrated, StoreConnectionLost, StoreUnavailable
from memory.store import MemoryStore
from tests.support import postgres
from tests.support.people import Group

pytestmark = pytest.mark.anyio

WRONG_SECRET = "another-signing-key-that-nobody-here-knows-01234"


@pytest.fixture
def group() -> Group:
    return Group()


def _memory(url: str, **keys: Any) -> MemoryStore:
    given = {
        "publishable_key": lite.PUBLISHABLE_KEY,
        "secret_key": lite.SECRET_KEY,
        "signing": key_of_secret(lite.JWT_SECRET),
    }
    return MemoryStore(SupabaseRpc(url, **{**given, **keys}, timeout_s=2.0))


@pytest.mark.parametrize(
    "fault",
    [
        ApiFault(401, json.dumps({"message": "Invalid API key", "hint": "Double check"})),
        ApiFault(429, json.dumps({"message": "API rate limit exceeded"})),
        ApiFault(429, "<html>slow down</html>", "text/html"),
        ApiFault(500, json.dumps({"code": 500, "message": "An unexpected error occurred"})),
        ApiFault(500, json.dumps({"code": "500", "error_code": "x", "msg": "no"})),
        ApiFault(503, "upstream connect error", "text/plain"),
        ApiFault(200, "<html>please log in</html>", "text/html"),
        ApiFault(200, '{"state": "op', cut=True),
        ApiFault(200, '{"state": "op'),
        ApiFault(200, ""),
        ApiFault(200, " \n"),
        ApiFault(200, "null"),
        ApiFault(200, "[]"),
        ApiFault(200, "", "application/json; charset=utf-8"),
        ApiFault(204, ""),
        ApiFault(302, ""),
    ],
    ids=lambda fault: f"{fault.status} {fault.body[:20]}",
)
async def test_an_answer_that_is_not_the_memorys_means_that_it_is_away(
    group: Group, fault: ApiFault
) -> None:
    with faulty_api(fault=fault) as api:
        memory = _memory(api.url)
        with pytest.raises(StoreUnavailable) as raised:
            await memory.begin_turn(group.turn(), turn_id=group.message("q"), content="Q")
        await memory.close()

    assert isinstance(raised.value, KeyRefused) == (fault.status == 401)


@pytest.mark.parametrize("fault", [ApiFault(200, ""), ApiFault(200, "null"), ApiFault(204, "")])
async def test_every_step_of_a_turn_takes_a_missing_result_for_an_unknown_outcome(
    group: Group, fault: ApiFault
) -> None:
    with faulty_api(fault=fault) as api:
        memory = _memory(api.url)
        sent = {"turn_id": "om_q", "chunk": 0, "content": "A", "message_id": "om_a"}
        for step in (
            partial(memory.begin_turn, turn_id="om_q", content="Q"),
            partial(memory.record_reply, turn_id="om_q", cards=["A"]),
            partial(memory.preface_reply, turn_id="om_q", note="late"),
            partial(memory.mark_sent, **sent),
            memory.working_memory,
            memory.overview,
        ):
            with pytest.raises(StoreUnavailable, match="no result"):
                await step(group.turn())
        await memory.close()


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"publishable_key": "sb_publishable_of_another_project"}, "SUPABASE_PUBLISHABLE_KEY"),
        ({"signing": key_of_secret(WRONG_SECRET)}, "SUPABASE_JWT_SECRET"),
    ],
)
async def test_a_wrong_key_of_a_person_is_named(
    supabase_lite: SupabaseLite, group: Group, given: dict[str, Any], named: str
) -> None:
    memory = _memory(supabase_lite.url, **given)
    with pytest.raises(KeyRefused, match=named):
        await memory.working_memory(group.turn())
    await memory.close()


@pytest.mark.parametrize("wrong", ["sb_secret_of_another_project", lite.PUBLISHABLE_KEY])
async def test_a_wrong_key_of_the_service_is_named(supabase_lite: SupabaseLite, wrong: str) -> None:
    memory = _memory(supabase_lite.url, secret_key=wrong, publishable_key="sb_publishable_x")
    with pytest.raises(KeyRefused, match="SUPABASE_SECRET_KEY"):
        await memory.ping()
    await memory.close()


async def test_an_api_over_a_blank_database_says_to_migrate_it(
    postgres_server: postgres.Server, blank_database_url: str, group: Group
) -> None:
    with lite.run(blank_database_url, socket_folder=postgres_server.socket_folder) as server:
        memory = _memory(server.url)
        with pytest.raises(NotMigrated, match="run scripts/migrate"):
            await memory.ping()
        with pytest.raises(NotMigrated, match="run scripts/migrate"):
            await memory.working_memory(group.turn())
        await memory.close()


async def test_the_gateway_passes_on_what_the_memory_says(
    supabase_lite: SupabaseLite, group: Group
) -> None:
    with faulty_api(supabase_lite.port) as api:
        memory = _memory(dataclasses.replace(supabase_lite, port=api.port).url)
        await memory.merge_working_memory(group.turn(), scope="chat", patch={"a": 1})
        assert (await memory.working_memory(group.turn())).chat == {"a": 1}
        await memory.close()


@pytest.mark.parametrize(("reads", "asked"), [(True, 8), (False, 1)])
async def test_a_call_whose_connection_ends_is_made_again_if_it_only_reads(
    group: Group, reads: bool, asked: int
) -> None:
    with faulty_api(fault=ApiFault(200, '{"chat": {}', cut=True)) as api:
        memory = _memory(api.url)
        call = (
            memory.working_memory if reads else partial(memory.clear_working_memory, scope="chat")
        )
        with pytest.raises(StoreConnectionLost):
            await call(group.turn())
        await memory.close()
    assert len(api.asked) == asked


async def test_a_read_survives_connections_that_end_now_and_then(
    supabase_lite: SupabaseLite, group: Group
) -> None:
    lost = ApiFault(200, "{", cut=True, every=3)
    with faulty_api(supabase_lite.port, fault=lost) as api:
        memory = _memory(dataclasses.replace(supabase_lite, port=api.port).url)
        for _ in range(12):
            await memory.working_memory(group.turn())
        await memory.close()


def test_the_calls_that_are_repeated_change_nothing(database_url: str) -> None:
    with psycopg.connect(database_url) as database:
        rows = database.execute(
            "select proname from pg_proc where pronamespace = 'public'::regnamespace"
            " and provolatile in ('s', 'i')"
        )
        assert {name for (name,) in rows} >= READ_FUNCTIONS


def test_what_returns_nothing_or_null_is_known(database_url: str) -> None:
    """Of any other function a missing result is an unknown outcome."""
    with psycopg.connect(database_url) as database:
        rows = database.execute(
            "select proname, prorettype::regtype::text from pg_proc"
            " where pronamespace = 'public'::regnamespace"
        )
        kinds = dict(rows.fetchall())
    returns_nothing = {name for name, kind in kinds.items() if kind == "void"}
    assert returns_nothing == VOID_FUNCTIONS
    assert set(kinds) - returns_nothing >= NULLABLE_FUNCTIONS
    assert not any(kinds[name] == "boolean" for name in NULLABLE_FUNCTIONS)


@pytest.mark.parametrize("fault", [ApiFault(200, ""), ApiFault(200, "null"), ApiFault(204, "")])
async def test_a_missing_result_is_an_unknown_outcome_of_any_function(fault: ApiFault) -> None:
    with faulty_api(fault=fault) as api:
        memory = _memory(api.url)
        call = memory._rpc.call
        for function in ("set_timer", "press_button", "is_topic_group", "count_people"):
            with pytest.raises(StoreUnavailable, match="no result"):
                await call(function, {}, None)
        if fault.body == "null":
            assert await call("due_timer", {}, None) is None
        else:
            with pytest.raises(StoreUnavailable, match="no result"):
                await call("due_timer", {}, None)
        if fault.status == 204:
            assert not await call("end_welcome", {}, None)
        await memory.close()
