"""Whatever a signed-in user sends costs the database little: limits come before work."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import jwt
import psycopg
import pytest
from psycopg import sql

from tests.support.lite import SupabaseLite

SIZE = 400_000  # characters; more than any reply, less than what an API refuses by itself
MOST_MS = 1500  # of a machine that is busy with other tests
CHAT, CONVERSATION, PERSON = "oc_limits", "feishu:oc_limits:main", "ou_limits"

HOSTILE = {
    "deep arrays": "[" * SIZE,
    "deep objects": '{"a":' * (SIZE // 5) + "1" + "}" * (SIZE // 5),
    "many keys": "{" + ",".join(f'"k{n}":{{}}' for n in range(SIZE // 9)) + "}",
    "many elements": json.dumps([f"t{n}" for n in range(SIZE // 10)]),
    "many records": "[" + ",".join(['{"message_id":"m","shown":["a"]}'] * (SIZE // 33)) + "]",
    "one long word": "a" * SIZE,
    "many words": "ab 你好 " * (SIZE // 6),
}
# What says who asks, and where: with these the call gets past the first check.
IDENTITY = {
    "p_user_id": PERSON,
    "p_actor_id": PERSON,
    "p_operator_id": PERSON,
    "p_conversation_id": CONVERSATION,
    "p_chat_id": CHAT,
    "p_root_id": "main",
    "p_tenant_key": "",
    "p_turn_id": "om_limits",
    "p_note_id": "note_limits",
    "p_scope": "thread",
    "name": "sub",
}
TOKENS = {
    "signed in": {"sub": "6f1d2c5e-0b6a-5f0e-9a53-0d7f5b1c4e88", "role": "authenticated"},
    "of a turn": {"sub": PERSON, "actor": PERSON, "chat_id": CHAT, "chat_type": "p2p"},
}
ANY = {
    "integer": "2000000000",
    "bigint": "2000000000",
    "boolean": "true",
    "double precision": "1",
    "timestamp with time zone": "2026-03-03",
}


@pytest.fixture(scope="module")
def connection(module_database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(
        module_database_url,
        autocommit=True,
        cursor_factory=psycopg.ClientCursor,
        prepare_threshold=None,
    ) as opened:
        yield opened


def callable_functions(connection: psycopg.Connection) -> list[tuple[str, list[str], list[str]]]:
    """What a signed-in user can call over the API: name, names and types of the arguments."""
    return connection.execute("""
        select p.proname, coalesce(p.proargnames[:p.pronargs], '{}'),
               array(select format_type(t, null) from unnest(p.proargtypes) t)
        from pg_proc p
        where p.pronamespace = 'public'::regnamespace and p.prorettype <> 'trigger'::regtype
          and has_function_privilege('authenticated', p.oid, 'execute') and p.pronargs > 0
          and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
        order by 1
    """).fetchall()


def arguments(names: list[str], types: list[str], hostile: str) -> dict[str, str]:
    """Who asks and where as it should be, and `hostile` wherever a text is taken."""
    return {
        name: IDENTITY[name] if name in IDENTITY else ANY.get(type_, hostile)
        for name, type_ in zip(names, types, strict=True)
    }


def is_slow(
    connection: psycopg.Connection,
    token: str,
    function: str,
    arguments: dict[str, str],
    most_ms: int = MOST_MS,
) -> bool:
    """Whether the server works on a call, refused or not, for longer than `most_ms`."""
    named = sql.SQL(", ").join(
        sql.SQL("{} => {}").format(sql.Identifier(name), sql.Literal(value))
        for name, value in arguments.items()
    )
    with connection.transaction(force_rollback=True):
        claims = json.dumps(TOKENS[token])
        connection.execute("select set_config('request.jwt.claims', %s, true)", [claims])
        connection.execute("set local role authenticated")
        connection.execute(f"set local statement_timeout = {most_ms}".encode())
        try:
            with connection.transaction():
                connection.execute(
                    sql.SQL("select public.{}({})").format(sql.Identifier(function), named)
                )
        except psycopg.errors.QueryCanceled:
            return True
        except psycopg.Error:
            return False
    return False


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_costs_little(connection: psycopg.Connection, token: str, kind: str) -> None:
    slow = [
        function
        for function, names, types in callable_functions(connection)
        if is_slow(connection, token, function, arguments(names, types, HOSTILE[kind]))
    ]

    assert slow == []


def test_a_slow_function_would_be_seen(connection: psycopg.Connection) -> None:
    with connection.transaction(force_rollback=True):
        connection.execute(
            "create function public.slow(p_text text) returns void language sql"
            " as 'select pg_sleep(5)'; grant execute on function public.slow to authenticated"
        )
        assert "slow" in [name for name, *_ in callable_functions(connection)]
        assert is_slow(connection, "signed in", "slow", {"p_text": ""})


def test_the_largest_patch_that_is_taken_costs_little(connection: psycopg.Connection) -> None:
    small = "{" + ",".join(f'"k{n}":{{}}' for n in range(3000)) + "}"
    deep = "{" + ",".join(f'"{n}":' + '{"a":' * 30 + "1" + "}" * 30 for n in range(173)) + "}"
    for patch in (small, deep):
        assert 30_000 < len(patch) <= 32_768
        call = {
            "p_conversation_id": CONVERSATION, "p_chat_id": CHAT, "p_user_id": PERSON,
            "p_actor_id": PERSON, "p_tenant_key": "", "p_scope": "chat", "p_patch": patch,
        }  # fmt: skip
        assert not is_slow(connection, "of a turn", "merge_working_memory", call, 5000)


@pytest.mark.parametrize("schema", ["public", "bot_private"])
def test_what_functions_are_made_of_cannot_be_called_over_the_api(
    supabase_lite: SupabaseLite, schema: str
) -> None:
    claims = {"sub": PERSON, "role": "authenticated", "aud": "authenticated", "exp": 4102444800}
    token = jwt.encode(claims, supabase_lite.jwt_secret, algorithm="HS256")
    patch = {f"k{n}": {} for n in range(40_000)}

    answer = httpx.post(
        f"{supabase_lite.url}/rest/v1/rpc/merge_patch",
        json={"p_target": {}, "p_patch": patch},
        headers={
            "apikey": supabase_lite.publishable_key,
            "Authorization": f"Bearer {token}",
            "Content-Profile": schema,
        },
    )

    assert answer.status_code in (404, 406), answer.text
    assert answer.json()["code"] in ("PGRST202", "PGRST106")
