"""Notes and their registry in the real database, over every backend."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from memory.backends.postgres import PostgresRpc
from memory.errors import IdentityMissing, NoteInvalid, NoteNotFound
from memory.scope import AgentMemoryContext, memory_context
from memory.store import MemoryStore
from memory.tables.notes import Note, NoteStore, note_id
from tests.support.backends import Backend
from tests.support.people import Group
from tests.support.postgres import waits_for_a_lock

pytestmark = pytest.mark.anyio


@pytest.fixture
async def memories(backend: Backend) -> AsyncIterator[tuple[NoteStore, MemoryStore]]:
    async with backend.rpc() as rpc:
        yield NoteStore(rpc), MemoryStore(rpc)


@pytest.fixture
def notes(memories: tuple[NoteStore, MemoryStore]) -> NoteStore:
    return memories[0]


@pytest.fixture
def memory(memories: tuple[NoteStore, MemoryStore]) -> MemoryStore:
    return memories[1]


@pytest.fixture
def group() -> Group:
    return Group()


async def _speak(memory: MemoryStore, context: AgentMemoryContext) -> AgentMemoryContext:
    """The conversation exists from its first turn on."""
    await memory.begin_turn(context, turn_id=f"{context.root_id}-{context.user_id}", content="Q")
    return context


def _titles(notes: tuple[Note, ...]) -> list[str]:
    return [note.title for note in notes]


async def test_a_note_comes_back_as_it_was_created(notes: NoteStore, group: Group) -> None:
    alice = group.turn()
    made = await notes.create(
        alice, title="  Pasta\n night ", body="boil\nwater", tags=["italian", "#Dinner", "ITALIAN"]
    )

    assert made.id.startswith("note_")
    assert len(made.id) == 15
    assert (made.title, made.body, made.tags) == (
        "Pasta night",
        "boil\nwater",
        ("italian", "Dinner"),
    )
    assert await notes.get(alice, made.id) == made


async def test_the_same_id_again_makes_no_second_note(notes: NoteStore, group: Group) -> None:
    alice, id = group.turn(), note_id(group.message("q"), "Pasta", "")
    first = await notes.create(alice, title="Pasta", id=id)

    assert await notes.create(alice, title="Pasta", id=id) == first
    assert _titles(await notes.list(alice)) == ["Pasta"]
    bobs = await notes.create(group.turn("bob"), title="Mine", id=id)
    assert (bobs.user_id, bobs.title) == (group.person("bob"), "Mine")
    assert (await notes.get(alice, id)).title == "Pasta"


async def test_removing_one_tag_keeps_the_rest_and_says_what_changed(
    notes: NoteStore, group: Group
) -> None:
    alice = group.turn()
    made = await notes.create(alice, title="Pasta", tags=["italian", "dinner", "quick"])

    change = await notes.update(
        alice, made.id, title="Pizza", add_tags=["Oven", "DINNER"], remove_tags=["Italian", "none"]
    )

    assert change.note.tags == ("dinner", "quick", "Oven")
    assert (change.added, change.removed) == (("Oven",), ("italian",))
    assert (change.old_title, change.note.title) == ("Pasta", "Pizza")
    assert not change.body_changed


async def test_concurrent_updates_lose_no_tag(notes: NoteStore, group: Group) -> None:
    alice = group.turn()
    made = await notes.create(alice, title="Pasta")

    await asyncio.gather(*(notes.update(alice, made.id, add_tags=[f"t{i}"]) for i in range(12)))

    assert set((await notes.get(alice, made.id)).tags) == {f"t{i}" for i in range(12)}


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"title": "  "}, "title is empty"),
        ({"title": "x" * 201}, "at most 200"),
        ({"title": "ok", "body": "x" * 20_001}, "at most 20000"),
        ({"title": "ok", "tags": ["x" * 41]}, "more than 40"),
        ({"title": "ok", "tags": [f"t{i}" for i in range(21)]}, "at most 20"),
    ],
)
async def test_what_cannot_be_stored_is_refused_with_the_limit(
    notes: NoteStore, group: Group, fields: dict[str, object], says: str
) -> None:
    with pytest.raises(NoteInvalid, match=says):
        await notes.create(group.turn(), **fields)  # type: ignore[arg-type]


async def test_the_limits_are_reached_but_not_passed_by_an_update(
    notes: NoteStore, group: Group
) -> None:
    alice = group.turn()
    made = await notes.create(
        alice, title="面" * 200, body="面" * 20_000, tags=[f"t{i}" for i in range(20)]
    )

    with pytest.raises(NoteInvalid, match="would have 21 tags"):
        await notes.update(alice, made.id, add_tags=["one more"])
    change = await notes.update(alice, made.id, add_tags=["one more"], remove_tags=["T0"])
    assert len(change.note.tags) == 20


async def test_an_unknown_id_is_not_found_by_any_operation(notes: NoteStore, group: Group) -> None:
    alice = group.turn()
    for attempt in (
        notes.get(alice, "note_none"),
        notes.update(alice, "note_none", title="x"),
        notes.share(alice, "note_none"),
    ):
        with pytest.raises(NoteNotFound):
            await attempt


async def test_a_deleted_note_is_gone_from_list_and_registry(
    notes: NoteStore, memory: MemoryStore, group: Group
) -> None:
    alice = await _speak(memory, group.turn())
    made = await notes.create(alice, title="Pasta")

    forgotten = await memory.items.forget(alice, "note", made.id)
    assert forgotten
    assert forgotten.key == "Pasta"

    assert await notes.list(alice) == ()
    assert await notes.registry(alice) == ()
    with pytest.raises(NoteNotFound):
        await notes.get(alice, made.id)


async def test_search_ranks_titles_and_tags_before_bodies_in_both_languages(
    notes: NoteStore, group: Group
) -> None:
    alice = group.turn()
    await notes.create(alice, title="Groceries", body="pasta, milk")
    await notes.create(alice, title="Pasta", tags=["italian"])
    await notes.create(alice, title="周末计划", body="去爬山，带上意大利面")
    await notes.create(alice, title="意大利面做法")

    assert _titles(await notes.search(alice, "the pasta note")) == ["Pasta", "Groceries"]
    assert _titles(await notes.search(alice, "ITALIAN")) == ["Pasta"]
    assert _titles(await notes.search(alice, "意大利面")) == ["意大利面做法", "周末计划"]
    assert await notes.search(alice, "100% _nothing_") == ()
    assert await notes.search(alice, "") == ()


@pytest.mark.parametrize(
    ("title", "query"),
    [
        ("Hikes in the Alps", "hiking"),
        ("Recipe for ramen", "recipes"),
        ("Planned trips", "the plan for a trip"),
        ("第三季度预算表", "季度的预算"),
        ("面", "面"),
    ],
)
async def test_search_finds_other_forms_of_a_word_and_pairs_of_characters(
    notes: NoteStore, group: Group, title: str, query: str
) -> None:
    alice = group.turn()
    await notes.create(alice, title="Carpet", body="for scarves")
    await notes.create(alice, title=title)

    assert _titles(await notes.search(alice, query)) == [title]


async def test_a_stem_is_no_other_word_that_begins_like_it(notes: NoteStore, group: Group) -> None:
    alice = group.turn()
    await notes.create(alice, title="Carpets")

    assert await notes.search(alice, "carried") == ()


async def test_a_list_can_be_narrowed_by_tags_and_is_in_order_of_creation(
    notes: NoteStore, group: Group
) -> None:
    alice = group.turn()
    for title, tags in (("A", ["x"]), ("B", ["X", "y"]), ("C", ["y"])):
        await notes.create(alice, title=title, tags=tags)

    assert _titles(await notes.list(alice)) == ["A", "B", "C"]
    assert _titles(await notes.list(alice, tags=["x"])) == ["A", "B"]
    assert _titles(await notes.list(alice, tags=["x", "Y"])) == ["B"]
    assert _titles(await notes.list(alice, limit=2)) == ["B", "C"]


async def test_a_note_is_read_where_it_was_written_and_changed_by_its_author(
    notes: NoteStore, memory: MemoryStore, group: Group
) -> None:
    alice, bob = group.turn("alice"), group.turn("bob")
    made = await notes.create(alice, title="Agenda")

    assert (await notes.get(bob, made.id)).user_id == group.person("alice")
    assert _titles(await notes.search(bob, "agenda")) == ["Agenda"]
    assert await notes.list(bob) == ()
    with pytest.raises(NoteNotFound):
        await notes.update(bob, made.id, title="Mine now")
    assert await memory.items.forget(bob, "note", made.id) is None


@pytest.mark.parametrize("elsewhere", ["another chat", "p2p", "another tenant", "p2p of another"])
async def test_a_note_follows_nobody_elsewhere(
    notes: NoteStore, group: Group, elsewhere: str
) -> None:
    made = await notes.create(group.turn("alice"), title="Secret")
    reader = {
        "another chat": group.turn("alice", chat="elsewhere"),
        "p2p": group.p2p("alice"),
        "another tenant": group.turn("alice", tenant="other tenant"),
        "p2p of another": group.p2p("bob"),
    }[elsewhere]

    assert await notes.list(reader) == ()
    assert await notes.search(reader, "secret") == ()
    for attempt in (notes.get(reader, made.id), notes.update(reader, made.id, title="Mine now")):
        with pytest.raises(NoteNotFound):
            await attempt


async def test_a_note_belongs_to_who_asked_for_it_whomever_they_mentioned(
    notes: NoteStore, group: Group
) -> None:
    bob_about_alice = group.turn("alice", sender="bob")
    made = await notes.create(bob_about_alice, title="Agenda")

    assert made.user_id == group.person("bob")
    assert _titles(await notes.list(group.turn("bob"))) == ["Agenda"]
    assert await notes.list(group.turn("alice")) == ()
    assert [note.title for note in await notes.registry(bob_about_alice)] == ["Agenda"]


async def test_a_shared_note_is_read_in_that_chat_and_changed_by_nobody_else(
    notes: NoteStore, memory: MemoryStore, group: Group
) -> None:
    alice, bob = group.turn("alice"), group.turn("bob")
    made = await notes.create(alice, title="Agenda")
    assert (await notes.share(alice, made.id)).shared_chat_id == group.chat()

    assert (await notes.get(bob, made.id)).title == "Agenda"
    assert _titles(await notes.list(bob)) == ["Agenda"]
    assert _titles(await notes.search(bob, "agenda")) == ["Agenda"]
    assert await notes.list(group.turn("bob", chat="elsewhere")) == ()
    with pytest.raises(NoteNotFound):
        await notes.update(bob, made.id, title="Mine")
    assert await memory.items.forget(bob, "note", made.id) is None

    await notes.share(alice, made.id, is_shared=False)
    assert await notes.list(bob) == ()


async def test_the_registry_knows_order_of_creation_last_action_and_recency(
    notes: NoteStore, memory: MemoryStore, group: Group
) -> None:
    alice = await _speak(memory, group.turn())
    pizza = await notes.create(alice, title="Pizza")
    await notes.create(alice, title="Pasta")
    await notes.update(alice, pizza.id, add_tags=["oven"])

    registry = await notes.registry(alice)

    assert [(n.ordinal, n.title, n.recency, n.last_action) for n in registry] == [
        (1, "Pizza", 1, "updated"),
        (2, "Pasta", 2, "created"),
    ]
    assert registry[0].tags == ("oven",)


async def test_being_listed_is_no_use_but_being_the_one_found_is(
    notes: NoteStore, memory: MemoryStore, group: Group
) -> None:
    elsewhere = group.turn(thread="earlier")
    await notes.create(elsewhere, title="Old plan")
    await notes.create(elsewhere, title="Older idea")
    alice = await _speak(memory, group.turn())
    await notes.create(alice, title="Pasta")

    await notes.list(alice)
    listed = [(n.title, n.recency, n.last_action) for n in await notes.registry(alice)]
    await notes.search(alice, "idea")
    found = [(n.title, n.recency) for n in await notes.registry(alice)]

    assert listed == [
        ("Pasta", 1, "created"),
        ("Old plan", None, "listed"),
        ("Older idea", None, "listed"),
    ]
    assert found == [("Pasta", 2), ("Old plan", None), ("Older idea", 1)]


async def test_notes_of_the_thread_come_first_and_each_kind_in_order_of_creation(
    notes: NoteStore, memory: MemoryStore, group: Group
) -> None:
    elsewhere = group.turn(thread="earlier")
    oldest = await notes.create(elsewhere, title="Oldest")
    older = await notes.create(elsewhere, title="Older")
    alice = await _speak(memory, group.turn())
    await notes.get(alice, older.id)
    await notes.list(alice)
    await notes.create(alice, title="Pizza")
    await notes.update(alice, oldest.id, add_tags=["x"])
    await notes.create(alice, title="Pasta")

    registry = await notes.registry(alice)

    assert [(n.ordinal, n.title, n.here) for n in registry] == [
        (1, "Pizza", True),
        (2, "Pasta", True),
        (3, "Oldest", False),
        (4, "Older", False),
    ]


async def _answer(
    memory: MemoryStore, context: AgentMemoryContext, turn: str, *calls: dict[str, object]
) -> None:
    await memory.begin_turn(context, turn_id=turn, content="Q")
    await memory.record_reply(context, turn_id=turn, cards=["A"], tool_calls=calls)


async def test_the_order_that_a_card_showed_last_is_kept_until_another_is_shown(
    notes: NoteStore, memory: MemoryStore, group: Group
) -> None:
    alice = await _speak(memory, group.turn())
    a, b, c = [await notes.create(alice, title=title) for title in "ABC"]

    async def shown() -> dict[str, int | None]:
        return {note.title: note.shown for note in await notes.registry(alice)}

    assert await shown() == {"A": None, "B": None, "C": None}
    call = {"name": "search_notes", "shown": [c.id, a.id], "ok": True}
    await _answer(memory, alice, group.message("listed"), {"name": "x", "shown": [b.id]}, call)
    assert await shown() == {"A": 2, "B": None, "C": 1}
    for calls in ((), ({"name": "create_note", "result": 'the word "shown"'},)):
        await _answer(memory, alice, group.message(f"later {len(calls)}"), *calls)
    assert await shown() == {"A": 2, "B": None, "C": 1}
    await memory.items.forget(alice, "note", c.id)
    assert await shown() == {"A": 2, "B": None}, "the card still numbers it so"
    await _answer(memory, alice, group.message("again"), {"name": "list_notes", "shown": [b.id]})
    assert await shown() == {"A": None, "B": 1}


async def test_what_was_shown_in_one_conversation_or_by_mentioning_somebody_orders_no_other(
    notes: NoteStore, memory: MemoryStore, group: Group
) -> None:
    alice = await _speak(memory, group.turn("alice", thread="one"))
    there = await _speak(memory, group.turn("alice", thread="two"))
    note = await notes.create(alice, title="A")
    await notes.get(there, note.id)
    call = {"name": "list_notes", "shown": [note.id]}
    await _answer(memory, there, group.message("there"), call)
    by_bob = group.turn("alice", sender="bob", thread="one")
    await _answer(memory, by_bob, group.message("bob"), call)

    assert [n.shown for n in await notes.registry(alice)] == [None]
    assert [n.shown for n in await notes.registry(there)] == [1]


async def test_each_conversation_has_its_own_registry(
    notes: NoteStore, memory: MemoryStore, group: Group
) -> None:
    here = await _speak(memory, group.turn(thread="one"))
    there = await _speak(memory, group.turn(thread="two"))
    await notes.create(here, title="Pasta")
    await notes.create(there, title="Pizza")

    assert [n.title for n in await notes.registry(here)] == ["Pasta"]
    assert [n.title for n in await notes.registry(there)] == ["Pizza"]


async def test_of_many_notes_the_first_and_the_last_used_stay_in_the_registry(
    notes: NoteStore, memory: MemoryStore, group: Group
) -> None:
    alice = await _speak(memory, group.turn())
    for number in range(60):
        await notes.create(alice, title=f"N{number}")

    titles = [n.title for n in await notes.registry(alice)]

    assert titles == [f"N{i}" for i in (*range(10), *range(20, 60))]


async def test_of_many_notes_those_shown_last_stay_in_the_registry_too(
    notes: NoteStore, memory: MemoryStore, group: Group
) -> None:
    alice = await _speak(memory, group.turn())
    made = [await notes.create(alice, title=f"N{number}") for number in range(60)]
    call = {"name": "list_notes", "shown": [made[15].id, made[12].id]}
    await _answer(memory, alice, group.message("listed"), call)

    found = {n.title: n.shown for n in await notes.registry(alice) if n.shown}

    assert found == {"N15": 1, "N12": 2}


async def test_a_missing_identity_reads_nothing(notes: NoteStore, group: Group) -> None:
    nobody = memory_context(chat_id=group.chat(), root="r", subject="", actor="")
    with pytest.raises(IdentityMissing):
        await notes.list(nobody)


async def _elsewhere(
    notes: NoteStore, context: AgentMemoryContext
) -> list[tuple[str, int | None, int | None]]:
    """Title, recency and place in the last list of what a thread without notes is told."""
    told = await notes.registry(context)
    assert all(note.elsewhere and not note.here for note in told)
    return [(note.title, note.recency, note.shown) for note in told]


async def test_a_fresh_thread_is_told_the_note_used_last_and_then_those_used_most(
    notes: NoteStore, memory: MemoryStore, group: Group
) -> None:
    earlier, later = group.turn(thread="earlier"), group.turn(thread="later")
    made = [await notes.create(earlier, title=title) for title in "ABCDEFG"]
    for context in (later, group.turn(thread="latest")):
        await notes.get(context, made[1].id)
    await notes.get(later, made[2].id)

    fresh = await _speak(memory, group.turn(thread="fresh"))
    told = await _elsewhere(notes, fresh)

    assert [title for title, _, _ in told] == ["C", "B", "G", "F", "E"]
    assert told[0] == ("C", 1, None)
    await notes.create(fresh, title="Mine")
    assert [note.title for note in await notes.registry(fresh)] == ["Mine"]


async def test_a_fresh_thread_is_told_only_the_senders_own_notes_that_may_be_read_there(
    notes: NoteStore, group: Group
) -> None:
    await notes.create(group.turn("bob", thread="earlier"), title="Of Bob")
    await notes.create(group.p2p("alice"), title="In private")
    await notes.create(group.turn(chat="elsewhere"), title="Elsewhere")
    await notes.create(group.turn(tenant="other tenant"), title="Another tenant")
    await notes.create(group.turn("bob", sender="alice", thread="earlier"), title="Mine")

    assert await _elsewhere(notes, group.turn(thread="fresh")) == [("Mine", 1, None)]
    about_bob = group.turn("bob", sender="alice", thread="fresh")
    assert await _elsewhere(notes, about_bob) == [("Mine", 1, None)]
    assert await _elsewhere(notes, group.turn("carol", thread="fresh")) == []


async def test_the_list_shown_last_in_the_chat_counts_in_a_fresh_thread_for_a_day(
    notes: NoteStore, memory: MemoryStore, group: Group, backend: Backend
) -> None:
    listing = await _speak(memory, group.turn(thread="listing"))
    a, b, c = [await notes.create(listing, title=title) for title in "ABC"]
    shown: dict[str, object] = {"name": "list_notes", "shown": [b.id, c.id, a.id], "ok": True}
    await _answer(memory, listing, group.message("listed"), shown)

    fresh = group.turn(thread="fresh")
    told = [("C", 1, 2), ("B", 2, 1), ("A", 3, 3)]
    assert sorted(await _elsewhere(notes, fresh), key=lambda one: one[1] or 9) == told
    assert await _elsewhere(notes, group.turn("bob", thread="fresh")) == []
    with psycopg.connect(backend.database_url, autocommit=True) as db:
        db.execute(
            "update agent_note_uses set shown_at = shown_at - interval '25 hours'"
            " where user_id = %s",
            [group.person("alice")],
        )
    assert {place for _, _, place in await _elsewhere(notes, fresh)} == {None}


async def test_who_changes_a_note_does_not_block_who_lists_it(
    database_url: str, connection: psycopg.Connection, rpc: PostgresRpc, group: Group
) -> None:
    notes, alice = NoteStore(rpc), await _speak(MemoryStore(rpc), group.turn())
    note = await notes.create(alice, title="Plan", body="", tags=[])
    with psycopg.connect(database_url) as listing:
        listing.execute("delete from agent_note_uses")
        listing.execute("set session_replication_role = replica")  # the foreign key comes below
        listing.execute(
            "insert into agent_note_uses"
            " (conversation_id, user_id, note_id, owner_id, tenant_key, last_action)"
            " values (%s, %s, %s, %s, %s, 'listed')",
            [alice.conversation_id, alice.actor_id, note.id, alice.actor_id, alice.tenant_key],
        )
        change = asyncio.create_task(notes.update(alice, note.id, title="Plan B"))
        await waits_for_a_lock(connection)
        await asyncio.to_thread(listing.execute, "select 1 from agent_notes for key share")
        listing.commit()
        await change
    assert _titles(await notes.list(alice)) == ["Plan B"]
