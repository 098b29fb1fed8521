"""Working memory over every backend: typed values, merge patches, limits, concurrent writers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from memory.errors import AccessDenied, BadPatch, WorkingMemoryTooLarge
from memory.models import PersonRemark, WorkingMemory
from memory.store import MemoryStore
from tests.support.exchanges import exchange, texts
from tests.support.people import Group

pytestmark = pytest.mark.anyio


async def test_a_person_nobody_knows_has_an_empty_working_memory(
    memory: MemoryStore, group: Group
) -> None:
    assert await memory.working_memory(group.turn()) == WorkingMemory({}, {})


@pytest.mark.parametrize(
    "value",
    [
        *("2026", 2026, 2026.5, -0.1, 9007199254740991, True, False, "", "null", "[]", "鱼 🐟"),
        *([1, "1", None, [2]], [], {}, {"a": {"b": [{"c": 1}]}}),
    ],
    ids=repr,
)
async def test_a_value_comes_back_with_its_type(
    memory: MemoryStore, group: Group, value: object
) -> None:
    merged = await memory.merge_working_memory(group.turn(), scope="chat", patch={"key": value})
    stored = (await memory.working_memory(group.turn())).chat

    assert merged == stored == {"key": value}
    assert type(stored["key"]) is type(value)


# From RFC 7396, appendix A, where the target and the patch are objects.
@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": 1}, {"a": {"bb": {"ccc": None}}}, {"e": 1, "a": {"bb": {}}}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": 1}, {}, {"a": 1}),
        ({"a": 1}, {"missing": None}, {"a": 1}),
        ({"a": {"b": 1}}, {"a": "text"}, {"a": "text"}),
        ({"a": "text"}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a.b": 1, "0": 2, "{a}": 3}, {"a.b": None, "0": 4}, {"0": 4, "{a}": 3}),
    ],
    ids=repr,
)
async def test_a_patch_merges_as_rfc_7396_says(
    memory: MemoryStore,
    group: Group,
    target: dict[str, Any],
    patch: dict[str, Any],
    result: dict[str, Any],
) -> None:
    await memory.merge_working_memory(group.turn(), scope="chat", patch=target)

    assert await memory.merge_working_memory(group.turn(), scope="chat", patch=patch) == result


async def test_a_first_patch_stores_no_null(memory: MemoryStore, group: Group) -> None:
    patch = {"a": None, "b": {"c": None, "d": 1}}

    merged = await memory.merge_working_memory(group.turn(), scope="chat", patch=patch)

    assert merged == {"b": {"d": 1}}


@pytest.mark.parametrize("patch", [[], "text", 1, None, True, [{"a": 1}]], ids=repr)
async def test_a_patch_that_is_no_object_is_refused_and_changes_nothing(
    memory: MemoryStore, group: Group, patch: Any
) -> None:
    await memory.merge_working_memory(group.turn(), scope="chat", patch={"a": 1})

    with pytest.raises(BadPatch):
        await memory.merge_working_memory(group.turn(), scope="chat", patch=patch)

    assert (await memory.working_memory(group.turn())).chat == {"a": 1}


async def test_a_patch_with_a_number_json_does_not_know_is_refused(
    memory: MemoryStore, group: Group
) -> None:
    with pytest.raises(BadPatch):
        await memory.merge_working_memory(group.turn(), scope="chat", patch={"a": float("nan")})


@pytest.mark.parametrize("text", ["nul \x00", "half of an emoji \ud83d"], ids=ascii)
async def test_a_patch_with_a_character_postgres_cannot_keep_is_refused(
    memory: MemoryStore, group: Group, text: str
) -> None:
    with pytest.raises(BadPatch):
        await memory.merge_working_memory(group.turn(), scope="chat", patch={"a": text})


async def test_twenty_writers_at_once_keep_twenty_keys(memory: MemoryStore, group: Group) -> None:
    await asyncio.gather(
        *(
            memory.merge_working_memory(group.turn(), scope="chat", patch={f"key{n}": n})
            for n in range(20)
        )
    )

    stored = (await memory.working_memory(group.turn())).chat
    assert stored == {f"key{n}": n for n in range(20)}


async def test_forty_five_first_writes_at_once_all_succeed(
    memory: MemoryStore, group: Group
) -> None:
    turns = [group.turn(f"person{n}", thread=f"thread{n % 5}") for n in range(45)]

    await asyncio.gather(
        *(
            memory.merge_working_memory(turn, scope="chat", patch={"n": n})
            for n, turn in enumerate(turns)
        ),
    )

    stored = await asyncio.gather(*(memory.working_memory(turn) for turn in turns))
    assert [each.chat for each in stored] == [{"n": n} for n in range(45)]


async def test_forty_five_first_questions_at_once_all_open(
    memory: MemoryStore, group: Group
) -> None:
    turns = await asyncio.gather(
        *(
            memory.begin_turn(
                group.turn(f"person{n}"), turn_id=group.message(f"q{n}"), content=f"Q{n}"
            )
            for n in range(45)
        )
    )

    assert [texts(turn)[-1] for turn in turns] == [f"Q{n}" for n in range(45)]


async def test_above_the_size_limit_a_patch_is_refused_and_what_was_there_stays(
    memory: MemoryStore, group: Group
) -> None:
    await memory.merge_working_memory(group.turn(), scope="chat", patch={"a": "x" * 16_000})

    with pytest.raises(WorkingMemoryTooLarge, match="remove keys first"):
        await memory.merge_working_memory(group.turn(), scope="chat", patch={"b": "y" * 400})
    with pytest.raises(WorkingMemoryTooLarge):
        await memory.merge_working_memory(group.turn("bob"), scope="chat", patch={"b": "鱼" * 6000})

    assert list((await memory.working_memory(group.turn())).chat) == ["a"]
    assert (await memory.working_memory(group.turn("bob"))).chat == {}
    assert await memory.merge_working_memory(
        group.turn(), scope="chat", patch={"a": None, "b": "y" * 400}
    ) == {"b": "y" * 400}


async def test_clearing_empties_one_scope_and_never_touches_the_history(
    memory: MemoryStore, group: Group
) -> None:
    context = group.turn()
    await exchange(memory, context, "Q1", "A1")
    await memory.merge_working_memory(context, scope="chat", patch={"here": 1})
    await memory.merge_working_memory(context, scope="user", patch={"everywhere": 1})

    await memory.clear_working_memory(context, scope="chat")
    turn = await memory.begin_turn(context, turn_id=group.message("q2"), content="Q2")

    assert turn.working_memory == WorkingMemory({}, {"everywhere": 1})
    assert texts(turn) == ["Q1", "A1", "Q2"]

    await memory.clear_working_memory(context, scope="user")
    assert await memory.working_memory(context) == WorkingMemory({}, {})


async def test_clearing_what_was_never_written_is_no_error(
    memory: MemoryStore, group: Group
) -> None:
    await memory.clear_working_memory(group.turn(), scope="chat")
    await memory.clear_working_memory(group.turn(), scope="user")


async def test_a_turn_opens_with_the_working_memory_of_both_scopes(
    memory: MemoryStore, group: Group
) -> None:
    await memory.merge_working_memory(group.turn(), scope="chat", patch={"topic": "launch"})
    await memory.merge_working_memory(
        group.turn(thread="another"), scope="user", patch={"name": "Alice"}
    )

    turn = await memory.begin_turn(group.turn(), turn_id=group.message("q"), content="Q")

    assert turn.working_memory == WorkingMemory({"topic": "launch"}, {"name": "Alice"})


async def test_what_somebody_had_kept_in_a_group_is_known_there_to_who_asks_about_them(
    memory: MemoryStore, group: Group
) -> None:
    await memory.merge_working_memory(group.turn("alice"), scope="user", patch={"salary": 1})
    await memory.merge_working_memory(group.turn("alice"), scope="chat", patch={"topic": "launch"})
    bob_mentions_alice = group.turn("alice", sender="bob")

    read = await memory.working_memory(bob_mentions_alice)
    turn = await memory.begin_turn(
        bob_mentions_alice, turn_id=group.message("q"), content="@Bot @Alice what do you earn?"
    )

    assert read == turn.working_memory == WorkingMemory({"topic": "launch"}, {"salary": 1})


async def test_lasting_facts_follow_the_place_they_were_told_in(
    memory: MemoryStore, group: Group
) -> None:
    await memory.merge_working_memory(group.turn(chat="x"), scope="user", patch={"in": "x"})
    await memory.merge_working_memory(group.p2p(), scope="user", patch={"in": "p2p", "pay": 1})

    assert (await memory.working_memory(group.turn(chat="x"))).user == {"in": "x"}
    assert (await memory.working_memory(group.turn(chat="y"))).user == {}
    assert (await memory.working_memory(group.p2p())).user == {"in": "p2p", "pay": 1}
    assert (await memory.working_memory(group.p2p("bob"))).user == {}


async def test_only_the_person_changes_what_is_kept_about_them_everywhere(
    memory: MemoryStore, group: Group
) -> None:
    await memory.merge_working_memory(group.turn("alice"), scope="user", patch={"salary": 1})
    bob_mentions_alice = group.turn("alice", sender="bob")

    with pytest.raises(AccessDenied):
        await memory.merge_working_memory(bob_mentions_alice, scope="user", patch={"salary": 2})
    with pytest.raises(AccessDenied):
        await memory.clear_working_memory(bob_mentions_alice, scope="user")

    assert (await memory.working_memory(group.turn("alice"))).user == {"salary": 1}


async def test_what_a_sender_says_of_whom_they_mention_stays_the_senders_statement(
    memory: MemoryStore, group: Group
) -> None:
    await memory.merge_working_memory(
        group.turn("alice", sender="bob"), scope="chat", patch={"from": "bob"}
    )

    remark = PersonRemark(group.person("bob"), group.person("alice"), {"from": "bob"})
    for asked in (group.turn("alice"), group.turn("bob"), group.turn("alice", sender="bob")):
        assert await memory.working_memory(asked) == WorkingMemory(said=(remark,))
    assert await memory.working_memory(group.turn("carol")) == WorkingMemory()


async def test_who_is_spoken_of_can_have_it_cleared(memory: MemoryStore, group: Group) -> None:
    about_alice = group.turn("alice", sender="bob")
    await memory.merge_working_memory(about_alice, scope="chat", patch={"from": "bob"})

    await memory.clear_working_memory(group.turn("alice"), scope="chat")

    assert await memory.working_memory(group.turn("bob")) == WorkingMemory()


async def test_a_value_that_was_replaced_keeps_its_time_and_its_source(
    memory: MemoryStore, group: Group
) -> None:
    alice = group.turn()
    for city in ("Berlin", "Rome", "Oslo"):
        await memory.merge_working_memory(
            alice, scope="user", patch={"city": city}, turn_id=group.message(city)
        )

    rome, berlin = await memory.items.former(alice)

    assert [(one.key, one.value, one.scope) for one in (rome, berlin)] == [
        ("city", "Rome", "user"),
        ("city", "Berlin", "user"),
    ]
    assert (berlin.turn_id, rome.turn_id) == (group.message("Berlin"), group.message("Rome"))
    assert str(berlin.since) <= berlin.until <= rome.until
    assert (await memory.working_memory(alice)).user == {"city": "Oslo"}


async def test_a_value_that_was_removed_is_no_former_value(
    memory: MemoryStore, group: Group
) -> None:
    alice = group.turn()
    for patch in ({"city": "Berlin"}, {"city": "Rome"}, {"city": None}, {"city": "Oslo"}):
        await memory.merge_working_memory(alice, scope="chat", patch=patch)

    assert await memory.items.former(alice) == ()


async def test_former_values_are_told_to_whom_they_are_of_and_where_they_were_told(
    memory: MemoryStore, group: Group
) -> None:
    alice = group.turn()
    for city in ("Berlin", "Rome"):
        await memory.merge_working_memory(alice, scope="user", patch={"city": city})

    assert len(await memory.items.former(group.turn(thread="another"))) == 1
    assert await memory.items.former(group.turn(chat="elsewhere")) == ()
    assert await memory.items.former(group.turn("bob")) == ()
    assert await memory.items.former(group.turn("alice", sender="bob")) == ()
