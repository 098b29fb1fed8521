"""Documents that answers tell of: known behind an answer, however it came to know them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

from memory.rpc import Rpc
from memory.scope import AgentMemoryContext, private_context
from memory.store import MemoryStore
from memory.tables.notes import NoteStore, note_source
from memory.tables.sources import SourceDocumentStore
from tests.support.backends import Backend
from tests.support.people import Group

pytestmark = pytest.mark.anyio

TOLD = "Bob earns quillfeather marks a year."


@pytest.fixture
async def rpc(backend: Backend) -> AsyncIterator[Rpc]:
    async with backend.rpc() as opened:
        yield opened


async def answered(
    rpc: Rpc, here: AgentMemoryContext, turn: str, answer: str, given: Sequence[str] = ()
) -> None:
    await MemoryStore(rpc).record_reply(here, turn_id=turn, cards=[answer], source_ids=given)
    message_id = f"{turn}_card"
    await MemoryStore(rpc).mark_sent(
        here, turn_id=turn, chunk=0, content=answer, message_id=message_id
    )


async def asked(rpc: Rpc, here: AgentMemoryContext, turn: str) -> None:
    await MemoryStore(rpc).begin_turn(here, turn_id=turn, content="How much does Bob earn?")


async def test_a_document_stands_behind_what_was_said_of_it_later(rpc: Rpc, group: Group) -> None:
    store, ann = SourceDocumentStore(rpc), group.person("ann")
    here = private_context(ann)
    first, second, third = (group.message(name) for name in ("first", "second", "third"))
    await asked(rpc, here, first)
    source = await store.note(here, first, "docx", "token1", TOLD)
    assert source
    await answered(rpc, here, first, "quillfeather marks", [source])
    await asked(rpc, here, second)
    await answered(rpc, here, second, "As I said.", [first])
    await asked(rpc, here, third)
    await answered(rpc, here, third, "It is quillfeather.", [second])

    assert await store.behind(here, first, "Nothing of it.") == [("docx", "token1")]
    assert await store.behind(here, third, "It is quillfeather.") == [("docx", "token1")]
    assert await store.behind(here, third, "Tea is at four.") == []
    bob = private_context(group.person("bob"))
    assert await store.behind(bob, third, "It is quillfeather.") == []


async def test_an_answer_that_tells_what_it_was_given_of_a_document_is_known_to_tell_it(
    rpc: Rpc, group: Group
) -> None:
    store, memory, here = SourceDocumentStore(rpc), MemoryStore(rpc), group.turn("ann")
    read, told, silent = (group.message(name) for name in ("read", "told", "silent"))
    await asked(rpc, here, read)
    source = await store.note(here, read, "docx", "token5", TOLD)
    assert source
    await answered(rpc, here, read, "quillfeather marks", [source])
    await asked(rpc, here, told)
    note = await NoteStore(rpc).create(here, title="Bob", body="quillfeather", turn_id=told)
    await answered(rpc, here, told, "As I said.", [read, source])
    await asked(rpc, here, silent)
    await answered(rpc, here, silent, "Tea is at four.", [read, source])

    thread = f"thread:{here.conversation_id}:"
    asked_about = [read, f"{told}_card", silent, note_source(note.id), thread]
    behind = await store.behind_sources(here.tenant_key, asked_about)
    assert {one.source for one in behind} == set(asked_about) - {silent}
    assert {one.document.source for one in behind} == {source}
    assert {one.age_s for one in behind} == {None}
    assert await store.behind_sources("another", asked_about) == []

    await store.found_open(behind[0].document.source, 5.0)
    await store.found_open(behind[0].document.source, 50.0)
    [one] = await store.behind_sources(here.tenant_key, [read])
    assert one.age_s is not None
    assert 5.0 <= one.age_s < 50.0
    opened = await memory.begin_turn(here, turn_id=group.message("next"), content="So?")
    assert opened.documents
    elsewhere = group.turn("ann", chat="elsewhere")
    opened = await memory.begin_turn(elsewhere, turn_id=group.message("there"), content="So?")
    assert not opened.documents


async def test_no_text_of_a_turn_that_is_over_is_noted(rpc: Rpc, group: Group) -> None:
    here, turn = private_context(group.person("ann")), group.message("over")
    await asked(rpc, here, turn)
    await answered(rpc, here, turn, "Done.")
    assert await SourceDocumentStore(rpc).note(here, turn, "docx", "token2", TOLD) is None


async def test_what_is_looked_at_is_due_again_later(rpc: Rpc, group: Group) -> None:
    store, here, turn = (
        SourceDocumentStore(rpc),
        private_context(group.person("cid")),
        group.message("due"),
    )
    await asked(rpc, here, turn)
    source = await store.note(here, turn, "wiki", "token4", TOLD)
    [due] = [one for one in await store.take_due(-1, 1000) if one.source == source]
    assert (due.kind, due.token, due.actor_id, due.chat_type) == (
        "wiki",
        "token4",
        here.actor_id,
        "p2p",
    )
    assert source not in [one.source for one in await store.take_due(60, 1000)]
    await store.drop(due)
    assert source not in [one.source for one in await store.take_due(-1, 1000)]
