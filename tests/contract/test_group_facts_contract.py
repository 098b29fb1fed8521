"""What somebody had the bot remember in a group: whoever asks about it there finds it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from memory.backends.postgres import PostgresRpc, connection_pool
from memory.models import GroupFact
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore
from tests.support.people import Group

pytestmark = pytest.mark.anyio


@dataclass
class Talk:
    """People of a group who have the bot remember something, and ask for it."""

    memory: MemoryStore
    group: Group
    asked: int = field(default=0)

    async def keep(
        self, who: str, name: str, *, replaces: tuple[GroupFact, ...] = (), scope: str = "chat",
        **patch: object,
    ) -> str:  # fmt: skip
        """Returns the message, which `name` names."""
        context, turn_id = self.group.turn(who, thread=f"of {who}"), self.group.message(name)
        await self.memory.begin_turn(context, turn_id=turn_id, content="remember this")
        await self.memory.merge_working_memory(
            context,
            scope="user" if scope == "user" else "chat",
            patch=patch,
            turn_id=turn_id,
            replaces=[one.id for one in replaces],
        )
        return turn_id

    async def asks(
        self, question: str, context: AgentMemoryContext | None = None
    ) -> tuple[GroupFact, ...]:
        self.asked += 1
        opened = await self.memory.begin_turn(
            context or self.group.turn("carol"),
            turn_id=self.group.message(f"question{self.asked}"),
            content=question,
        )
        assert {one.turn_id for one in opened.working_memory.group} <= {
            *opened.working_memory.turns
        }
        return opened.working_memory.group

    async def held(self, question: str) -> list[object]:
        """The values that hold, and in a list of their own what did not any more."""
        facts = await self.asks(question)
        return [
            *(one.value for one in facts if one.until is None),
            [one.value for one in facts if one.until],
        ]


@pytest.fixture
def talk(memory: MemoryStore, group: Group) -> Talk:
    return Talk(memory, group)


async def test_whoever_asks_in_the_group_finds_a_fact_with_author_time_and_source(
    talk: Talk,
) -> None:
    said = await talk.keep("alice", "said", handover_date="3 March")

    [fact] = await talk.asks("when is the handover?")

    assert (fact.key, fact.value, fact.turn_id) == ("handover_date", "3 March", said)
    assert fact.actor_id == fact.user_id == talk.group.person("alice")
    assert fact.at
    assert fact.until is None


async def test_a_fact_is_found_only_where_it_was_told_and_if_the_question_has_its_words(
    talk: Talk,
) -> None:
    await talk.keep("alice", "said", handover_date="3 March")

    assert await talk.asks("who brings cake?") == ()
    elsewhere = talk.group.turn("carol", chat="elsewhere")
    assert await talk.asks("when is the handover?", elsewhere) == ()
    assert await talk.asks("when is the handover?", talk.group.p2p("alice")) == ()


async def test_chinese_facts_are_found_by_their_words(talk: Talk) -> None:
    await talk.keep("alice", "said", 交接日期="3月3号")

    assert await talk.held("交接是哪天？") == ["3月3号", []]


async def test_what_is_of_the_asker_already_is_not_told_twice(talk: Talk) -> None:
    await talk.keep("alice", "said", scope="user", handover_date="3 March")

    assert await talk.asks("when is the handover?", talk.group.turn("alice")) == ()


async def test_the_group_finds_what_somebody_had_kept_about_themselves(talk: Talk) -> None:
    await talk.keep("alice", "said", scope="user", extension="417")

    [fact] = await talk.asks("what is Alice's extension?")

    assert (fact.actor_id, fact.value) == (talk.group.person("alice"), "417")


async def test_a_later_fact_replaces_a_colleagues_by_a_link_and_comes_first(talk: Talk) -> None:
    await talk.keep("alice", "first", handover_date="3 March")
    old = await talk.asks("the handover moved")
    await talk.keep("bob", "second", handover="10 March", replaces=old)

    new, former = await talk.asks("when is the handover?")

    assert (new.value, former.value) == ("10 March", "3 March")
    assert (former.by, former.until) == (new.id, new.at)
    alice = await talk.memory.working_memory(talk.group.turn("alice", thread="of alice"))
    assert alice.chat == {}  # not told as what holds


async def test_two_people_who_say_different_things_are_both_told(talk: Talk) -> None:
    await talk.keep("alice", "first", order="300 chairs")
    await talk.keep("bob", "second", order="320 chairs")

    assert sorted(map(str, (await talk.held("how many chairs did we order?"))[:2])) == [
        "300 chairs",
        "320 chairs",
    ]


async def test_a_value_that_is_stated_again_holds_again(talk: Talk) -> None:
    await talk.keep("alice", "first", standup="9:15")
    await talk.keep("bob", "second", standup="9:45", replaces=await talk.asks("standup"))
    holding = [one for one in await talk.asks("standup") if one.until is None]
    await talk.keep("alice", "third", standup="9:15", replaces=tuple(holding))

    assert await talk.held("when is the standup?") == ["9:15", ["9:45"]]


async def test_what_was_replaced_holds_again_when_the_later_statement_is_taken_back(
    talk: Talk,
) -> None:
    await talk.keep("alice", "first", handover="3 March")
    await talk.keep("bob", "second", handover="10 March", replaces=await talk.asks("handover"))

    await talk.memory.take_back(talk.group.message("second"), talk.group.chat())

    assert await talk.held("when is the handover?") == ["3 March", []]


async def test_what_was_stated_again_is_as_it_was_when_that_is_taken_back(talk: Talk) -> None:
    await talk.keep("alice", "first", standup="9:15")
    await talk.keep("bob", "second", standup="9:45", replaces=await talk.asks("standup"))
    await talk.keep("alice", "third", standup="9:15")

    await talk.memory.take_back(talk.group.message("third"), talk.group.chat())

    assert await talk.held("when is the standup?") == ["9:45", ["9:15"]]


async def test_of_three_the_newest_holds_when_the_one_between_is_taken_back(talk: Talk) -> None:
    await talk.keep("alice", "first", handover="3 March")
    await talk.keep("bob", "second", handover="10 March", replaces=await talk.asks("handover"))
    holding = [one for one in await talk.asks("handover") if one.until is None]
    await talk.keep("dan", "third", handover="12 March", replaces=tuple(holding))

    await talk.memory.take_back(talk.group.message("second"), talk.group.chat())

    assert await talk.held("when is the handover?") == ["12 March", ["3 March"]]


async def test_nobody_replaces_what_a_colleague_had_kept_about_themselves(talk: Talk) -> None:
    await talk.keep("alice", "first", scope="user", extension="203")
    old = await talk.asks("Alice's extension")
    await talk.keep("bob", "second", extension="417", replaces=old)

    facts = await talk.asks("what is Alice's extension?")

    assert {one.value: one.until for one in facts} == {"203": None, "417": None}


async def test_in_the_strict_mode_nobody_reads_what_a_colleague_had_kept(
    shared_database_url: str, group: Group
) -> None:
    stores = []
    for sharing in ("chat", "person"):
        pool = connection_pool(shared_database_url)
        await pool.open()
        stores.append(MemoryStore(PostgresRpc(pool, sharing=sharing)))
    open_store, strict = stores
    await Talk(open_store, group).keep("alice", "first", handover="3 March")

    assert await Talk(strict, group).asks("when is the handover?") == ()

    for store in stores:
        await store.close()


async def test_a_prompt_gets_a_bounded_number_of_facts(talk: Talk) -> None:
    for n in range(12):
        await talk.keep(f"person{n}", f"said{n}", **{f"handover {n}": "x" * 150})

    facts = await talk.asks("when is the handover?")

    assert 0 < len(facts) <= 8
    assert sum(len(str(one.value)) for one in facts) <= 2400
