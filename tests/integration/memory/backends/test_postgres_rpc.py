"""A direct connection is shared by everybody: what one call leaves behind on it."""

from __future__ import annotations

import contextlib

import psycopg
import pytest
from structlog.testing import capture_logs

from bot.operations.maintenance import rehearse_turns
from bot.queue.inbox import Inbox
from bot.settings import Settings
from memory.backends.postgres import _AS_ROLE, PostgresRpc, connection_pool
from memory.errors import BadPatch, NotMigrated, StoreUnavailable
from memory.rpc import Statement
from memory.store import MemoryStore
from tests.support import postgres
from tests.support.people import Group

pytestmark = pytest.mark.anyio

_IDENTITY = "select current_user::text, current_setting('request.jwt.claims', true)"

# each table that a turn writes to says whether statements are compiled
_REFUSES_COMPILING = """
create function public.refuse_compiling() returns trigger language plpgsql as $$
begin
  if current_setting('jit')::boolean then
    raise 'statements on % are compiled', tg_relid::regclass;
  end if;
  return null;
end
$$;
do $$
declare t regclass;
begin
  execute format('alter database %I set jit = on', current_database());
  for t in select oid from pg_class
    where relkind = 'r' and relnamespace in ('public'::regnamespace, 'feishu_bot'::regnamespace)
  loop
    execute format('create trigger refuse_compiling before insert or update or delete on %s'
                   ' for each statement execute function public.refuse_compiling()', t);
  end loop;
end
$$
"""


@pytest.mark.parametrize("outcome", ["answered", "refused"])
async def test_a_call_leaves_nothing_of_its_identity_on_the_connection(
    shared_database_url: str, outcome: str
) -> None:
    pool = connection_pool(shared_database_url, size=1)
    await pool.open()
    memory, turn = MemoryStore(PostgresRpc(pool)), Group().turn()
    if outcome == "answered":
        await memory.merge_working_memory(turn, scope="chat", patch={"a": 1})
    else:
        with pytest.raises(BadPatch):
            await memory.merge_working_memory(turn, scope="chat", patch=[])  # type: ignore[arg-type]

    async with pool.connection() as connection:
        cursor = await connection.execute(_IDENTITY)
        assert await cursor.fetchone() == ("postgres", "")
    await memory.close()


async def test_only_the_beginning_of_a_turn_does_not_wait_for_the_disk(
    shared_database_url: str,
) -> None:
    pool = connection_pool(shared_database_url, size=1)
    await pool.open()
    async with pool.connection() as connection:
        await connection.execute("set synchronous_commit = on")
    rpc, group = PostgresRpc(pool), Group()
    context, turn_id = group.turn(), group.message("q")
    waits = Statement("select to_jsonb(current_setting('synchronous_commit'))", ())
    turn = {"p_turn_id": turn_id, **context.identity()}
    begun = {
        **turn, "p_chat_id": context.chat_id, "p_root_id": context.root_id, "p_actor_name": "",
        "p_tenant_key": context.tenant_key, "p_content": "Q", "p_history_limit": 1,
        "p_fold_after": 0, "p_heard": None, "p_decision": None,
    }  # fmt: skip
    answered = {**turn, "p_cards": '["A"]', "p_tool_calls": "[]"}
    sent = {**turn, "p_chunk": 0, "p_content": "A", "p_message_id": group.message("card")}

    assert (await rpc.call_and("begin_turn", begun, context, waits))[1] == "off"
    assert (await rpc.call_and("record_reply", answered, context, waits))[1] == "on"
    assert (await rpc.call_and("mark_sent", sent, context, waits))[1] == "on"
    await rpc.close()


async def test_no_statement_of_a_turn_is_compiled_where_the_server_compiles(
    database_url: str,
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(_REFUSES_COMPILING)
        with pytest.raises(psycopg.errors.RaiseException, match="compiled"):
            connection.execute("set jit = on; delete from agent_chats")
    with contextlib.closing(Inbox(database_url)) as inbox:
        assert inbox.enqueue("message:om_1", {}, lock=None, received_ms=0)
    async with connection_pool(database_url, size=1) as pool:
        with capture_logs() as logs:
            await rehearse_turns(Settings(), pool)

    assert [entry["event"] for entry in logs] == ["rehearsal.done"]


async def test_one_function_is_called_with_and_without_what_has_a_default(
    shared_database_url: str,
) -> None:
    pool = connection_pool(shared_database_url, size=1)
    await pool.open()
    rpc, context = PostgresRpc(pool), Group().turn()
    identity = {
        "p_conversation_id": context.conversation_id,
        "p_user_id": context.user_id,
        "p_actor_id": context.actor_id,
        "p_tenant_key": context.tenant_key,
        "p_model": "some-model",
        "p_limit": 5,
    }

    assert await rpc.call("messages_to_embed", identity, context) == []
    assert await rpc.call("messages_to_embed", {**identity, "p_recent": 3}, context) == []
    await rpc.close()


async def test_a_database_without_our_functions_says_to_migrate_it(blank_database_url: str) -> None:
    await _must_be_migrated(blank_database_url, says="does not exist: run scripts/migrate")


async def test_a_server_without_our_roles_says_to_migrate_it() -> None:
    await _must_be_migrated(postgres.start_server().url, says='"authenticated".*: run scripts')


async def _must_be_migrated(url: str, *, says: str) -> None:
    pool = connection_pool(url, size=1)
    await pool.open()
    memory = MemoryStore(PostgresRpc(pool))
    with pytest.raises(NotMigrated, match=says):
        await memory.working_memory(Group().turn())
    await memory.close()


async def test_after_a_failover_the_memory_is_reached_over_new_connections(
    database_url: str,
) -> None:
    async with connection_pool(database_url, size=2) as pool:
        memory, turn = MemoryStore(PostgresRpc(pool)), Group().turn()
        with postgres.standby(database_url), pytest.raises(StoreUnavailable):
            await memory.merge_working_memory(turn, scope="chat", patch={"a": 1})
        await memory.merge_working_memory(turn, scope="chat", patch={"a": 2})


async def test_the_server_ends_what_its_caller_can_no_longer_cancel(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute(
            "create function public.limits() returns jsonb language sql stable as"
            " 'select to_jsonb(current_setting(''statement_timeout''))';"
            "grant execute on function public.limits to authenticated, service_role"
        )
        # as a worker that was killed: nobody sends a cancellation
        with pytest.raises(psycopg.errors.QueryCanceled):
            owner.execute(
                psycopg.ClientCursor(owner).mogrify(
                    _AS_ROLE.decode() + "select pg_sleep(30)", ("authenticated", "", "200ms")
                )
            )
    pool = connection_pool(database_url)
    await pool.open()
    rpc = PostgresRpc(pool, timeout_s=2.0)

    assert await rpc.call("limits", {}, Group().turn()) == "2250ms"
    assert await rpc.call("limits", {}, None) == "2250ms"
    async with pool.connection() as connection:
        cursor = await connection.execute("show statement_timeout")
        assert await cursor.fetchone() == ("0",)
    await rpc.close()
