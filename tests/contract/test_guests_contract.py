"""A guest of a group is a person of their own tenant, and reads what they are a member of."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from memory.recall.passages import recall_params
from memory.rpc import Rpc
from memory.scope import AgentMemoryContext, FeishuPerson, memory_context, private_context
from memory.store import MemoryStore
from memory.tables.directory import ChatStore
from memory.tables.private import PrivateStore
from tests.support.backends import Backend
from tests.support.exchanges import exchange
from tests.support.people import Group

pytestmark = pytest.mark.anyio

HOME, AWAY = "tenant", "another tenant"
QUERY = "the archive's door code"


@dataclass
class Together:
    """A group of two companies that heard the door code; `ann` of home and `ann` of away have the
    same open_id."""

    rpc: Rpc
    group: Group
    memory: MemoryStore = field(init=False)

    def __post_init__(self) -> None:
        self.memory = MemoryStore(self.rpc)

    def alone(self, who: str, own: str, chat: str) -> AgentMemoryContext:
        """`who` of the tenant `own` in p2p."""
        return memory_context(
            chat_id=self.group.chat(chat),
            root="main",
            subject=self.group.person(who),
            actor=self.group.person(who),
            tenant_key=HOME,
            chat_type="p2p",
            actor_tenant="" if own == HOME else own,
        )

    async def joins(self, who: str, own: str) -> None:
        hour_ago = int((datetime.now(UTC) - timedelta(hours=1)).timestamp() * 1000)
        member = FeishuPerson(own, self.group.person(who))
        await ChatStore(self.rpc).add(HOME, self.group.chat(), [member], at_ms=hour_ago)

    async def finds(self, context: AgentMemoryContext) -> bool:
        params = recall_params(context, QUERY, now=datetime.now(UTC), scope="everywhere")
        found = await self.rpc.call("recall", {**context.identity(), **params}, context)
        return bool(found)


@pytest.fixture
async def together(backend: Backend, group: Group) -> AsyncIterator[Together]:
    async with backend.rpc() as rpc:
        both = Together(rpc, group)
        said = group.turn("bob", chat_type="group")
        await exchange(both.memory, said, "The archive's door code is 4711", "Noted.")
        yield both


async def test_a_guest_finds_alone_what_was_said_in_the_group(together: Together) -> None:
    guest = together.alone("gus", AWAY, "gus")
    assert not await together.finds(guest)

    await together.joins("gus", AWAY)

    assert await together.finds(guest)


@pytest.mark.parametrize(("member", "stranger"), [(HOME, AWAY), (AWAY, HOME)])
async def test_the_same_open_id_in_another_tenant_is_no_member(
    together: Together, member: str, stranger: str
) -> None:
    await together.joins("ann", member)

    assert await together.finds(together.alone("ann", member, "member"))
    assert not await together.finds(together.alone("ann", stranger, "stranger"))


async def test_two_people_of_one_open_id_do_not_read_each_others_p2p(together: Together) -> None:
    at_home, away = together.alone("ann", HOME, "home"), together.alone("ann", AWAY, "away")
    await exchange(together.memory, at_home, "The archive's door code is 1", "Noted.")
    await exchange(together.memory, away, "Hello", "Hi.")

    assert await together.finds(at_home)
    assert not await together.finds(away)


async def test_what_is_done_later_knows_the_tenant_by_the_p2p_chat(together: Together) -> None:
    guest = together.alone("gus", AWAY, "gus")
    await exchange(together.memory, guest, "Hello", "Hi.")
    await together.joins("gus", AWAY)
    without_an_event = replace(guest, actor_tenant="")

    assert await together.finds(without_an_event)


async def test_in_private_the_groups_of_the_asker_are_known(together: Together) -> None:
    guest = together.alone("gus", AWAY, "gus")
    assert await together.memory.shared_groups(guest, most=10) == ()
    await together.joins("gus", AWAY)
    in_group = together.group.turn("bob", chat_type="group")

    assert await together.memory.shared_groups(guest, most=10) == (in_group.chat_id,)
    assert await together.memory.shared_groups(guest, most=0) == ()
    assert await together.memory.shared_groups(in_group, most=10) == ()


async def test_a_guest_is_offered_what_they_were_told_elsewhere(together: Together) -> None:
    await together.joins("gus", AWAY)
    said = together.group.turn("gus", thread="gus", chat_type="group")
    await exchange(together.memory, said, "The archive's door code is 0815", "Noted.")
    gus, asked_in = together.group.person("gus"), together.group.chat("another")
    question = "What is the archive's door code?"
    private = PrivateStore(together.rpc)

    place = private_context(gus, HOME, AWAY)
    assert await private.sources(place, question, asked_in=asked_in)
    namesake = private_context(gus, HOME)
    assert not await private.sources(namesake, question, asked_in=asked_in)


async def test_nobody_is_answered_in_the_p2p_chat_of_their_namesake(together: Together) -> None:
    away, ann = together.alone("ann", AWAY, "away"), together.group.person("ann")
    await exchange(together.memory, away, "Hello", "Hi.")
    private = PrivateStore(together.rpc)

    assert (await private.place(private_context(ann, HOME, AWAY))).chat_id == away.chat_id
    namesake = private_context(ann, HOME)
    assert await private.place(namesake) == namesake


async def test_in_the_group_guests_and_hosts_read_the_same(together: Together) -> None:
    guest = replace(
        together.group.turn("gus", thread="elsewhere", chat_type="group"), actor_tenant=AWAY
    )

    assert await together.finds(guest)
