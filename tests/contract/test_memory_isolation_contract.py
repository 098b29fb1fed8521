"""Who never meets in the memory: threads, chats, tenants, and with `MEMORY_SHARING=person` people;
also while all talk at once."""

from __future__ import annotations

import asyncio
import random

import pytest

from memory.errors import AccessDenied
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore
from tests.support.backends import Backend
from tests.support.exchanges import exchange, texts
from tests.support.people import Group

pytestmark = pytest.mark.anyio


async def heard(memory: MemoryStore, context: AgentMemoryContext, turn_id: str) -> list[str]:
    """The history before a new question of `context`."""
    turn = await memory.begin_turn(context, turn_id=turn_id, content="what do you know?")
    return texts(turn)[:-1]


async def test_two_people_in_one_thread_stay_apart(apart: MemoryStore, group: Group) -> None:
    await exchange(apart, group.turn("alice"), "Q alice", "A alice")
    await exchange(apart, group.turn("bob"), "Q bob", "A bob")
    await apart.merge_working_memory(group.turn("alice"), scope="chat", patch={"who": "alice"})

    assert await heard(apart, group.turn("alice"), group.message("a")) == ["Q alice", "A alice"]
    assert await heard(apart, group.turn("bob"), group.message("b")) == ["Q bob", "A bob"]
    assert (await apart.working_memory(group.turn("bob"))).chat == {}


@pytest.mark.parametrize("elsewhere", [{"thread": "other"}, {"chat": "there"}], ids=str)
async def test_one_person_in_two_conversations_has_two_memories(
    memory: MemoryStore, group: Group, elsewhere: dict[str, str]
) -> None:
    there = group.turn(**elsewhere)
    await exchange(memory, group.turn(), "Q here", "A here")
    await memory.merge_working_memory(group.turn(), scope="chat", patch={"where": "here"})

    assert await heard(memory, there, group.message("q")) == []
    assert (await memory.working_memory(there)).chat == {}


async def test_a_sender_who_mentions_somebody_sees_what_both_said_in_the_thread(
    memory: MemoryStore, group: Group
) -> None:
    await exchange(memory, group.turn("alice"), "Q alice", "A alice")
    await exchange(memory, group.turn("bob"), "Q bob", "A bob")
    bob_mentions_alice = group.turn("alice", sender="bob")

    turn = await memory.begin_turn(
        bob_mentions_alice, turn_id=group.message("q"), content="@Bot @Alice and then?"
    )

    assert texts(turn) == ["Q alice", "A alice", "Q bob", "A bob", "@Bot @Alice and then?"]
    alice, bob = group.person("alice"), group.person("bob")
    assert [m.actor_id for m in turn.history] == [alice, alice, bob, bob, bob]
    assert texts(turn)[2:] == [m.content for m in turn.own(bob)]


async def test_the_same_open_id_in_another_tenant_is_somebody_else(
    memory: MemoryStore, group: Group
) -> None:
    await exchange(memory, group.turn(tenant="one"), "Q", "A")
    await memory.merge_working_memory(group.turn(tenant="one"), scope="user", patch={"a": 1})

    assert (await memory.working_memory(group.turn(tenant="two"))).user == {}
    assert await heard(memory, group.turn(tenant="two"), group.message("q")) == []


@pytest.mark.parametrize(
    ("subject", "sender", "chat"),
    [("bob", "bob", "here"), ("bob", "alice", "here"), ("alice", "bob", "there")],
)
async def test_a_call_cannot_name_more_than_its_token_allows(
    memory: MemoryStore, backend: Backend, group: Group, subject: str, sender: str, chat: str
) -> None:
    alice = group.turn("alice")
    await exchange(memory, alice, "Q", "A")
    await memory.merge_working_memory(alice, scope="chat", patch={"secret": 1})
    token = group.turn(subject, sender=sender, chat=chat)
    claimed = {
        "p_conversation_id": alice.conversation_id,
        "p_user_id": alice.user_id,
        "p_actor_id": alice.actor_id,
    }

    async with backend.rpc() as rpc:
        with pytest.raises(AccessDenied):
            await rpc.call("get_working_memory", {**claimed, "p_tenant_key": "tenant"}, token)
        place = {"p_tenant_key": "tenant", "p_chat_id": alice.chat_id}
        sent = {**place, "p_message_id": f"om_Q_{alice.chat_id}_card0"}
        heard = await rpc.call("said_message", {**token.identity(), **sent}, token)
        with pytest.raises(AccessDenied):
            await rpc.call("list_messages", _everything(alice.conversation_id), token)

    assert (heard and heard["content"]) == ("A" if chat == "here" else None)


async def test_an_operator_sees_everyone(
    memory: MemoryStore, backend: Backend, group: Group
) -> None:
    await exchange(memory, group.turn("alice"), "Q alice", "A")
    await exchange(memory, group.turn("bob"), "Q bob", "A")

    async with backend.rpc() as rpc:
        rows = await rpc.call("list_messages", _everything(group.turn().conversation_id), None)

    assert {row["user_id"] for row in rows} == {group.person("alice"), group.person("bob")}


async def test_a_hundred_interleaved_calls_of_ten_people_never_swap_identities(
    apart: MemoryStore, group: Group
) -> None:
    people = [f"person{n}" for n in range(10)]
    for name in people:
        await exchange(apart, group.turn(name), f"Q {name}", f"A {name}")
        await apart.merge_working_memory(group.turn(name), scope="user", patch={"name": name})

    async def look(name: str, n: int) -> tuple[str, list[str], object]:
        if n % 2:
            return name, [], (await apart.working_memory(group.turn(name))).user
        turn = await apart.begin_turn(
            group.turn(name), turn_id=group.message(f"again_{name}"), content="who am I?"
        )
        return name, texts(turn), turn.working_memory.user

    calls = [look(name, n) for name in people for n in range(10)]
    random.Random(7).shuffle(calls)
    for name, heard, user in await asyncio.gather(*calls):
        assert user == {"name": name}
        assert heard in ([], [f"Q {name}", f"A {name}", "who am I?"])


async def test_an_operators_call_between_two_turns_lends_them_nothing(
    memory: MemoryStore, backend: Backend, group: Group
) -> None:
    await exchange(memory, group.turn("alice"), "Q alice", "A alice")

    async def operator() -> int:
        return len(await memory.list_messages(group.turn().conversation_id))

    async def bob() -> int:
        return len((await memory.working_memory(group.turn("bob"))).chat)

    counts = await asyncio.gather(*(call() for _ in range(20) for call in (operator, bob)))

    assert counts == [2, 0] * 20


def _everything(conversation_id: str) -> dict[str, object]:
    return {"p_conversation_id": conversation_id, "p_user_id": None, "p_limit": 100}
