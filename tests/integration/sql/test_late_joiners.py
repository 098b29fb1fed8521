"""What somebody who joined a group later is answered with: one rule, by the place of the answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

TENANT, GROUP = "tenant", "oc_group"
ALICE, FAY = "ou_alice", "ou_fay"
BEFORE, AFTER = "the budget is 4000", "the budget is 5000"


@pytest.fixture(scope="module")
def group(database: psycopg.Connection) -> psycopg.Connection:
    """Alice told the bot something before Fay joined, and something after that."""
    for turn, content, at in (("om_1", BEFORE, "2026-03-01"), ("om_2", AFTER, "2026-03-03")):
        thread = f"feishu:{GROUP}:{turn}"
        who = [turn, thread, GROUP, turn, ALICE, ALICE, "Alice", TENANT, content, 10]
        database.execute("select open_turn(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)", who)
        database.execute("update agent_messages set created_at = %s where turn_id = %s", [at, turn])
    database.execute(
        "insert into chat_members (tenant_key, chat_id, open_id, joined_at)"
        " values (%(t)s, %(g)s, %(a)s, null), (%(t)s, %(g)s, %(f)s, '2026-03-02')",
        {"t": TENANT, "g": GROUP, "a": ALICE, "f": FAY},
    )
    return database


_MESSAGES = "select content from agent_messages"


def readable(
    connection: psycopg.Connection, person: str, chat: str, query: str = _MESSAGES, **more: str
) -> set[str]:
    """What a turn of `person` that is answered in `chat` may read."""
    kind = "group" if chat == GROUP else "p2p"
    claims = {
        "sub": person, "actor": person, "chat_id": chat, "chat_type": kind,
        "tenant_key": TENANT, "role": "authenticated", **more,
    }  # fmt: skip
    with connection.transaction(force_rollback=True):
        connection.execute(
            "select set_config('request.jwt.claims', %s, true)", [json.dumps(claims)]
        )
        connection.execute("set local role authenticated")
        return {text for (text,) in connection.execute(query.encode())}


@pytest.fixture
def hidden(group: psycopg.Connection) -> Iterator[psycopg.Connection]:
    """The same group, of which its owner says that newcomers do not see earlier messages."""
    with group.transaction(force_rollback=True):
        group.execute(
            "insert into chats (tenant_key, chat_id, members_read_at) values (%s, %s, now())",
            [TENANT, GROUP],
        )
        group.execute(
            "insert into chat_rules (tenant_key, chat_id, history) values (%s, %s, 'hidden')",
            [TENANT, GROUP],
        )
        group.execute("update agent_turns set state = 'sent'")
        yield group


def as_turn(connection: psycopg.Connection, person: str, chat: str) -> None:
    """What follows is done with the token of a turn of `person`."""
    claims = {
        "sub": person, "actor": person, "chat_id": chat, "chat_type": "group",
        "tenant_key": TENANT, "role": "authenticated",
    }  # fmt: skip
    connection.execute("select set_config('request.jwt.claims', %s, true)", [json.dumps(claims)])
    connection.execute("set local role authenticated")


def call(connection: psycopg.Connection, person: str, function: str, **params: object) -> Any:
    """The result of a function that a turn of `person` in the group calls."""
    named = ", ".join(f"{name} => %s" for name in params)
    with connection.transaction():
        as_turn(connection, person, GROUP)
        query = f"select public.{function}({named})"
        [result] = connection.execute(query.encode(), list(params.values())).fetchone() or [None]
        connection.execute("select set_config('feishu_bot.tells', '', true)")  # the call is over
        connection.execute("reset role")
        return result


def join(connection: psycopg.Connection, person: str, at: str = "now()") -> None:
    connection.execute(
        f"insert into chat_members (tenant_key, chat_id, open_id, joined_at)"
        f" values (%s, %s, %s, {at})".encode(),
        [TENANT, GROUP, person],
    )


def test_in_the_group_whoever_is_in_it_now_is_answered_with_all_of_it(
    group: psycopg.Connection,
) -> None:
    assert readable(group, FAY, GROUP) == {BEFORE, AFTER}
    assert readable(group, ALICE, GROUP) == {BEFORE, AFTER}


def test_alone_with_the_bot_a_member_is_answered_with_what_was_said_since_they_joined(
    group: psycopg.Connection,
) -> None:
    assert readable(group, FAY, "oc_p2p_fay") == {AFTER}
    assert readable(group, ALICE, "oc_p2p_alice") == {BEFORE, AFTER}


def test_where_nobody_reads_what_others_said_a_newcomer_is_answered_with_their_own_words(
    group: psycopg.Connection,
) -> None:
    assert readable(group, FAY, GROUP, sharing="person") == set()
    assert readable(group, ALICE, GROUP, sharing="person") == {BEFORE, AFTER}


def test_where_newcomers_see_nothing_earlier_the_group_is_told_what_all_its_members_heard(
    hidden: psycopg.Connection,
) -> None:
    assert readable(hidden, FAY, GROUP) == {AFTER}
    assert readable(hidden, ALICE, GROUP) == {AFTER}
    assert readable(hidden, ALICE, "oc_p2p_alice") == {BEFORE, AFTER}

    hidden.execute("update chat_members set left_at = now() where open_id = %s", [FAY])
    assert readable(hidden, ALICE, GROUP) == {BEFORE, AFTER}


def test_what_another_tenant_hides_in_a_chat_of_that_id_is_told(hidden: psycopg.Connection) -> None:
    hidden.execute("update chat_rules set tenant_key = 'another'")

    assert readable(hidden, ALICE, GROUP) == {BEFORE, AFTER}


def test_where_nobody_knows_who_joined_nothing_earlier_is_told(hidden: psycopg.Connection) -> None:
    hidden.execute("update chats set members_read_at = now() - interval '25 hours'")

    assert readable(hidden, ALICE, GROUP) == set()


def test_an_answer_is_delivered_whoever_joins_while_it_is_made(hidden: psycopg.Connection) -> None:
    turn, thread = "om_3", f"feishu:{GROUP}:om_3"
    who = {
        "p_conversation_id": thread, "p_user_id": ALICE, "p_actor_id": ALICE,
    }  # fmt: skip
    opening = {
        **who, "p_turn_id": turn, "p_chat_id": GROUP, "p_root_id": turn, "p_actor_name": "Alice",
        "p_tenant_key": TENANT, "p_content": "hello", "p_history_limit": 10,
    }  # fmt: skip
    call(hidden, ALICE, "open_turn", **opening)
    join(hidden, "ou_gus", "now() + interval '1 second'")  # after all that this test stores
    again = call(hidden, ALICE, "open_turn", **opening)
    assert [one["content"] for one in again["history"]] == ["hello"]

    reply = {**who, "p_turn_id": turn, "p_cards": '["hi"]', "p_tool_calls": "[]"}
    assert call(hidden, ALICE, "record_reply", **reply)["state"] == "pending"
    resumed = call(hidden, ALICE, "open_turn", **opening)
    assert [card["content"] for card in resumed["reply"]] == ["hi"]
    mark = {**who, "p_turn_id": turn, "p_chunk": 0, "p_content": "hi", "p_message_id": "om_card"}
    for _ in range(2):
        assert call(hidden, ALICE, "mark_sent", **mark) == {"state": "sent"}
    stored = hidden.execute(
        "select content, status from agent_messages where turn_id = %s order by id", [turn]
    ).fetchall()
    assert stored == [("hello", "received"), ("hi", "sent")]
    assert readable(hidden, ALICE, GROUP) == set()


def test_a_question_under_way_is_told_to_whoever_asked_it_alone(
    hidden: psycopg.Connection,
) -> None:
    thread = f"feishu:{GROUP}:om_5"
    who = ["om_5", thread, GROUP, "om_5", "ou_bob", "ou_bob", "Bob", TENANT, "hello", 10]
    hidden.execute("select open_turn(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)", who)
    join(hidden, "ou_gus", "now() + interval '1 second'")  # after all that this test stores

    assert readable(hidden, "ou_bob", GROUP) == {"hello"}
    assert readable(hidden, ALICE, GROUP) == set()


def begin(connection: psycopg.Connection, thread: str) -> tuple[list[str], int, str]:
    """A question of Alice's in a thread: what of it is told, how often the rules of chats were
    looked up, and what is left of that for the functions that follow in the transaction."""
    looked_up = """
        select sum(pg_stat_get_xact_numscans(r)) from (
          select 'public.chat_rules'::regclass::oid union all
          select indexrelid from pg_index where indrelid = 'public.chat_rules'::regclass) of (r)"""
    with connection.transaction(force_rollback=True):
        as_turn(connection, ALICE, GROUP)
        [before] = connection.execute(looked_up).fetchone() or [0]
        [opened] = connection.execute(
            "select begin_turn(%(t)s, %(c)s, %(g)s, %(r)s, %(a)s, %(a)s, 'Alice', %(k)s,"
            " 'And now?', 10, 10, null, null, 3600, %(recall)s, true, true)",
            {
                "t": f"{thread}_again", "c": f"feishu:{GROUP}:{thread}", "g": GROUP, "r": thread,
                "a": ALICE, "k": TENANT,
                "recall": json.dumps({"p_query": "budget", "p_scope": "chat", "p_k": 5}),
            },
        ).fetchone() or [None]  # fmt: skip
        [after] = connection.execute(looked_up).fetchone() or [0]
        [left] = connection.execute("select current_setting('feishu_bot.tells')").fetchone() or [""]
        told = [one["content"] for one in opened["turn"]["history"]]
        return told, after - before, left


def test_a_turn_begins_with_what_all_members_heard(hidden: psycopg.Connection) -> None:
    assert begin(hidden, "om_1")[0] == ["And now?"]
    assert begin(hidden, "om_2")[0] == [AFTER, "And now?"]

    hidden.execute("update chat_members set left_at = now() where open_id = %s", [FAY])
    assert begin(hidden, "om_1")[0] == [BEFORE, "And now?"]


def test_where_nothing_is_hidden_a_turn_that_begins_looks_that_up_once(
    group: psycopg.Connection,
) -> None:
    told, looked_up, left = begin(group, "om_1")

    assert told == [BEFORE, "And now?"]
    assert looked_up <= 2  # the rules themselves are told, too
    assert left == ""


def test_facts_of_before_are_kept_untold_and_new_ones_are_told(hidden: psycopg.Connection) -> None:
    place = {
        "p_conversation_id": f"feishu:{GROUP}:om_1", "p_user_id": ALICE, "p_actor_id": ALICE,
        "p_tenant_key": TENANT,
    }  # fmt: skip
    keep = {**place, "p_chat_id": GROUP, "p_scope": "user"}
    first = call(
        hidden, ALICE, "merge_working_memory", **keep, p_patch='{"a": 1}', p_turn_id="om_1"
    )
    assert first == {"a": 1}
    hidden.execute(
        "update agent_working_memory set updated_at = '2026-03-01',"
        ' sources = \'{"a": {"turn": "om_1", "at": "2026-03-01"}}\''
    )
    assert call(hidden, ALICE, "get_working_memory", **place)["user"] == {}

    told = call(hidden, ALICE, "merge_working_memory", **keep, p_patch='{"b": 2}', p_turn_id="om_2")

    assert told == {"b": 2}
    assert call(hidden, ALICE, "get_working_memory", **place)["user"] == {"b": 2}
    [kept] = hidden.execute("select content from agent_working_memory").fetchone() or [None]
    assert kept == {"a": 1, "b": 2}
    call(hidden, ALICE, "clear_working_memory", **place, p_scope="user")
    assert hidden.execute("select content from agent_working_memory").fetchone() == ({},)


_KEPT = {
    "agent_notes": (
        "insert into agent_notes (id, user_id, tenant_key, chat_id, conversation_id, title,"
        " created_at) values (%(what)s, %(who)s, %(tenant)s, %(chat)s, %(thread)s, %(what)s,"
        " %(at)s)",
        "select title from agent_notes",
    ),
    "agent_working_memory": (
        "insert into agent_working_memory (user_id, actor_id, tenant_key, chat_id,"
        " conversation_id, scope, content, updated_at) values (%(who)s, %(who)s, %(tenant)s,"
        " %(chat)s, %(thread)s, 'chat', jsonb_build_object('fact', %(what)s::text), %(at)s)",
        "select content ->> 'fact' from agent_working_memory",
    ),
}


@pytest.mark.parametrize("table", _KEPT)
def test_facts_and_notes_of_before_are_in_no_row_that_the_group_reads(
    hidden: psycopg.Connection, table: str
) -> None:
    insert, query = _KEPT[table]
    for what, at in ((BEFORE, "2026-03-01"), (AFTER, "2026-03-03")):
        thread = f"feishu:{GROUP}:om_{at}"
        row = {"what": what, "who": ALICE, "tenant": TENANT, "chat": GROUP, "thread": thread}
        hidden.execute(insert.encode(), {**row, "at": at})

    assert readable(hidden, ALICE, GROUP, query) == {AFTER}
    assert readable(hidden, ALICE, "oc_p2p_alice", query) == {BEFORE, AFTER}
    hidden.execute("delete from chat_rules")
    assert readable(hidden, ALICE, GROUP, query) == {BEFORE, AFTER}


def test_the_group_is_told_no_fact_of_before(hidden: psycopg.Connection) -> None:
    hidden.execute(
        "insert into agent_working_memory (user_id, actor_id, tenant_key, chat_id,"
        " conversation_id, scope, content, sources) values (%(who)s, %(who)s, %(tenant)s, %(chat)s,"
        " %(thread)s, 'chat', %(content)s, %(sources)s)",
        {
            "who": ALICE, "tenant": TENANT, "chat": GROUP, "thread": f"feishu:{GROUP}:om_1",
            "content": json.dumps({"budget": BEFORE, "new budget": AFTER}),
            "sources": json.dumps({
                "budget": {"turn": "om_1", "at": "2026-03-01"},
                "new budget": {"turn": "om_2", "at": "2026-03-03"},
            }),
        },
    )  # fmt: skip
    query = (
        "select f ->> 'value' from jsonb_array_elements(bot_private.group_facts("
        f"'feishu:{GROUP}:om_9', '{FAY}', '{TENANT}', 'what is the budget?',"
        " bot_private.told_since())) f"
    )

    assert readable(hidden, FAY, GROUP, query) == {AFTER}
    assert readable(hidden, FAY, GROUP, query, sharing="person") == set()
    assert readable(hidden, FAY, GROUP, query, tenant_key="other") == set()
    hidden.execute("delete from chat_rules")
    assert readable(hidden, FAY, GROUP, query) == {BEFORE, AFTER}


def test_the_group_reads_no_former_value_of_a_fact(hidden: psycopg.Connection) -> None:
    insert, _ = _KEPT["agent_working_memory"]
    row = {"what": BEFORE, "who": ALICE, "tenant": TENANT, "chat": GROUP, "at": "2026-03-01"}
    hidden.execute(insert.encode(), {**row, "thread": f"feishu:{GROUP}:om_1"})
    query = "select became ->> 'fact' from agent_working_memory_history"

    assert readable(hidden, ALICE, GROUP, query) == set()
    hidden.execute("delete from chat_rules")
    assert readable(hidden, ALICE, GROUP, query) == {BEFORE}


def test_a_summary_of_before_is_not_told_and_gives_way_to_one_of_since(
    hidden: psycopg.Connection,
) -> None:
    for n, at in enumerate(("2026-02-01", "2026-03-05", "2026-03-06", "2026-03-07")):
        hidden.execute(
            "select open_turn(%s, %s, %s, 'om_long', %s, %s, 'Alice', %s, %s, 10)",
            [f"om_l{n}", f"feishu:{GROUP}:om_long", GROUP, ALICE, ALICE, TENANT, f"line {n}"],
        )
        hidden.execute(
            "update agent_messages set created_at = %s where turn_id = %s", [at, f"om_l{n}"]
        )
    hidden.execute("update agent_turns set state = 'sent'")
    [first] = hidden.execute(
        "select id from agent_messages where turn_id = 'om_l0'"
    ).fetchone() or [0]
    thread = {
        "p_conversation_id": f"feishu:{GROUP}:om_long", "p_user_id": ALICE, "p_actor_id": ALICE,
    }  # fmt: skip
    folding = {**thread, "p_window": 1, "p_least": 1, "p_limit": 20}
    saving = {**thread, "p_summary_id": None, "p_expected_version": 0, "p_verbatim": "[]",
              "p_messages": 1}  # fmt: skip
    old = {**saving, "p_content": "line 0", "p_rows": f"[{first}]"}
    assert call(hidden, ALICE, "save_summary", **old) == {"version": None}, "no longer to be read"
    hidden.execute("update chat_rules set history = null")
    assert call(hidden, ALICE, "save_summary", **old) == {"version": 1}
    hidden.execute("update chat_rules set history = 'hidden'")

    begun = call(hidden, ALICE, "open_fold", **folding)
    assert (begun["id"], begun["content"]) == (None, "")
    assert [one["content"] for one in begun["messages"]] == ["line 1", "line 2"]
    rows = json.dumps([row for one in begun["messages"] for row in one["rows"]])
    new = {**saving, "p_content": "lines 1, 2", "p_rows": rows}
    assert call(hidden, ALICE, "save_summary", **new) == {"version": 2}

    assert call(hidden, ALICE, "open_fold", **folding)["content"] == "lines 1, 2"


def test_talk_of_before_is_not_told_and_goes_with_the_conversation(
    hidden: psycopg.Connection,
) -> None:
    def record(message: str, at: str) -> dict[str, object]:
        [ms] = hidden.execute(
            "select (extract(epoch from %s::timestamptz) * 1000)::bigint", [at]
        ).fetchone() or [0]
        return {"message_id": message, "root_id": None, "author": "Alice", "author_id": ALICE,
                "content": message, "timestamp": ms, "is_bot": False, "ours": False}  # fmt: skip

    talk = [record("early", "2026-03-01"), record("late", "2026-03-03")]
    chat = {"p_chat_id": GROUP, "p_tenant_key": TENANT}
    call(hidden, ALICE, "begin_conversation", **chat, p_now=1, p_records=json.dumps(talk))

    loaded = call(hidden, ALICE, "load_conversation", p_chat_id=GROUP)
    assert [one["content"] for one in loaded["messages"]] == ["late"]
    call(hidden, ALICE, "finish_conversation", p_chat_id=GROUP)
    assert hidden.execute("select count(*) from chat_transcript").fetchone() == (0,)


def test_the_rules_say_since_when_something_is_told(hidden: psycopg.Connection) -> None:
    rules = call(hidden, ALICE, "get_chat_rules", p_chat_id=GROUP, p_tenant_key=TENANT)

    [joined] = hidden.execute(
        "select (extract(epoch from joined_at) * 1000)::bigint from chat_members"
        " where open_id = %s",
        [FAY],
    ).fetchone() or [0]
    assert (rules["history"], rules["told_since_ms"]) == ("hidden", joined)


def test_a_reminder_of_before_is_still_told(hidden: psycopg.Connection) -> None:
    thread = f"feishu:{GROUP}:om_1"
    hidden.execute(
        "insert into agent_timers (id, conversation_id, chat_id, root_id, chat_type, tenant_key,"
        " user_id, actor_id, turn_id, content, local_at, zone, due_at, created_at)"
        " values ('t', %s, %s, 'om_1', 'group', %s, %s, %s, 'om_1', 'the lantern parade',"
        " '2027-01-01T09:00', 'UTC', '2027-01-01', '2026-03-01')",
        [thread, GROUP, TENANT, ALICE, ALICE],
    )
    assert readable(hidden, FAY, GROUP) == {AFTER}
    listed = readable(hidden, FAY, GROUP, "select content from agent_timers")
    assert listed == {"the lantern parade"}
