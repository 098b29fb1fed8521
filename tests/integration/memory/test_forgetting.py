"""Forgetting, proven by a word that is put everywhere and then looked for in every table."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from datetime import UTC
from typing import Any

import psycopg
import pytest

from bot.agents.summaries import extractive_summary
from bot.answering.between_turns import fold_messages
from bot.conversation import Decision, IncomingMessage, MessageRecord
from bot.listening.conversation_store import ChatConversations
from bot.listening.decisions import Reason
from bot.queue.inbox import Inbox
from bot.queue.operator_actions import Forgotten, QueueOperations
from lab.doubles.sentinel import tables_with
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.errors import TurnUnknown
from memory.fallback.store_jobs import MissedTurn, StoreJobs
from memory.models import StoredCard
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore
from memory.tables.cards import Withdrawals
from memory.tables.derived import Summaries
from memory.tables.items import ItemStore
from memory.tables.notes import NoteStore
from memory.tables.operations import Operations
from tests.support.exchanges import deliver
from tests.support.people import Group

pytestmark = pytest.mark.anyio

# One token in any text, so that tables of derived tokens are searched as well.
WORD = "qzvjkw7"
SENTENCE = f"The secret is {WORD}."

NO_PERSON = {
    "agent_receipts",  # they stay, and name the person no more
    "agent_turn_records",  # goes with the turn
    "agent_withdrawals",
    "chat_conversations",
    "chat_imports",  # whoever began one is forgotten in it
    "chat_rules",
    "chat_topics",  # goes with the line of the transcript
    "chats",
    "forgotten_people",  # a mark that names nobody
    "recalled_messages",
}
OTHER_IDS = {
    "id",
    "auth_user_id",
    "button_id",
    "card_id",
    "chat_id",
    "conversation_id",
    "event_id",
    "first_id",
    "group_id",  # of buttons
    "import_id",
    "message_id",
    "note_id",
    "parent_id",
    "reader_id",  # of receipts, which forget_person empties
    "root_id",
    "shared_chat_id",
    "turn_id",
    "from_message_id",
    "until_message_id",
    "working_memory_id",
}


@pytest.fixture
async def jobs(database_url: str) -> AsyncIterator[StoreJobs]:
    async with connection_pool(database_url, size=2) as pool:
        yield StoreJobs(pool)


@pytest.fixture
def operations(rpc: PostgresRpc) -> Operations:
    return Operations(rpc)


@pytest.fixture
def group() -> Group:
    return Group()


async def _turn(
    rpc: PostgresRpc, context: AgentMemoryContext, message_id: str, text: str = SENTENCE
) -> None:
    """A whole turn with a tool call, both sides recorded in the group's transcript."""
    memory = MemoryStore(rpc)
    await memory.begin_turn(context, turn_id=message_id, content=text, actor_name="Somebody")
    call = {"tool": "search", "arguments": {"query": text}, "result": f"found {text}"}
    await memory.record_reply(
        context, turn_id=message_id, cards=[f"You said: {text}"], tool_calls=[call]
    )
    card = f"{message_id}_card"
    await memory.mark_sent(
        context, turn_id=message_id, chunk=0, content=f"You said: {text}", message_id=card
    )
    chat = ChatConversations(rpc, context)
    said = MessageRecord("Somebody", context.actor_id, text, 1, False, message_id)
    answered = MessageRecord("Bot", "ou_bot", f"You said: {text}", 2, True, card, ours=True)
    for record in (said, answered):
        await chat.append(context.chat_id, record, active_since=0, keep=100)
    asked = IncomingMessage(message_id, "Somebody", context.actor_id, text, 1)
    await chat.log_decision(asked, Decision(True, Reason.EXPLICIT_TRIGGER, "explicit"))


async def _live(
    rpc: PostgresRpc, context: AgentMemoryContext, message_id: str, text: str = SENTENCE
) -> None:
    """Everything a person can leave behind in a conversation and about themselves."""
    await _turn(rpc, context, message_id, text)
    await NoteStore(rpc).create(context, title=text, body=text, tags=[text.split()[-1]])
    for scope in ("chat", "user"):
        memory = MemoryStore(rpc)
        await memory.merge_working_memory(context, scope=scope, patch={"note": text})  # type: ignore[arg-type]
        await memory.merge_working_memory(context, scope=scope, patch={"note": f"{text}!"})  # type: ignore[arg-type]


def _event(context: AgentMemoryContext, message_id: str, text: str = SENTENCE) -> dict[str, Any]:
    return {
        "header": {"event_type": "im.message.receive_v1", "tenant_key": context.tenant_key},
        "event": {
            "sender": {"sender_id": {"open_id": context.actor_id}},
            "message": {"message_id": message_id, "content": text},
        },
    }


def _missed(context: AgentMemoryContext, turn_id: str) -> MissedTurn:
    cards = (StoredCard(0, SENTENCE, "pending"),)
    asked_at = "2026-01-02T03:04:05Z"
    return MissedTurn(context, turn_id, SENTENCE, asked_at, state="pending", cards=cards)


def _enqueue(url: str, context: AgentMemoryContext, message_id: str) -> None:
    inbox = Inbox(url)
    payload = _event(context, message_id)
    inbox.enqueue(f"message:{message_id}", payload, lock=context.conversation_id, received_ms=0)
    inbox.close()


async def test_a_forgotten_person_is_in_no_table(
    database_url: str,
    connection: psycopg.Connection,
    rpc: PostgresRpc,
    jobs: StoreJobs,
    operations: Operations,
    group: Group,
) -> None:
    alice = group.turn("alice")
    about_john = group.turn("john", sender="alice", thread="other")
    await ChatConversations(rpc, alice).begin(alice.chat_id, 1, [])
    await _live(rpc, alice, group.message("one"))
    await _turn(rpc, about_john, group.message("two"))
    await MemoryStore(rpc).merge_working_memory(about_john, scope="chat", patch={"topic": SENTENCE})
    _enqueue(database_url, alice, group.message("three"))
    await jobs.keep_turn(_missed(alice, group.message("four")), unsent=True)
    assert tables_with(connection, WORD) == {
        "agent_chats",
        "agent_messages",
        "agent_notes",
        "agent_working_memory",
        "agent_working_memory_history",
        "chat_transcript",
        "jobs",
    }

    counts = await operations.forget_person(group.person("alice"))
    waiting = QueueOperations(database_url).forget(open_id=group.person("alice"))

    assert tables_with(connection, WORD) == set()
    assert tables_with(connection, group.person("alice")) == set()
    assert counts["agent_turns"] == 2
    assert counts["chat_transcript"] == 4
    assert counts["agent_notes"] == 1
    assert waiting == Forgotten(jobs=1, turns=1, running=0)


async def test_a_taken_back_message_names_no_forgotten_person(
    connection: psycopg.Connection, rpc: PostgresRpc, operations: Operations, group: Group
) -> None:
    for name in ("alice", "john"):
        context = group.turn(name, thread=name)
        await _turn(rpc, context, group.message(name))
        params = {"p_message_id": group.message(name), "p_chat_id": context.chat_id}
        await rpc.call("recall_message", params, None)
    assert "recalled_messages" in tables_with(connection, group.person("alice"))

    await operations.forget_person(group.person("alice"))
    assert tables_with(connection, group.person("alice")) == set()
    assert "recalled_messages" in tables_with(connection, group.person("john"))


async def test_what_feishu_still_lists_of_a_forgotten_person_is_not_told(
    rpc: PostgresRpc, operations: Operations, group: Group
) -> None:
    await operations.forget_person(group.person("alice"))
    listed = [
        {"message_id": name, "author_id": group.person(name), "at_ms": 1}
        for name in ("alice", "john")
    ]
    gone = await rpc.call("messages_gone", {"p_messages": json.dumps(listed)}, None)
    assert gone == ["alice"]


async def test_a_card_that_lists_what_was_kept_is_withdrawn_and_imports_name_nobody_forgotten(
    connection: psycopg.Connection, rpc: PostgresRpc, operations: Operations, group: Group
) -> None:
    alice, john, listed = group.p2p("alice"), group.turn("john"), group.message("listed")
    await MemoryStore(rpc).begin_turn(alice, turn_id=listed, content="/memory")
    await ItemStore(rpc).list(alice, turn_id=listed)
    await MemoryStore(rpc).record_reply(alice, turn_id=listed, cards=["Your facts"])
    await deliver(MemoryStore(rpc), alice, listed, ["Your facts"])
    await Withdrawals(rpc).forget_turns()
    await _turn(rpc, john, group.message("asks"), "When?")
    connection.execute(
        "with i as (insert into chat_imports (tenant_key, chat_id, chat_type, until)"
        " values ('tenant', %s, 'group', now()) returning id)"
        " insert into imported_messages (id, sent_at, import_id, tenant_key, message_id, author_id,"
        " author_name, content) select -1, now(), id, 'tenant', 'om_past', %s, 'Alice', '' from i",
        [john.chat_id, alice.actor_id],
    )
    connection.execute(
        "update agent_turns set shown = %s where id = %s",
        [json.dumps({"imported": [["om_past", "Alice"]]}), group.message("asks")],
    )

    await operations.forget_person(alice.actor_id)

    due = connection.execute("select message_id from agent_withdrawals").fetchall()
    assert due == [(f"{listed}_card0",)]
    named = "select from agent_turns where shown ? 'imported'"
    assert connection.execute(named).fetchall() == []


async def test_others_keep_what_is_theirs(
    connection: psycopg.Connection, rpc: PostgresRpc, operations: Operations, group: Group
) -> None:
    john = group.turn("john")
    await ChatConversations(rpc, john).begin(john.chat_id, 1, [])
    await _live(rpc, john, group.message("his"), "I like tea")
    by_alice = group.turn("john", sender="alice")
    await _turn(rpc, by_alice, group.message("hers"))
    await MemoryStore(rpc).merge_working_memory(by_alice, scope="chat", patch={"topic": SENTENCE})

    await operations.forget_person(group.person("alice"))

    assert tables_with(connection, WORD) == set()
    left = await MemoryStore(rpc).begin_turn(john, turn_id=group.message("next"), content="?")
    assert [m.content for m in left.history] == ["I like tea", "You said: I like tea", "?"]
    assert left.working_memory.chat == {"note": "I like tea!"}
    assert [note.title for note in await NoteStore(rpc).list(john)] == ["I like tea"]


async def test_the_reason_of_a_decision_stays_without_the_person(
    rpc: PostgresRpc, operations: Operations, group: Group
) -> None:
    await _turn(rpc, group.turn("alice"), group.message("one"))

    await operations.forget_person(group.person("alice"))

    [decision] = await operations.decisions()
    assert decision["reason"] == "explicit_trigger"
    assert group.mark not in decision["actor_id"] + decision["message_id"]


async def test_a_person_is_forgotten_in_one_tenant_only_when_one_is_named(
    rpc: PostgresRpc, operations: Operations, group: Group
) -> None:
    here, there = group.turn("alice"), group.turn("alice", tenant="other", thread="other")
    for context, name in ((here, "one"), (there, "two")):
        await _turn(rpc, context, group.message(name))

    await operations.forget_person(group.person("alice"), "tenant")

    [left] = await MemoryStore(rpc).list_conversations(user_id=group.person("alice"))
    assert left.tenant_key == "other"


async def test_nobody_is_forgotten_without_a_name(operations: Operations) -> None:
    from memory.errors import IdentityMissing

    with pytest.raises(IdentityMissing):
        await operations.forget_person("")
    with pytest.raises(IdentityMissing):
        await operations.forget_conversation("")


async def test_a_turn_that_is_being_answered_comes_to_nothing(
    rpc: PostgresRpc, operations: Operations, group: Group
) -> None:
    alice, turn_id = group.turn("alice"), group.message("one")
    await MemoryStore(rpc).begin_turn(alice, turn_id=turn_id, content=SENTENCE)

    await operations.forget_person(group.person("alice"))

    with pytest.raises(TurnUnknown):
        await MemoryStore(rpc).record_reply(alice, turn_id=turn_id, cards=[SENTENCE])


async def test_a_forgotten_conversation_is_in_no_table(
    database_url: str,
    connection: psycopg.Connection,
    rpc: PostgresRpc,
    jobs: StoreJobs,
    operations: Operations,
    group: Group,
) -> None:
    alice, bob = group.turn("alice"), group.turn("bob")
    elsewhere = group.turn("alice", thread="other")
    await ChatConversations(rpc, alice).begin(alice.chat_id, 1, [])
    await _turn(rpc, alice, group.message("one"))
    await _turn(rpc, bob, group.message("two"))
    await MemoryStore(rpc).merge_working_memory(alice, scope="chat", patch={"topic": SENTENCE})
    await NoteStore(rpc).create(alice, title=SENTENCE)
    await _turn(rpc, elsewhere, group.message("three"), "I like tea")
    aside = MessageRecord("Carol", "ou_carol", SENTENCE, 3, False, "om_aside", alice.root_id)
    await ChatConversations(rpc, alice).append(alice.chat_id, aside, active_since=0, keep=100)
    _enqueue(database_url, alice, group.message("four"))
    await jobs.keep_turn(_missed(alice, group.message("five")), unsent=True)

    counts = await operations.forget_conversation(alice.conversation_id)
    QueueOperations(database_url).forget(conversation_id=alice.conversation_id)

    assert tables_with(connection, WORD) == set()
    assert counts["agent_messages"] == 4
    [left] = await MemoryStore(rpc).list_conversations()
    assert left.conversation_id == elsewhere.conversation_id


async def test_one_person_of_a_conversation_is_forgotten_and_notes_can_stay(
    rpc: PostgresRpc, operations: Operations, group: Group
) -> None:
    alice, bob = group.turn("alice"), group.turn("bob")
    await _turn(rpc, alice, group.message("one"))
    await _turn(rpc, bob, group.message("two"))
    await NoteStore(rpc).create(alice, title="Kept on purpose")

    await operations.forget_conversation(
        alice.conversation_id, group.person("alice"), keep_notes=True
    )

    [left] = await MemoryStore(rpc).list_conversations()
    assert left.user_id == group.person("bob")
    assert [note.title for note in await NoteStore(rpc).list(alice)] == ["Kept on purpose"]


async def test_a_recalled_message_is_in_no_table(
    database_url: str,
    connection: psycopg.Connection,
    rpc: PostgresRpc,
    jobs: StoreJobs,
    group: Group,
) -> None:
    alice, recalled = group.turn("alice"), group.message("recalled")
    await ChatConversations(rpc, alice).begin(alice.chat_id, 1, [])
    await MemoryStore(rpc).begin_turn(alice, turn_id=recalled, content=SENTENCE)
    said = MessageRecord("Alice", alice.actor_id, SENTENCE, 1, False, recalled)
    await ChatConversations(rpc, alice).append(alice.chat_id, said, active_since=0, keep=100)
    _enqueue(database_url, alice, recalled)
    await jobs.keep_turn(_missed(alice, recalled), unsent=True)

    params = {"p_message_id": recalled, "p_chat_id": alice.chat_id}
    await rpc.call("recall_message", params, None)
    await jobs.take_back(recalled, alice.chat_id, keep=False)
    QueueOperations(database_url).forget(message_id=recalled)

    assert tables_with(connection, WORD) == set()


async def test_a_summary_goes_with_a_message_it_was_made_from(
    connection: psycopg.Connection, rpc: PostgresRpc, group: Group
) -> None:
    alice, bob = group.turn("alice"), group.turn("bob")
    for context, name in ((alice, "one"), (alice, "two"), (bob, "three")):
        await MemoryStore(rpc).begin_turn(context, turn_id=group.message(name), content="Hello")
    _summarise(connection, SENTENCE, group.message("one"))
    _summarise(connection, "Bob said hello", group.message("three"))

    for name, left in (("two", {"agent_summaries"}), ("one", set())):
        params = {"p_message_id": group.message(name), "p_chat_id": alice.chat_id}
        await rpc.call("recall_message", params, None)
        assert tables_with(connection, WORD) == left
    assert tables_with(connection, "bob said hello") == {"agent_summaries"}


@pytest.mark.parametrize("how", ["person", "conversation", "message", "retention"])
async def test_a_folded_word_is_forgotten_with_its_message(
    connection: psycopg.Connection,
    rpc: PostgresRpc,
    operations: Operations,
    group: Group,
    how: str,
) -> None:
    alice = group.turn("alice")
    for number in range(6):
        text = SENTENCE if number == 0 else f"thing {number} happened"
        turn_id = group.message(f"q{number}")
        await MemoryStore(rpc).begin_turn(alice, turn_id=turn_id, content=text)
        await MemoryStore(rpc).record_reply(alice, turn_id=turn_id, cards=["Noted."])
    await fold_messages(
        Summaries(rpc), extractive_summary, alice, window=2, names=_nobody, zone=UTC
    )
    assert "agent_summaries" in tables_with(connection, WORD)

    match how:
        case "person":
            await operations.forget_person(alice.user_id)
        case "conversation":
            await operations.forget_conversation(alice.conversation_id)
        case "message":
            await MemoryStore(rpc).take_back(group.message("q0"), alice.chat_id)
        case "retention":
            connection.execute(
                "update agent_turns set created_at = now() - interval '99 days' where id = %s",
                [group.message("q0")],
            )
            await operations.apply_retention(30)
    if how in ("message", "retention"):
        await fold_messages(
            Summaries(rpc), extractive_summary, alice, window=2, names=_nobody, zone=UTC
        )

    assert tables_with(connection, WORD) == set()


async def _nobody(open_ids: Sequence[str]) -> dict[str, str]:
    return {}


def _summarise(connection: psycopg.Connection, content: str, until: str) -> None:
    connection.execute(
        "insert into public.agent_summaries (conversation_id, user_id, tenant_key, chat_id,"
        " version, content, until_message_id)"
        " select conversation_id, user_id, tenant_key, chat_id, 1, %s, id"
        " from public.agent_messages where message_id = %s",
        [content, until],
    )


async def test_a_running_job_is_left_to_its_worker_and_counted(
    database_url: str, connection: psycopg.Connection, group: Group
) -> None:
    _enqueue(database_url, group.turn("alice"), group.message("one"))
    connection.execute("set search_path = feishu_bot")
    connection.execute("update jobs set status = 'running', worker_id = 1")

    found = QueueOperations(database_url).forget(open_id=group.person("alice"))

    assert found == Forgotten(jobs=0, turns=0, running=1)


async def test_the_words_of_others_stay_in_the_queue(
    database_url: str, connection: psycopg.Connection, group: Group
) -> None:
    _enqueue(database_url, group.turn("bob"), group.message("one"))

    QueueOperations(database_url).forget(open_id=group.person("alice"))

    assert tables_with(connection, WORD) == {"jobs"}


async def test_no_table_and_no_column_of_a_person_is_left_out(
    connection: psycopg.Connection, operations: Operations
) -> None:
    columns = connection.execute(
        "select c.table_name, c.column_name from information_schema.columns c"
        " join information_schema.tables t using (table_schema, table_name)"
        " where c.table_schema = 'public' and t.table_type = 'BASE TABLE'"
    ).fetchall()
    known = {
        column
        for (column,) in connection.execute(
            "select distinct column_name from public.person_columns('public')"
        )
    }
    covered = await operations.count_person("ou_anybody")

    names = {column for _, column in columns if column == "id" or column.endswith("_id")}
    assert names <= known | OTHER_IDS, "say in person_columns (sql) whether it names a person"
    assert {table for table, _ in columns} == covered.keys() | NO_PERSON


async def test_a_table_that_comes_later_is_forgotten_and_exported_too(
    connection: psycopg.Connection, operations: Operations, group: Group
) -> None:
    alice = group.person("alice")
    connection.execute("create table public.later (author_id text, words text)")
    connection.execute("grant all on public.later to service_role")
    connection.execute("insert into public.later values (%s, %s)", [alice, SENTENCE])

    exported = [row async for row in operations.export_person(alice)]
    counts = await operations.forget_person(alice)

    assert exported == [("later", {"author_id": alice, "words": SENTENCE})]
    assert counts["later"] == 1
    assert tables_with(connection, WORD) == set()
