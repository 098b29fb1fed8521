"""The attack matrix: every object of the catalogue × every kind of token × every verb.

Tables and views are tried, in a database that grants as freely as hosted Supabase does by default;
what should come of it is said by the rules in `tests/support/access_rules.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import psycopg
import pytest
from psycopg import sql

from memory import migrations
from tests.support.access import OWN
from tests.support.access_rules import (
    AT_THE_CONSOLE,
    AT_THE_CONSOLE_LOOKING,
    IDENTITY,
    TABLES,
    VIEWS,
)
from tests.support.actors import ACTORS, ALICE, CARL, HERE, TENANT, become
from tests.support.attacks import HOSTED_DEFAULTS, VERBS, found, open_doors, seed
from tests.support.postgres import Server
from tests.support.sql_files import access

SCHEMAS = ("public", "bot_private", "feishu_bot")
CALLED_BY_TOKENS = ("of_a_turn", "of_functions", "of_origins")

# Every object of ours, but for those of extensions: kind, name with schema, and oid.
_OBJECTS = """
    select case c.relkind when 'S' then 'sequence' when 'r' then 'table' when 'p' then 'table'
           else 'view' end, c.relnamespace::regnamespace || '.' || c.relname, c.oid
    from pg_class c
    where c.relnamespace::regnamespace::text = any (%(schemas)s)
      and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
      and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'e')
    union all
    select 'function', p.pronamespace::regnamespace || '.' || p.proname, p.oid
    from pg_proc p
    where p.pronamespace::regnamespace::text = any (%(schemas)s)
      and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
"""
_WORDS = "'own about another private unauthored comment'"
_EVER = """'[["-infinity", "infinity"]]'"""
_BEST = (
    f"bot_private.recall_best('', 'everywhere', {_WORDS}, -1, 999999999999, {_EVER}, 1, 99,"
    " '{}', '{}', 0)"
)
# What runs as its owner and finds turns.
_AS_OWNER = (
    "bot_private.recall_newest('', 'everywhere', -1, 999999999999, 99)",
    f"(select array_remove(ids || before_ids || after_ids, null) from {_BEST})",
)
# The other policies of these tables ask for the tenant too, and the restrictive one saves work
# (test_statements_of_nobody.py).
_ASK_FOR_THE_TENANT_TWICE = (
    "agent_buttons", "agent_digest_sources", "agent_embeddings", "agent_presses", "agent_summaries",
    "agent_timers", "agent_withdrawals", "agent_working_memory_history", "chats",
    "imported_messages",
)  # fmt: skip
_PRIVILEGES = {
    "function": ("execute",),
    "sequence": ("select", "usage", "update"),
    "table": ("select", "insert", "update", "delete", "truncate", "references", "trigger"),
    "view": ("select", "insert", "update", "delete", "truncate"),
}


@pytest.fixture(scope="module")
def world(postgres_server: Server, migrated_template: str) -> Iterator[psycopg.Connection]:
    """A row of every kind in every table. The template is there for the roles that it made."""
    with (
        postgres_server.fresh_database() as url,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        connection.execute(HOSTED_DEFAULTS)
        migrations.apply_migrations(url)
        seed(connection)
        yield connection


def objects(connection: psycopg.Connection) -> list[tuple[str, str, int]]:
    return connection.execute(_OBJECTS, {"schemas": list(SCHEMAS)}).fetchall()


def privileges(connection: psycopg.Connection, role: str) -> set[tuple[str, str, str]]:
    """Objects that `role` holds a privilege on, and which, in schemas it may use."""
    held = set()
    for kind, name, oid in objects(connection):
        for privilege in _PRIVILEGES[kind]:
            asked = sql.SQL(
                "select has_schema_privilege(%s, %s, 'usage') and {}(%s, %s::oid, %s)"
            ).format(sql.Identifier(f"has_{'table' if kind == 'view' else kind}_privilege"))
            schema = name.split(".")[0]
            [answer] = connection.execute(asked, [role, schema, role, oid, privilege]).fetchone()
            if answer:
                held.add((kind, name, privilege))
    return held


def test_every_table_and_view_of_the_schema_has_rules(world: psycopg.Connection) -> None:
    there = {name for kind, name, _ in objects(world) if kind in ("table", "view")}

    assert {name for name in there if name.startswith("public.")} == {
        f"public.{name}" for name in (*TABLES, *VIEWS)
    }, "append the missing object to tests/support/access_rules.py"


def test_rows_are_reached_by_whom_the_rules_say_and_no_door_is_open(
    world: psycopg.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [*TABLES, *VIEWS]
    doors = [door for name in names for verb in VERBS for door in open_doors(world, name, verb)]
    others = [kind for kind, name, _ in objects(world) if name.removeprefix("public.") not in names]
    tried = len(names) * len(VERBS) + sum(len(_PRIVILEGES[kind]) for kind in others)
    with capsys.disabled():
        print(
            f"\nattack matrix: {len(names) + len(others)} objects × {len(ACTORS)} tokens"
            f" × their verbs = {tried * len(ACTORS)}, {len(doors)} open"
        )

    assert doors == []


def test_anon_holds_nothing(world: psycopg.Connection) -> None:
    assert privileges(world, "anon") == set()


def test_the_console_reads_and_keeps_its_looks_and_holds_nothing_else(
    world: psycopg.Connection,
) -> None:
    assert privileges(world, "bot_console") == {
        ("function", "bot_private.turn_chain", "execute"),
        ("function", "bot_private.first_asked", "execute"),
        ("function", "bot_private.is_question", "execute"),
        ("function", "bot_private.outcomes", "execute"),
        ("function", "bot_private.lists_ids", "execute"),
        ("function", "bot_private.told_record", "execute"),
        ("function", "bot_private.record_fields", "execute"),
        ("function", "bot_private.whole_record", "execute"),
        ("function", "bot_private.given_ids", "execute"),
        *(
            ("table", f"public.{name}", "select")
            for name in AT_THE_CONSOLE
            if name != "agent_chats"
        ),
        *(("table", f"public.{name}", "select") for name in AT_THE_CONSOLE_LOOKING),
        ("table", "feishu_bot.console_audit", "select"),
        ("table", "feishu_bot.model_usage", "select"),
        ("table", "feishu_bot.calls", "select"),
    }
    [title] = world.execute(
        "select has_column_privilege('bot_console', 'public.agent_chats', 'title', 'select')"
    ).fetchone()
    assert title is False


@pytest.mark.parametrize("verb", ["update", "delete", "insert"])
def test_the_console_cannot_change_what_is_kept_of_it(world: psycopg.Connection, verb: str) -> None:
    statement = {
        "update": "update feishu_bot.console_audit set admin = 'b'",
        "delete": "delete from feishu_bot.console_audit",
        "insert": "insert into feishu_bot.console_audit (admin, action, at)"
        " values ('a', 'look', now() - interval '1 day')",
    }[verb]
    with world.transaction(force_rollback=True):
        become(world, ACTORS["console, looking"])
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            world.execute(statement.encode())


def test_a_look_of_another_transaction_shows_nothing(world: psycopg.Connection) -> None:
    with world.transaction():
        become(world, ACTORS["console, looking"])
    with world.transaction(force_rollback=True):
        become(world, ACTORS["console"])
        assert world.execute("select from agent_messages").fetchall() == []


def test_a_signed_in_user_holds_what_tokens_need_and_nothing_else(
    world: psycopg.Connection,
) -> None:
    functions = {name for who in CALLED_BY_TOKENS for name in access()[who]}
    held = privileges(world, "authenticated")

    assert {name for kind, name, _ in held if kind == "function"} == functions
    assert {(kind, name) for kind, name, _ in held} - {("function", f) for f in functions} <= {
        *(("table", f"public.{name}") for name in TABLES),
        *(("view", f"public.{name}") for name in VIEWS),
    }
    assert {verb for kind, _, verb in held if kind != "function"} <= {"select", "insert", "delete"}


def test_what_a_token_may_change_or_not_read_is_said_column_by_column(
    world: psycopg.Connection,
) -> None:
    columns = world.execute("""
        select c.relname, a.attname,
               has_column_privilege('authenticated', c.oid, a.attnum, 'update'),
               has_column_privilege('authenticated', c.oid, a.attnum, 'select')
        from pg_class c join pg_attribute a on a.attrelid = c.oid
        where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
          and a.attnum > 0 and not a.attisdropped
    """).fetchall()

    for name, table in TABLES.items():
        mine = [column for column in columns if column[0] == name]
        assert {column for _, column, may, _ in mine if may} == set(table.may_change), name
        assert {column for _, column, _, may in mine if not may} == set(table.unread), name
        assert not IDENTITY & set(table.may_change)


def test_in_p2p_no_conversation_is_begun_about_anybody_else(world: psycopg.Connection) -> None:
    insert = (
        "insert into agent_chats (id, root_id, user_id, tenant_key, chat_id, chat_type) values"
        " ('feishu:oc_p2p_ou_carl:' || %(root)s, %(root)s, %(who)s, %(tenant)s, 'oc_p2p_ou_carl',"
        " 'p2p')"
    )
    for who, root in ((ALICE, "one"), (CARL, "two")):
        with world.transaction(force_rollback=True):
            become(world, ACTORS["member in p2p who speaks of the subject"])
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match='"agent_chats"'):
                world.execute(insert, {"root": root, "who": who, "tenant": TENANT})
    with world.transaction(force_rollback=True):
        become(world, ACTORS["member in p2p"])
        world.execute(insert, {"root": "three", "who": CARL, "tenant": TENANT})


@pytest.mark.parametrize("kind", ["reminder", "digest"])
def test_a_token_sets_reminders_and_no_digests(world: psycopg.Connection, kind: str) -> None:
    columns = TABLES["agent_timers"].make(OWN, "set by a token") | {"kind": kind}
    insert = sql.SQL("insert into agent_timers ({}) values ({})").format(
        sql.SQL(", ").join(map(sql.Identifier, columns)),
        sql.SQL(", ").join(sql.Placeholder() * len(columns)),
    )
    refused = pytest.raises(psycopg.errors.InsufficientPrivilege)
    with world.transaction(force_rollback=True):
        world.execute("set local session_replication_role = replica")
        become(world, ACTORS["subject here"])
        with refused if kind == "digest" else nullcontext():
            world.execute(insert, list(columns.values()))


@pytest.mark.parametrize(("minutes", "may"), [(9, True), (11, False)])
def test_who_manages_a_chat_is_believed_for_ten_minutes(
    world: psycopg.Connection, minutes: int, may: bool
) -> None:
    with world.transaction(force_rollback=True):
        world.execute(
            "insert into chat_managers (tenant_key, chat_id, open_id, role, seen_at)"
            " values (%s, %s, %s, 'manager', now() - make_interval(mins => %s))",
            [TENANT, HERE, ALICE, minutes],
        )
        become(world, ACTORS["subject here"])
        changed = world.execute("update chat_rules set mode = 'all'").rowcount
        assert changed == int(may)

        refused = pytest.raises(psycopg.errors.InsufficientPrivilege)
        with nullcontext() if may else refused, world.transaction():
            world.execute(
                "insert into chat_rules (tenant_key, chat_id) values (%s, %s)"
                " on conflict (tenant_key, chat_id) do nothing",
                [TENANT, HERE],
            )


@pytest.mark.parametrize("finds", _AS_OWNER)
def test_what_runs_as_its_owner_finds_what_the_policy_lets_read(
    world: psycopg.Connection, finds: str
) -> None:
    nothing = 0
    turns = dict(world.execute("select id, turn_id from agent_messages").fetchall())
    for who, actor in ACTORS.items():
        if actor.role != "authenticated":
            continue
        with world.transaction(force_rollback=True):
            world.execute("select bot_private.keep_terms(turn_id) from agent_messages")
            become(world, actor)
            [ids] = world.execute(f"select {finds}".encode()).fetchone() or [None]
        likely = {turns[one] for one in ids or ()}
        assert likely == found(world, "agent_messages", actor, "select"), who
        nothing += not likely

    assert 0 < nothing < len(ACTORS) - 2


def test_every_policy_that_is_opened_is_noticed(world: psycopg.Connection) -> None:
    """The test of the test: each policy in turn lets everybody through."""
    policies = world.execute("""
        select c.relname, p.polname, p.polcmd,
               case p.polcmd when 'a' then 'with check (true)'
                             when 'w' then 'using (true) with check (true)'
                             else 'using (true)' end
        from pg_policy p join pg_class c on c.oid = p.polrelid
        where c.relnamespace = 'public'::regnamespace
          and not p.polname like '%told'  -- test_late_joiners.py
          -- the console's role is let through there: who, where, when and how is for operators;
          -- who verifies a receipt has to read everything
          and not (pg_get_expr(p.polqual, p.polrelid) = 'true' and p.polroles in
                   (array['bot_console'::regrole::oid], array['bot_verifier'::regrole::oid]))
        order by 1, 2
    """).fetchall()
    verbs = {"r": ["select"], "a": ["insert"], "w": ["update"], "d": ["delete"], "*": [*VERBS]}
    unnoticed = []
    for table, policy, command, opened in policies:
        with world.transaction(force_rollback=True):
            world.execute(
                sql.SQL("alter policy {} on public.{} " + opened).format(
                    sql.Identifier(policy), sql.Identifier(table)
                )
            )
            if not any(next(open_doors(world, table, verb), "") for verb in verbs[command]):
                unnoticed.append(policy)

    assert len(policies) > 50
    assert unnoticed == [f"{name}_of_a_tenant" for name in _ASK_FOR_THE_TENANT_TWICE]


def _every_privilege_is_wanted(world: psycopg.Connection) -> None:
    test_anon_holds_nothing(world)
    test_a_signed_in_user_holds_what_tokens_need_and_nothing_else(world)
    test_what_a_token_may_change_or_not_read_is_said_column_by_column(world)


@pytest.mark.parametrize(
    "broken",
    [
        "create sequence public.stray",
        "create function public.stray() returns int language sql return 1",
        "grant update (user_id) on public.agent_messages to authenticated",
        "grant truncate on public.people to anon",
        "grant usage on schema feishu_bot to anon; grant select on feishu_bot.jobs to anon",
    ],
)
def test_a_privilege_too_many_is_noticed(world: psycopg.Connection, broken: str) -> None:
    with world.transaction(force_rollback=True):
        world.execute(broken.encode())
        with pytest.raises(AssertionError):
            _every_privilege_is_wanted(world)
