"""Every function that the bot calls is called over both routes at least once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from datetime import UTC, datetime

import psycopg
import pytest

from bot.listening.conversation_store import ChatConversations
from bot.settings import load
from lab.doubles.processes import ROOT
from memory.receipts import ReceiptStore
from memory.sealing import Sealer
from memory.store import MemoryStore
from memory.tables.cards import ButtonStore, HandleStore, HandleTouch, TouchResult
from memory.tables.derived import EmbeddingStore
from memory.tables.directory import ChatStore, PeopleStore
from memory.tables.imports import ImportStore
from memory.tables.items import ForgottenCounts, SaidMessageStore
from memory.tables.operations import Operations
from memory.tables.timers import DigestMessage, DigestStore, ProactiveStore, TimerStore
from memory.tables.user_tokens import UserTokenStore
from tests.support.backends import Backend
from tests.support.exchanges import exchange
from tests.support.people import Group
from tests.support.routes import OVER_THE_API

pytestmark = pytest.mark.anyio

KEY = "dGVzdHMtb25seS1rZXktb2YtMzItYnl0ZXMtMDAwMDA="
# What PostgREST lets a token call, or the service.
CALLABLE = """
    select distinct p.proname from pg_proc p
    where p.pronamespace = 'public'::regnamespace and p.prorettype <> 'trigger'::regtype
      and has_function_privilege('service_role', p.oid, 'execute')
"""
# This tool has the name of a function that only other functions call.
WORDS = {"forget_fact"}


def words_of_the_code() -> Iterator[str]:
    """Every string literal of the program."""
    for folder in ("bot", "memory"):
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value


def test_every_function_that_the_code_calls_is_called_over_the_api(
    shared_database_url: str,
) -> None:
    with psycopg.connect(shared_database_url) as connection:
        callable_ = {name for (name,) in connection.execute(CALLABLE)}
    called = callable_ & set(words_of_the_code()) - WORDS

    assert len(called) > 150
    assert called - frozenset().union(*OVER_THE_API.values()) == set()


def test_every_test_that_runs_over_the_api_exists() -> None:
    for test in OVER_THE_API:
        file, *_, name = test.split("::")
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), test


async def test_a_chat_and_its_conversation(backend: Backend, group: Group) -> None:
    alice = group.turn("alice")
    place = (alice.tenant_key, alice.chat_id)
    async with backend.rpc() as rpc:
        chats, talk = ChatStore(rpc), ChatConversations(rpc, alice)
        await chats.enter(*place, name="Harbour", at_ms=1)
        owed = await chats.begin_welcome(*place, "group", at_ms=1)
        await chats.end_welcome(alice.chat_id, owed or 0)
        await chats.save_adder(*place, alice.actor_id)

        assert owed == 1
        assert await chats.begin_welcome(*place, "group", at_ms=1) is None
        assert [one.name for one in await chats.known(alice.chat_id)] == ["Harbour"]
        assert await talk.is_managed()
        await talk.set_rule("mode", "mention")
        assert (await talk.rules(load())).mode == "mention"
        assert not await talk.is_quiet()
        assert not await talk.has_answered_in(alice.root_id)
        assert await talk.last_decision() is None


async def test_questions_that_nobody_answers(backend: Backend, group: Group) -> None:
    alice, question = group.turn("alice"), group.message("q")
    now = datetime.now(UTC)
    async with backend.rpc() as rpc:
        memory, proactive = MemoryStore(rpc), ProactiveStore(rpc)
        await exchange(memory, alice, "The harbour opens at six.", "Noted.")
        await proactive.wait(alice, question, "When does the harbour open?", 1, 2)
        may = await proactive.may_answer(alice, question, since=now, most=1, claim=True)
        await proactive.leave(alice, question)

        assert may == "no"
        assert not await proactive.stop(alice)
        assert await proactive.said_about(alice, "harbour") == ("The harbour opens at six.",)


async def test_what_a_person_said_and_what_became_of_it(backend: Backend, group: Group) -> None:
    alice, turn_id = group.turn("alice"), group.message("q")
    touch = HandleTouch(
        "again", alice.chat_id, group.message("none"), alice.actor_id, alice.tenant_key
    )
    async with backend.rpc() as rpc:
        memory, said, handles = MemoryStore(rpc), SaidMessageStore(rpc), HandleStore(rpc)
        buttons = ButtonStore(rpc)
        await memory.merge_working_memory(alice, scope="chat", patch={"port": "north"})
        await memory.begin_turn(alice, turn_id=turn_id, content="Which port?")
        await memory.note_done(alice, turn_id, "set_timer")
        running = await memory.running_turns(alice, turn_id="om_other")
        listed = await said.to_forget(alice, everywhere=False, turn_id="om_other")
        assert await said.of_others(alice) == (), "nobody else said anything here"

        assert running == (turn_id,)
        assert [one.message_id for one in listed] == [turn_id]
        assert len(await memory.items.find(alice, "port", "chat")) == 1
        assert await memory.replace_message(
            turn_id, alice.chat_id, "Whose port?", "Whose port?", by_turn="om_other"
        )
        assert await handles.press(touch) == TouchResult("unknown")
        assert (
            await handles.react("om_none", "ou_none", "t", helpful=True, is_withdrawn=False)
            == "unknown"
        )
        assert await buttons.pending(alice, event_id="press") is None
        await buttons.release_share("om_none")
        asked = {"p_message_id": "om_none", "p_tenant_key": "t", "p_operator_id": "ou_none"}
        assert await rpc.call("card_asked", asked, None) is None
        assert await said.forget(alice, [], [], turn_id=turn_id) == ForgottenCounts(0, 0, 0, 0)
        await said.forget_in_chat(alice.chat_id, alice.actor_id)
        assert await said.elsewhere([turn_id]) is None
        read = DigestMessage(turn_id, "Alice", alice.actor_id, "Which port?", 1, card=False)
        assert await DigestStore(rpc).gone_ids([read]) == {turn_id}
        assert await ReceiptStore(rpc).own(alice.actor_id, alice.tenant_key) == ()


async def test_what_operators_look_at(backend: Backend, group: Group) -> None:
    here = group.chat()
    async with backend.rpc() as rpc:
        operations, embeddings = Operations(rpc), EmbeddingStore(rpc)
        imports, timers = ImportStore(rpc), TimerStore(rpc)

        assert isinstance(await operations.unplaced(), tuple)
        assert isinstance(await imports.every(), tuple)
        assert await imports.fail(0, "unreachable") is None
        assert await timers.inspect(chat_id=here, over=True, limit=5) == ()
        assert await embeddings.drop_others("no such model") >= 0
        assert isinstance(await embeddings.counts(), dict)
        assert await PeopleStore(rpc).count() >= 0
        assert await UserTokenStore(rpc, Sealer.of(KEY)).count() >= (0, 0)
        old = {"p_older_s": 10**8, "p_limit": 1}
        assert await rpc.call("pending_replies", old, None) == []
