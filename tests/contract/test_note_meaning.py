"""Notes are found by what they were made from, where words do not help."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from memory.models import QuestionEmbedding
from memory.rpc import Rpc
from memory.scope import AgentMemoryContext
from memory.tables.notes import NoteStore
from tests.contract.test_vector_recall import FOOD, MODEL, TRAVEL, WORK, embed, tell
from tests.support.backends import Backend
from tests.support.people import Group

pytestmark = pytest.mark.anyio


@pytest.fixture
async def rpc(backend: Backend) -> AsyncIterator[Rpc]:
    async with backend.rpc() as rpc:
        yield rpc


async def made(rpc: Rpc, who: AgentMemoryContext, title: str, about: list[float]) -> str:
    """A note, from a message that is embedded as what it is about; its id."""
    text = f"create a note about {title}"
    turn_id = await tell(rpc, who, title, text)
    note = await NoteStore(rpc).create(who, title=title, turn_id=turn_id)
    assert await embed(rpc, who, {text: about}) == 1
    return note.id


async def found(
    rpc: Rpc, who: AgentMemoryContext, query: str, about: list[float]
) -> list[tuple[str, bool]]:
    likeness = QuestionEmbedding(MODEL, json.dumps(about), 0.2)
    notes = await NoteStore(rpc).search(who, query, likeness=likeness)
    return [(note.title, note.by_meaning) for note in notes]


async def test_noodles_finds_the_pasta_note(rpc: Rpc, group: Group) -> None:
    alice = group.turn()
    await made(rpc, alice, "Pasta", FOOD)
    for title, about in (("Kyoto", TRAVEL), ("Report", WORK)):
        await made(rpc, alice, title, about)

    assert await NoteStore(rpc).search(alice, "noodles") == ()
    assert await found(rpc, alice, "noodles", FOOD) == [("Pasta", True)]
    assert await found(rpc, alice, "面条", FOOD) == [("Pasta", True)]
    [used] = [note for note in await NoteStore(rpc).registry(alice) if note.recency == 1]
    assert used.title == "Pasta", "what was found alone is that note"


async def test_words_in_a_title_come_before_meaning_and_a_body_stands_beside_it(
    rpc: Rpc, group: Group
) -> None:
    alice = group.turn()
    await made(rpc, alice, "Pasta", FOOD)
    await NoteStore(rpc).create(alice, title="Shopping", body="noodles, milk")

    assert await found(rpc, alice, "pasta", FOOD) == [("Pasta", False)]
    assert await found(rpc, alice, "noodles", FOOD) == [("Shopping", False), ("Pasta", True)]


async def test_the_only_note_is_found_and_one_that_is_changed_by_its_new_text(
    rpc: Rpc, group: Group
) -> None:
    alice, text = group.turn(), "put the itinerary into it"
    id = await made(rpc, alice, "Plan", WORK)
    turn_id = await tell(rpc, alice, "changed", text)
    await NoteStore(rpc).update(alice, id, body="Kyoto", turn_id=turn_id)
    await made(rpc, alice, "Pasta", FOOD)
    await embed(rpc, alice, {text: TRAVEL})

    assert await found(rpc, alice, "flights", TRAVEL) == [("Plan", True)]


async def test_nobody_finds_by_meaning_what_they_may_not_read(rpc: Rpc, group: Group) -> None:
    await made(rpc, group.turn(), "Pasta", FOOD)
    await made(rpc, group.p2p("bob"), f"Ramen {group.mark}", FOOD)

    assert await found(rpc, group.turn("bob"), "noodles", FOOD) == [("Pasta", True)]
    assert await found(rpc, group.turn("bob", chat="elsewhere"), "noodles", FOOD) == []
    assert await found(rpc, group.p2p("alice"), "noodles", FOOD) == []
