"""A row keeps its words and its place, and nobody learns from an id that there is a row."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.actors import ACTORS, ALICE, HERE, TENANT, THERE, become

THREAD = f"feishu:{HERE}:om_root"
OF_A_CHAT = """
    select c.relname from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
      and (select count(*) from pg_attribute a where a.attrelid = c.oid
           and a.attname = any (%s) and not a.attisdropped) = cardinality(%s::text[])
"""


@pytest.fixture(scope="module")
def world(database: psycopg.Connection) -> psycopg.Connection:
    """A turn of Alice's in HERE with an answer that waits to be sent, and one of THERE."""
    for chat, turn in ((HERE, "om_here"), (THERE, "om_there")):
        open_turn(database, chat, turn)
    return database


def open_turn(connection: psycopg.Connection, chat: str, turn: str) -> None:
    identity = [turn, f"feishu:{chat}:om_root", ALICE, ALICE]
    connection.execute(
        "select open_turn(%s, %s, %s, 'om_root', %s, %s, 'Alice', %s, 'my words', 10)",
        [identity[0], identity[1], chat, ALICE, ALICE, TENANT],
    )
    connection.execute("select record_reply(%s, %s, %s, %s, '[\"an answer\"]', '[]')", identity)


def tables_with(connection: psycopg.Connection, *columns: str) -> set[str]:
    return {name for (name,) in connection.execute(OF_A_CHAT, [list(columns), list(columns)])}


def refused(connection: psycopg.Connection, who: str, statement: str, *values: object) -> str:
    """The SQLSTATE with which `who` is refused, "" when they are not. Rolled back."""
    with connection.transaction(force_rollback=True):
        become(connection, ACTORS[who])
        try:
            connection.execute(statement.encode(), values)
        except psycopg.Error as exc:
            return exc.sqlstate or "?"
    return ""


@pytest.mark.parametrize("who", ["subject here", "service"])
def test_words_are_not_changed(world: psycopg.Connection, who: str) -> None:
    change = "update agent_messages set content = 'never said' where turn_id = %s and role = %s"

    assert refused(world, who, change, "om_here", "user") == "PT403"
    assert refused(world, who, change, "om_here", "assistant") == ""

    with world.transaction(force_rollback=True):
        world.execute("update agent_messages set status = 'sent' where role = 'assistant'")
        assert refused(world, who, change, "om_here", "assistant") == "PT403"


def test_every_table_ties_a_conversation_to_its_chat(world: psycopg.Connection) -> None:
    checks = world.execute(
        "select conrelid::regclass::text from pg_constraint where contype = 'c'"
        " and pg_get_constraintdef(oid) like '%%starts_with(%%conversation_id%%chat_id%%'"
    )

    assert {name for (name,) in checks} >= tables_with(world, "chat_id", "conversation_id")


def test_every_table_ties_what_is_of_a_turn_to_its_place(world: psycopg.Connection) -> None:
    keys = world.execute("""
        select k.conrelid::regclass::text from pg_constraint k
        where k.contype = 'f' and k.confrelid = 'public.agent_turns'::regclass
          and pg_get_constraintdef(k.oid) like 'FOREIGN KEY (thread, %'
    """)
    # of a message, which is; and those that name the turn as their source only
    derived = {"agent_embeddings", "agent_notes", "agent_working_memory_history", "agent_timers"}

    assert {name for (name,) in keys} >= tables_with(world, "turn_id", "conversation_id") - derived


@pytest.mark.parametrize("who", ["subject in another group", "service"])
def test_no_row_is_inserted_with_a_conversation_of_another_chat(
    world: psycopg.Connection, who: str
) -> None:
    statement = (
        "insert into agent_notes (id, user_id, tenant_key, chat_id, conversation_id, title)"
        " values ('note_x', %s, %s, %s, %s, 'x')"
    )

    assert refused(world, who, statement, ALICE, TENANT, THERE, THREAD) == "23514"
    assert refused(world, who, statement, ALICE, TENANT, THERE, f"feishu:{THERE}:om") == ""


@pytest.mark.parametrize("turn", ["om_here", "om_unknown"])
def test_a_turn_elsewhere_and_an_unknown_turn_are_refused_alike(
    world: psycopg.Connection, turn: str
) -> None:
    who = "subject in another group"
    message = (
        "insert into agent_messages (conversation_id, user_id, actor_id, turn_id, tenant_key,"
        " chat_id, role, chunk, content, status)"
        " values (%s, %s, %s, %s, %s, %s, 'user', 7, 'x', 'received')"
    )
    there = f"feishu:{THERE}:om_root"
    values = (there, ALICE, ALICE, turn, TENANT, THERE)

    assert refused(world, who, message, *values) == "23503"


CALLS = {
    "get_note": "get_note(%(thread)s, %(me)s, %(me)s, %(tenant)s, %(chat)s, %(id)s)",
    "update_note": "update_note(%(thread)s, %(me)s, %(me)s, %(tenant)s, %(chat)s, %(id)s, 'x',"
    " null, '[]', '[]')",
    "share_note": "share_note(%(thread)s, %(me)s, %(me)s, %(tenant)s, %(chat)s, %(id)s, true)",
    "press_button": "press_button(%(id)s, %(chat)s, 'om_card', %(me)s, %(tenant)s, 'event', false)",
    "running_turns": "running_turns(%(thread)s, %(me)s, %(me)s, %(tenant)s, %(id)s)",
    "press_handle": "press_handle('again', %(chat)s, %(id)s, %(me)s, %(tenant)s)",
    "log_decision": "log_decision(%(chat)s, %(tenant)s, %(me)s, %(id)s, true, 'r', 't', null, null,"
    " null, null)",
    "save_summary": "save_summary(%(thread)s, %(me)s, %(me)s, %(summary)s, 1, 'x', '[]',"
    " %(rows)s, 1)",
    "said_message": "said_message(%(thread)s, %(me)s, %(me)s, %(tenant)s, %(chat)s, %(id)s)",
    "record_reply": "record_reply(%(id)s, %(thread)s, %(me)s, %(me)s, '[]', '[]')",
    "mark_failed": "mark_failed(%(id)s, %(thread)s, %(me)s, %(me)s, 'x')",
    "resume_card": "resume_card(%(id)s, %(thread)s, %(me)s, %(me)s)",
    "keep_card": "keep_card(%(id)s, %(thread)s, %(me)s, %(me)s, 'card', 'om', true)",
}


@pytest.mark.parametrize("call", CALLS)
def test_anothers_id_and_an_unknown_id_are_answered_alike(
    world: psycopg.Connection, call: str
) -> None:
    """Carl, in another group, asks with the ids of Alice's rows in HERE."""
    carl = "ou_carl"
    with world.transaction(force_rollback=True):
        ids = alices_rows(world)
        given = {"thread": f"feishu:{THERE}:om_x", "me": carl, "tenant": TENANT, "chat": THERE}
        unknown = {"id": "nowhere", "summary": 999_999, "rows": "[999999]"}
        said = [
            str(answers(world, CALLS[call], {**given, **kind})).replace(str(kind["id"]), "…")
            for kind in (ids | {"id": ids[call_id(call)]}, unknown)
        ]

    assert said[0] == said[1]


def call_id(call: str) -> str:
    kinds = {"note": "note", "button": "button", "decision": "decision"}
    return next((key for word, key in kinds.items() if word in call), "turn")


def answers(connection: psycopg.Connection, call: str, values: dict[str, object]) -> object:
    with connection.transaction(force_rollback=True):
        become(connection, ACTORS["somebody in another group"])
        try:
            return connection.execute(f"select {call}".encode(), values).fetchone()
        except psycopg.Error as exc:
            return exc.sqlstate, exc.diag.message_primary


def alices_rows(connection: psycopg.Connection) -> dict[str, object]:
    """A note, a button, a decision and a summary of Alice's in HERE: their ids."""
    place = {"thread": THREAD, "me": ALICE, "tenant": TENANT, "chat": HERE}
    connection.execute(
        "insert into agent_notes (id, user_id, tenant_key, chat_id, conversation_id, title)"
        " values ('note_a', %(me)s, %(tenant)s, %(chat)s, %(thread)s, 'x')",
        place,
    )
    connection.execute(
        "insert into agent_buttons (id, group_id, turn_id, chunk, ordinal, conversation_id,"
        " user_id, actor_id, tenant_key, chat_id, chat_type, kind, label, expires_at, message_id)"
        " values ('button_a', 'g', 'om_here', 0, 1, %(thread)s, %(me)s, %(me)s, %(tenant)s,"
        " %(chat)s, 'group', 'confirm', 'x', now() + interval '1 day', 'om_card')",
        place,
    )
    connection.execute(
        "insert into agent_decisions (message_id, chat_id, tenant_key, actor_id, respond, reason,"
        " tier) values ('om_decided', %(chat)s, %(tenant)s, %(me)s, false, 'secret', 't')",
        place,
    )
    summary = connection.execute(
        "insert into agent_summaries (conversation_id, user_id, tenant_key, chat_id, content,"
        " until_message_id) values (%(thread)s, %(me)s, %(tenant)s, %(chat)s, 'x', 1) returning id",
        place,
    ).fetchone()
    message = connection.execute(
        "select id from agent_messages where turn_id = 'om_here' and role = 'user'"
    ).fetchone()
    assert summary
    assert message
    return {
        "note": "note_a",
        "button": "button_a",
        "decision": "om_decided",
        "turn": "om_here",
        "summary": summary[0],
        "rows": f"[{message[0]}]",
    }
