"""Every function a token can call, called by every kind of token with somebody else's identity.

Whatever comes back holds no word of a row that the rules do not let the token read, and no row of
another place is there afterwards that was not there before, or is gone, or differs.
"""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql

from memory import migrations
from tests.support.access import ABOUT, LASTING, OWN, PRIVATELY, Row, here, reached, wanted
from tests.support.actors import ACTORS, ALICE, BOB, HERE, TENANT, Actor, become

# A word of each row, in everything that is kept of it, which whoever asks knows; beside it stands a
# secret.
WORDS = {row.name: f"word{n}word" for n, row in enumerate((OWN, ABOUT, PRIVATELY, LASTING))}
ROWS = {row.name: row for row in (OWN, ABOUT, PRIVATELY, LASTING)}
SECRETS = {name: f"secret{n}" for n, name in enumerate(WORDS)}
TOKENS = {name: actor for name, actor in ACTORS.items() if actor.role == "authenticated"}
CALLABLE = """
    select p.proname, coalesce(p.proargnames[:p.pronargs], '{}'),
           array(select format_type(t, null) from unnest(p.proargtypes) t)
    from pg_proc p
    where p.pronamespace = 'public'::regnamespace and p.prorettype <> 'trigger'::regtype
      and has_function_privilege('authenticated', p.oid, 'execute')
      and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
    order by 1
"""
KEPT = ("agent_messages", "agent_working_memory", "agent_notes", "agent_turns", "agent_chats")
BY_TYPE = {
    "integer": "100", "bigint": "100", "boolean": "false", "double precision": "1",
    "timestamp with time zone": "2026-01-01",
}  # fmt: skip


@pytest.fixture(scope="module")
def world(module_database_url: str, database: psycopg.Connection) -> psycopg.Connection:
    """What Alice and Bob said in HERE, and Alice in p2p, written by the functions themselves."""
    assert migrations.pending_steps(module_database_url) == []
    database.execute(
        "insert into chat_members (tenant_key, chat_id, open_id, joined_at)"
        " select %s, %s, p, j::timestamptz from (values (%s, null), (%s, null),"
        " ('ou_carl', '2026-01-01'), ('ou_fay', '2126-01-01')) m (p, j)",
        [TENANT, HERE, ALICE, BOB],
    )
    for row in (OWN, ABOUT, PRIVATELY):
        _say(database, row)
    return database


def _say(connection: psycopg.Connection, row: Row) -> None:
    word, said = WORDS[row.name], f"{WORDS[row.name]} {SECRETS[row.name]}"
    thread, turn = f"feishu:{row.chat}:om_{word}", f"om_{word}"
    who = [thread, row.subject, row.author]
    calls: list[tuple[str, list[object]]] = [
        ("open_turn(%s, %s, %s, %s, %s, %s, 'A', %s, %s, 10)",
         [turn, thread, row.chat, turn, row.subject, row.author, TENANT, said]),
        ("record_reply(%s, %s, %s, %s, %s, '[]')",
         [turn, *who, f'["you said {said}"]']),
        ("mark_sent(%s, %s, %s, %s, 0, %s, %s)",
         [turn, *who, f"you said {said}", f"om_card_{word}"]),
        ("create_note(%s, %s, %s, %s, %s, %s, %s, '', '[]')",
         [*who, TENANT, row.chat, f"note_{word}", said]),
        ("merge_working_memory(%s, %s, %s, %s, %s, 'chat', %s)",
         [thread, row.chat, row.subject, row.author, TENANT, f'{{"said": "{said}"}}']),
    ]  # fmt: skip
    for call, values in calls:
        connection.execute(f"select {call}".encode(), values)
    if row is OWN:
        connection.execute(
            "select merge_working_memory(%s, %s, %s, %s, %s, 'user', %s)",
            [*(thread, row.chat, ALICE, ALICE, TENANT), f'{{"fact": "{SECRETS["lasting"]}"}}'],
        )


def _arguments(row: Row, names: list[str], types: list[str]) -> dict[str, str]:
    word = WORDS[row.name]
    known = {
        "p_conversation_id": f"feishu:{row.chat}:om_{word}", "p_chat_id": row.chat,
        "p_user_id": row.subject, "p_actor_id": str(row.author), "p_tenant_key": TENANT,
        "p_operator_id": str(row.author), "p_root_id": f"om_{word}", "p_turn_id": f"om_{word}",
        "p_note_id": f"note_{word}", "p_message_id": f"om_card_{word}", "p_query": f"said {word}",
        "p_terms": f'["{word}"]', "p_tags": "[]", "p_add_tags": "[]", "p_remove_tags": "[]",
        "p_patch": '{"x": 1}', "p_cards": "[]", "p_tool_calls": "[]", "p_buttons": "[]",
        "p_records": "[]", "p_spans": "[]", "p_rows": "[1]", "p_verbatim": "[]",
        "p_scope": "everywhere", "p_embeddings": "[]", "p_heard": "null", "p_decision": "null",
        "p_told": "null", "p_embedding": "[1]",
    }  # fmt: skip
    return {
        name: known.get(name, BY_TYPE.get(type_, "x"))
        for name, type_ in zip(names, types, strict=True)
    }


def _own_arguments(actor: Actor, row: Row, arguments: dict[str, str]) -> dict[str, str]:
    """The same with the token's identity, and the other's place and ids."""
    own = {
        "p_user_id": actor.claim("sub"), "p_actor_id": actor.claim("actor"),
        "p_conversation_id": f"feishu:{actor.claim('chat_id')}:om_{WORDS[row.name]}",
    }  # fmt: skip
    return {name: own.get(name) or value for name, value in arguments.items()}


def _tried(actor: Actor, names: list[str], types: list[str]) -> list[dict[str, str]]:
    """The calls that differ: many functions take neither an identity nor a row."""
    tried: list[dict[str, str]] = []
    for row in (OWN, ABOUT, PRIVATELY):
        theirs = _arguments(row, names, types)
        own = _own_arguments(actor, row, theirs)
        tried += [one for one in (theirs, own) if one not in tried]
    return tried


def _call(
    connection: psycopg.Connection,
    actor: Actor,
    function: str,
    arguments: dict[str, str],
    before: set[str],
) -> tuple[str, list[str]]:
    """What it gives, and the rows of other places that it changed: that are not as `before`. Rolled
    back."""
    named = sql.SQL(", ").join(
        sql.SQL("{} => {}").format(sql.Identifier(name), sql.Literal(value))
        for name, value in arguments.items()
    )
    statement = sql.SQL("select x::text from public.{}({}) x").format(
        sql.Identifier(function), named
    )
    with connection.transaction(force_rollback=True):
        try:
            with connection.transaction():
                become(connection, actor)
                given = str(connection.execute(statement).fetchall())
        except psycopg.Error as exc:
            return str(exc), []
        connection.execute("reset role")
        changed = before ^ _elsewhere(connection, actor) if _has_written(connection) else ()
    return given, sorted(changed)


def _has_written(connection: psycopg.Connection) -> bool:
    """Postgres gives a transaction an id when it first writes; most calls here write nothing."""
    [written] = connection.execute("select pg_current_xact_id_if_assigned() is not null").fetchall()
    return bool(written[0])


def _elsewhere(connection: psycopg.Connection, actor: Actor) -> set[str]:
    """The rows that are neither of the token's place nor of what its sender may change anywhere."""
    rows = set()
    for table in KEPT:
        query = (
            f"select %s || to_jsonb(t)::text from public.{table} t"
            " where (tenant_key, chat_id) is distinct from (%s, %s)"
            " and not (%s and to_jsonb(t) ->> 'user_id' = %s)"
        )
        own = table in ("agent_notes", "agent_working_memory")
        place = [actor.claim("tenant_key"), actor.claim("chat_id")]
        found = connection.execute(query.encode(), [table, *place, own, actor.claim("actor")])
        rows |= {row for (row,) in found}
    return rows


def _may_hear(actor: Actor, name: str) -> bool:
    row = ROWS[name]
    mine = actor.claim("tenant_key") == TENANT and actor.claim("actor") == row.author
    return (reached(actor, row) and wanted(actor, row)) or (mine and here(actor, row))


@pytest.mark.parametrize("token", TOKENS)
def test_nobody_is_told_or_changes_what_they_may_not(world: psycopg.Connection, token: str) -> None:
    actor, leaks = TOKENS[token], []
    before = _elsewhere(world, actor)
    for function, names, types in world.execute(CALLABLE).fetchall():
        for arguments in _tried(actor, names, types):
            given, changed = _call(world, actor, function, arguments, before)
            heard = [name for name, secret in SECRETS.items() if secret in given]
            leaks += [(function, name) for name in heard if not _may_hear(actor, name)]
            leaks += [(function, one[:60]) for one in changed]

    assert leaks == [], leaks


@pytest.mark.parametrize("table", ["agent_messages", "agent_notes"])
def test_a_policy_that_lets_everybody_read_is_heard(world: psycopg.Connection, table: str) -> None:
    with world.transaction(force_rollback=True):
        world.execute(f"alter policy {table}_select on public.{table} using (true)".encode())
        with pytest.raises(AssertionError, match="private"):
            test_nobody_is_told_or_changes_what_they_may_not(world, "somebody in another group")


def test_who_may_hear_does(world: psycopg.Connection) -> None:
    """The calls that are tried are such that they work."""
    arguments = _arguments(OWN, *_signature(world, "recall"))

    given, _ = _call(world, ACTORS["subject here"], "recall", arguments, set())

    assert SECRETS["own"] in given
    assert SECRETS["private"] not in given


def _signature(connection: psycopg.Connection, function: str) -> tuple[list[str], list[str]]:
    [found] = [row for row in connection.execute(CALLABLE).fetchall() if row[0] == function]
    return found[1], found[2]
