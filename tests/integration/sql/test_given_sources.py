"""How what an answer was given is noted: a turn stands for its answer, and an answer for itself."""

from __future__ import annotations

import json

import psycopg
import pytest

from tests.support.actors import BOB, HERE, TENANT


@pytest.mark.parametrize(
    ("given", "noted"),
    [
        (["om_q", "om_card", "om_line"], ["om_line", "om_q"]),
        (["om_card", "om_line"], ["answer:om_q", "om_line"]),
        (["om_q"], ["om_q"]),
        ([], []),
    ],
)
def test_beside_a_turn_its_answer_is_not_noted(
    database: psycopg.Connection, given: list[str], noted: list[str]
) -> None:
    thread = f"feishu:{HERE}:r"
    with database.transaction(force_rollback=True):
        database.execute(
            "insert into agent_chats (id, user_id, tenant_key, chat_id, root_id)"
            " values (%s, %s, %s, %s, 'r')",
            [thread, BOB, TENANT, HERE],
        )
        database.execute(
            "insert into agent_turns (id, conversation_id, user_id, actor_id, tenant_key, chat_id,"
            " state) values ('om_q', %s, %s, %s, %s, %s, 'sent')",
            [thread, BOB, BOB, TENANT, HERE],
        )
        database.execute(
            "insert into agent_messages (conversation_id, user_id, actor_id, turn_id, tenant_key,"
            " chat_id, role, content, status, message_id)"
            " values (%s, %s, %s, 'om_q', %s, %s, 'assistant', 'x', 'sent', 'om_card')",
            [thread, BOB, BOB, TENANT, HERE],
        )
        row = database.execute(
            "select bot_private.given_sources(%s)", [json.dumps(given)]
        ).fetchone()

    assert row == (noted,)


def test_what_tells_one_source_is_kept_in_other_numbers_than_what_tells_another(
    database: psycopg.Connection,
) -> None:
    query = "select bot_private.keyed_hashes(%s, '{caterpillars}')"
    one, again, other = (
        database.execute(query, [source]).fetchone() for source in ("om_1", "om_1", "om_2")
    )
    assert one == again != other


def test_ids_of_feishu_are_kept_as_numbers_and_told_as_they_were(
    database: psycopg.Connection,
) -> None:
    ids = [f"om_{n * 2**64:032x}" for n in (3, 1)]
    others = ["om_1", f"om_{9:032X}F", f"om_{10:032X}", f"om_{4:033x}", f"answer:om_{5:032x}"]
    row = database.execute(
        "select bot_private.given_ids(messages, besides), pg_column_size(messages), besides"
        " from bot_private.given_parts(%(ids)s)",
        {"ids": [others[0], *ids, *others[1:]]},
    ).fetchone()

    assert row == ([*ids, *others], 56, others)
