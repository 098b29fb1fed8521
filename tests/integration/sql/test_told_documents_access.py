"""Which documents answers told of: the service alone reads it, a turn names and notes its own."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from memory import migrations
from tests.support.actors import (
    ACTORS,
    ALICE,
    BOB,
    HERE,
    OWN_PLACES,
    TENANT,
    THERE,
    Actor,
    become,
    succeeds,
)
from tests.support.attacks import HOSTED_DEFAULTS
from tests.support.postgres import Server

EVERYBODY = {**ACTORS, **OWN_PLACES}
TABLE = sql.Identifier("bot_private", "told_documents")
VERBS = {
    "select": sql.SQL("select from {}"),
    "insert": sql.SQL(
        "insert into {} (tenant_key, chat_id, chat_type, kind, token, actor_id)"
        " values ('t', 'c', 'group', 'docx', 'x', 'a')"
    ),
    "update": sql.SQL("update {} set open_at = now()"),
    "delete": sql.SQL("delete from {}"),
}
OF_THE_SERVICE = {
    "take_told_documents": "-1, 100",
    "drop_told_document": "1",
    "documents_behind_sources": f"'{TENANT}', '[\"om_read\"]'",
    "note_document_open": "1, 0",
    "release_share": "'om_read'",
}
CONVERSATION = f"feishu:{HERE}:main"
ROWS = "select array_agg(d::text order by d.id) from bot_private.told_documents d"
GIVEN = (
    "select array_agg(t.id || t.given::text || t.read_messages::text order by t.id)"
    " from agent_turns t"
)


@pytest.fixture(scope="module")
def world(postgres_server: Server, migrated_template: str) -> Iterator[psycopg.Connection]:
    """Alice has read a document in a group, Bob another one in another group, with the same word
    in both; Alice asks once more."""
    with (
        postgres_server.fresh_database() as url,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        connection.execute(HOSTED_DEFAULTS)
        migrations.apply_migrations(url)
        for chat, person, turn in ((HERE, ALICE, "om_read"), (THERE, BOB, "om_there")):
            [number] = connection.execute(
                "insert into bot_private.told_documents"
                " (tenant_key, chat_id, chat_type, kind, token, actor_id)"
                " values (%s, %s, 'group', 'docx', %s, %s) returning id",
                [TENANT, chat, f"token of {person}", person],
            ).fetchone() or [0]
            _turn(connection, turn, chat, person, f"doc:{number}")
            connection.execute(
                "insert into bot_private.source_terms values ('doc:' || %(d)s, %(t)s,"
                " bot_private.keyed_hashes('doc:' || %(d)s, '{quillfeather}'))",
                {"d": number, "t": turn},
            )
        _turn(connection, "om_open", HERE, ALICE, "", state="open")
        yield connection


def _turn(
    connection: psycopg.Connection,
    turn: str,
    chat: str,
    person: str,
    read: str,
    state: str = "sent",
) -> None:
    conversation = f"feishu:{chat}:main"
    connection.execute(
        "insert into agent_chats (id, user_id, tenant_key, chat_id, root_id)"
        " values (%s, %s, %s, %s, 'main') on conflict do nothing",
        [conversation, person, TENANT, chat],
    )
    connection.execute(
        "insert into agent_turns (id, conversation_id, user_id, actor_id, tenant_key, chat_id,"
        " state, read_messages) values (%s, %s, %s, %s, %s, %s, %s, %s)",
        [turn, conversation, person, person, TENANT, chat, state, [read] if read else []],
    )


def _call(connection: psycopg.Connection, actor: Actor, call: str) -> str:
    """What it gives, or the SQLSTATE of the refusal."""
    try:
        with connection.transaction():
            become(connection, actor)
            return str(connection.execute(f"select {call}".encode()).fetchall())
    except psycopg.Error as exc:
        return exc.sqlstate or "?"


def _kept(connection: psycopg.Connection, query: str) -> object:
    connection.execute("reset role")
    return connection.execute(query.encode()).fetchone()


@pytest.mark.parametrize("verb", VERBS)
def test_the_service_alone_reaches_the_table(world: psycopg.Connection, verb: str) -> None:
    statement = VERBS[verb].format(TABLE)
    reached = {who for who, actor in EVERYBODY.items() if succeeds(world, actor, statement)}
    assert reached == {"service"}


@pytest.mark.parametrize("function", OF_THE_SERVICE)
def test_what_looks_after_documents_is_refused_to_every_token(
    world: psycopg.Connection, function: str
) -> None:
    call = f"public.{function}({OF_THE_SERVICE[function]})"
    for who, actor in EVERYBODY.items():
        with world.transaction(force_rollback=True):
            assert (_call(world, actor, call) == "42501") is (who != "service"), who


def test_a_turn_is_told_which_documents_its_own_answer_tells_of_and_nobody_else_is(
    world: psycopg.Connection,
) -> None:
    for text in ("'quillfeather'", "'tea'"):
        for person, chat in ((ALICE, HERE), (BOB, HERE), (ALICE, THERE)):
            call = (
                f"public.documents_behind('feishu:{chat}:main', '{person}', '{person}',"
                f" 'om_read', {text})"
            )
            for who, actor in EVERYBODY.items():
                given = _call(world, actor, call)
                assert "token of ou_bob" not in given, who
                is_hers = actor.claim("actor") == ALICE and actor.claim("tenant_key") == TENANT
                assert is_hers or "token of" not in given, who
                if (who, person, chat) == ("subject here", ALICE, HERE):
                    assert "token of ou_alice" in given
        for who, actor in EVERYBODY.items():
            given = _call(world, actor, f"bot_private.documents_told('om_there', {text})")
            assert actor.claim("actor") == BOB or "token of" not in given, who


def test_a_document_is_noted_by_the_turn_that_reads_it_under_its_own_place_and_person(
    world: psycopg.Connection,
) -> None:
    before, noted = _kept(world, ROWS), set()
    for who, actor in EVERYBODY.items():
        with world.transaction(force_rollback=True):
            call = (
                f"public.note_document('{CONVERSATION}', '{ALICE}', '{ALICE}', 'om_open', 'docx',"
                " 'new', 'quillfeather')"
            )
            given = _call(world, actor, call)
            if _kept(world, ROWS) == before:
                continue
            noted.add(who)
            assert "doc:" in given
            row = world.execute(
                "select chat_id, actor_id, tenant_key from bot_private.told_documents"
                " where token = 'new'"
            ).fetchone()
            assert row == (HERE, ALICE, TENANT), who
    for who in noted:
        actor = EVERYBODY[who]
        assert (actor.claim("sub"), actor.claim("actor")) == (ALICE, ALICE), who
        assert (actor.claim("chat_id"), actor.claim("tenant_key")) == (HERE, TENANT), who
    assert "subject here" in noted


def test_what_a_turn_says_that_it_was_given_shows_nothing_of_a_document_told_elsewhere(
    world: psycopg.Connection,
) -> None:
    """Whether an answer has a word of a document would tell what the document says."""
    ids = dict(
        world.execute("select chat_id, 'doc:' || id from bot_private.told_documents").fetchall()
    )
    kept = set()
    for who, actor in EVERYBODY.items():
        with world.transaction(force_rollback=True):
            call = (
                f"public.record_reply('om_open', '{CONVERSATION}', '{ALICE}', '{ALICE}',"
                f" '[\"quillfeather\"]', '[]', null, '[\"{ids[HERE]}\", \"{ids[THERE]}\"]')"
            )
            _call(world, actor, call)
            given = str(_kept(world, "select given from agent_turns where id = 'om_open'"))
            assert ids[THERE] not in given, who
            kept |= {who} if ids[HERE] in given else set()
    assert "subject here" in kept
    assert not kept & {"subject in another group", "member here", "sender here"}


@pytest.mark.parametrize(
    "call",
    ["bot_private.keep_given_documents('om_read')", "bot_private.told_document('docx', 'y')"],
)
def test_what_runs_as_its_owner_changes_no_other_turn_and_no_other_place(
    world: psycopg.Connection, call: str
) -> None:
    before = _kept(world, GIVEN)
    for who, actor in EVERYBODY.items():
        with world.transaction(force_rollback=True):
            _call(world, actor, call)
            assert _kept(world, GIVEN) == before, who
            for chat, person in world.execute(
                "select chat_id, actor_id from bot_private.told_documents where token = 'y'"
            ).fetchall():
                assert (chat, person) == (actor.claim("chat_id"), actor.claim("actor")), who


def test_whether_any_were_told_is_said_of_the_token_s_own_place(world: psycopg.Connection) -> None:
    with world.transaction(force_rollback=True):
        world.execute("delete from bot_private.told_documents where chat_id = %s", [HERE])
        for who, actor in EVERYBODY.items():
            given = _call(world, actor, "bot_private.documents_were_told()")
            place = actor.claim("chat_id") == THERE or actor.claim("chat_type") == "p2p"
            is_theirs = place and actor.claim("tenant_key") == TENANT
            assert ("True" in given) <= is_theirs, who
