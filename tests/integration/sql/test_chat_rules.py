"""The rules of a chat in the database: what is taken, what is refused, what comes back."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from bot.listening.conversation_store import ChatConversations
from memory.backends.postgres import PostgresRpc
from memory.errors import AccessDenied, BadArgument, StoreError
from memory.scope import AgentMemoryContext
from memory.tables.directory import ChatStore
from tests.support.people import Group

pytestmark = pytest.mark.anyio


@pytest.fixture
async def alice(rpc: PostgresRpc) -> AgentMemoryContext:
    """Somebody who manages a group."""
    context = Group().turn()
    await ChatStore(rpc).save_managers(context.tenant_key, context.chat_id, [context.actor_id])
    return context


async def stored(rpc: PostgresRpc, context: AgentMemoryContext) -> dict[str, Any]:
    """What the chat set itself."""
    chat = {"p_chat_id": context.chat_id, "p_tenant_key": context.tenant_key}
    row = await rpc.call("get_chat_rules", chat, context)
    return {name: value for name, value in row.items() if value}


async def test_a_rule_needs_no_column(rpc: PostgresRpc, alice: AgentMemoryContext) -> None:
    chat = ChatConversations(rpc, alice)
    for name, value in (("length", "short"), ("mode", "all"), ("tone", "dry"), ("proactive", "on")):
        await chat.set_rule(name, value)
    await chat.set_rule("tone", "warm")
    own = {"length": "short", "mode": "all", "tone": "warm", "proactive": "on"}
    assert await stored(rpc, alice) == own

    await chat.set_rule("length", "")
    await chat.set_rule("proactive", "")
    assert await stored(rpc, alice) == {"mode": "all", "tone": "warm"}


async def test_only_who_manages_the_chat_sets_one(
    rpc: PostgresRpc, alice: AgentMemoryContext
) -> None:
    other = Group(alice.chat_id.removeprefix("oc_here_")).turn("bob")
    with pytest.raises(AccessDenied):
        await ChatConversations(rpc, other).set_rule("length", "short")
    assert await stored(rpc, alice) == {}


@pytest.mark.parametrize("name", ["", "Mode", "told since", "x;", "1", "模式", "m\n"])
async def test_other_names_are_refused(
    rpc: PostgresRpc, alice: AgentMemoryContext, name: str
) -> None:
    with pytest.raises(BadArgument):
        await ChatConversations(rpc, alice).set_rule(name, "on")


async def test_what_is_stored_has_a_limit(rpc: PostgresRpc, alice: AgentMemoryContext) -> None:
    with pytest.raises(StoreError):
        await ChatConversations(rpc, alice).set_rule("length", "x" * 4000)
    assert await stored(rpc, alice) == {}


async def test_a_choice_does_not_stand_for_what_has_a_column(
    rpc: PostgresRpc, alice: AgentMemoryContext, connection: psycopg.Connection
) -> None:
    await ChatConversations(rpc, alice).set_rule("length", "short")
    forged = {"told_since_ms": 1, "mode": "all", "history": "hidden", "proactive": "on"}
    connection.execute("update chat_rules set choices = choices || %s", [json.dumps(forged)])

    assert await stored(rpc, alice) == {"length": "short"}
    with pytest.raises(psycopg.errors.CheckViolation):
        connection.execute("update chat_rules set choices = '[]'")


@pytest.mark.parametrize("stated", ["shown", "hidden", ""])
async def test_whether_newcomers_see_the_history_is_stated_or_not(
    rpc: PostgresRpc, alice: AgentMemoryContext, stated: str
) -> None:
    await ChatConversations(rpc, alice).set_rule("history", "hidden")
    await ChatConversations(rpc, alice).set_rule("history", stated)
    assert (await stored(rpc, alice)).get("history", "") == stated
