"""Turns of earlier versions, whose origin stood in their ids, say it as new ones do."""

from __future__ import annotations

import psycopg

from memory.migrations import FOLDER

BACKFILL = FOLDER / "backfills" / "0491_turn_origins.batches.sql"
CHAT = """
insert into agent_chats (id, user_id, chat_id, root_id)
values ('feishu:oc_1:main', 'ou_ann', 'oc_1', 'main'),
       ('feishu:ou_ann:main', 'ou_ann', 'ou_ann', 'main')
"""
TURN = """
insert into agent_turns (id, conversation_id, user_id, actor_id, chat_id, state, drawn_on)
values (%(id)s, 'feishu:' || %(chat)s || ':main', 'ou_ann', 'ou_ann', %(chat)s, 'sent', %(drawn)s)
"""
BUTTON = """
insert into agent_buttons (id, group_id, turn_id, chunk, ordinal, conversation_id, user_id,
                           actor_id, chat_id, chat_type, kind, label, payload, expires_at)
values (%s, %s, %s, 0, 1, 'feishu:oc_1:main', 'ou_ann', 'ou_ann', 'oc_1', 'group', 'follow_up', 'L',
        '{"text": "L"}', now())
"""
CARD = """
insert into agent_messages (conversation_id, user_id, actor_id, turn_id, chat_id, role, content,
                            message_id, status)
values ('feishu:oc_1:main', 'ou_ann', 'ou_ann', %s, 'oc_1', 'assistant', 'A', %s, 'sent')
"""
TIMER = """
insert into agent_timers (id, kind, conversation_id, chat_id, root_id, chat_type, user_id, actor_id,
                          turn_id, local_at, zone, due_at)
values (%s, %s, 'feishu:oc_1:main', 'oc_1', 'main', 'group', 'ou_ann', 'ou_ann', 'om_1',
        '2026-01-01T09:00', 'UTC', now())
"""
NOTED = "insert into agent_digest_sources (turn_id, chat_id, message_id) values (%s, 'oc_1', %s)"
DECISION = """
insert into agent_decisions (chat_id, actor_id, message_id, respond, reason, tier)
values ('oc_1', 'ou_ann', %s, true, 'proactive', 'heuristic')
"""
ORIGINS = {
    "om_1": ("message", None, ""),
    "om_unasked": ("unasked", None, ""),
    "om_1~2": ("retry", "om_1", "2"),
    "om_1~again1": ("again", "om_1", ""),
    "om_1~again2": ("again", "om_1~again1", ""),
    "om_1~2~again1": ("again", "om_1~2", ""),
    "om_1~again4": ("again", "om_1~again2", ""),
    "click:b1": ("button", "om_1", "b1"),
    "click:b1~ev_7": ("button", "om_1", "ev_7"),
    "click:b1~again1": ("again", "click:b1", ""),
    "click:noted": ("button", "om_1", "noted"),
    "click:gone": ("button", "gone", "gone"),
    "click:shown": ("private_answer", "shown", "shown"),
    "reaction:om_card": ("reaction", "om_1", ""),
    "reaction:om_gone": ("reaction", "om_gone", ""),
    "timer:tm_1:17": ("reminder", "tm_1", "17"),
    "timer:tm_2:18": ("digest", "tm_2", "18"),
    "timer:tm_3:19": ("digest", "tm_3", "19"),
    "private:om_1": ("private_answer", "om_1", ""),
    "private:click:b1": ("private_answer", "click:b1", ""),
    "offer:om_1": ("offer", "om_1", ""),
}


def _left_by_the_version_before(connection: psycopg.Connection) -> None:
    connection.execute(CHAT)
    for id in ORIGINS:
        place = {"chat": "oc_1", "drawn": []}
        if id == "click:shown":
            place = {"chat": "ou_ann", "drawn": ["om_0"]}
        connection.execute(TURN, {"id": id, **place})
    connection.execute(BUTTON, ["b1", "g1", "om_1"])
    connection.execute(CARD, ["om_1", "om_card"])
    connection.execute(NOTED, ["click:noted", "answer:om_1"])
    connection.execute(TIMER, ["tm_1", "reminder"])
    connection.execute(TIMER, ["tm_2", "digest"])
    connection.execute(NOTED, ["timer:tm_3:19", "om_0"])
    connection.execute(DECISION, ["om_unasked"])


def test_the_origin_of_every_turn_is_read_from_its_old_id(connection: psycopg.Connection) -> None:
    _left_by_the_version_before(connection)
    for _ in range(2):  # where it was interrupted it starts again
        connection.execute(BACKFILL.read_bytes())

    found = connection.execute("select id, origin, parent_id, cause from agent_turns").fetchall()
    assert {id: tuple(origin) for id, *origin in found} == ORIGINS


def test_the_chain_of_a_turn_leads_to_the_question_that_somebody_wrote(
    connection: psycopg.Connection,
) -> None:
    _left_by_the_version_before(connection)
    connection.execute(BACKFILL.read_bytes())
    chain = "select array_agg(c.id) from bot_private.turn_chain(%s) c"
    first = "select f.id from bot_private.first_asked(%s) f"

    for turn, ids in {
        "click:b1~again1": ["click:b1~again1", "click:b1", "om_1"],
        "om_1~again4": ["om_1~again4", "om_1~again2", "om_1~again1", "om_1"],
        "private:click:b1": ["private:click:b1", "click:b1", "om_1"],
    }.items():
        assert connection.execute(chain, [turn]).fetchone() == (ids,)
    for turn, asked in {
        "click:b1~again1": "click:b1",
        "om_1~2~again1": "om_1",
        "om_1~again4": "om_1",
    }.items():
        assert connection.execute(first, [turn]).fetchone() == (asked,)
