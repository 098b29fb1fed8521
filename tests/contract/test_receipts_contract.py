"""A deletion leaves a signed receipt, in its own transaction and without words."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator

import psycopg
import pytest

from lab.doubles.sentinel import tables_with
from memory.receipts import (
    Copy,
    ReceiptRefused,
    ReceiptStore,
    new_salt,
    public_keys_by_name,
    read_signing_key,
    verify_chain,
)
from memory.rpc import Rpc
from memory.store import MemoryStore
from memory.tables.items import ItemStore
from memory.tables.notes import NoteStore
from memory.tables.operations import Operations
from tests.support.backends import Backend
from tests.support.people import Group

pytestmark = pytest.mark.anyio

KEY = read_signing_key(base64.b64encode(bytes(range(32))).decode())
KEYS = public_keys_by_name(KEY)


class Scene:
    """A memory, its receipts, and the key that signs them."""

    def __init__(self, rpc: Rpc, database: psycopg.Connection) -> None:
        self.rpc, self.database = rpc, database
        self.memory = MemoryStore(rpc)
        self.receipts = ReceiptStore(rpc)

    async def chain(self) -> list[str]:
        await self.receipts.sign(KEY)
        return [line async for line in self.receipts.lines()]

    async def newest(self, group: Group) -> Copy:
        await self.receipts.sign(KEY)
        return (await self.receipts.take(group.person("alice"), "tenant"))[0]


@pytest.fixture
async def scene(backend: Backend) -> AsyncIterator[Scene]:
    """Starts with an empty chain: other tests in this database sign with keys of their own."""
    async with backend.rpc() as rpc:
        with psycopg.connect(backend.database_url, autocommit=True) as database:
            database.execute("delete from agent_receipts")
            yield Scene(rpc, database)


async def test_a_retraction_leaves_a_receipt_that_names_its_words_to_their_author_alone(
    scene: Scene, group: Group
) -> None:
    alice, turn_id = group.turn(), group.message("said")
    said = f"the gym code is 4471 {group.mark}x"
    await scene.memory.begin_turn(alice, turn_id=turn_id, content=said)

    await scene.memory.take_back(turn_id, alice.chat_id)

    copy = await scene.newest(group)
    assert copy.receipt.fields["kind"] == "retraction"
    assert copy.receipt.fields["about"] == [turn_id]
    assert copy.receipt.fields["counts"]["public.agent_messages"]["deleted"] == 1
    assert copy.receipt.names_text(copy.salt, said)
    assert not copy.receipt.names_text(copy.salt, "the gym code is 4472")
    assert tables_with(scene.database, f"{group.mark}x") == set()
    assert tables_with(scene.database, copy.salt) == set()
    assert (await scene.newest(group)).salt == ""
    assert await scene.receipts.take(group.person("bob"), "tenant") == ()


async def test_a_retraction_of_what_was_never_stored_leaves_none(
    scene: Scene, group: Group
) -> None:
    before = len(await scene.chain())
    await scene.memory.take_back(group.message("never"), group.chat())
    assert len(await scene.chain()) == before


async def test_a_deletion_that_fails_leaves_no_receipt(scene: Scene, group: Group) -> None:
    alice, turn_id = group.turn(), group.message("said")
    await scene.memory.begin_turn(alice, turn_id=turn_id, content="it stays")
    before = len(await scene.chain())
    with scene.database.transaction(force_rollback=True):
        scene.database.execute("select public.recall_message(%s, %s)", [turn_id, alice.chat_id])
        drafts = scene.database.execute(
            "select count(*) from agent_receipts where draft -> 'about' ? %s", [turn_id]
        ).fetchone()
        assert drafts == (1,)
    assert len(await scene.chain()) == before


async def test_a_forgotten_person_gets_a_receipt_and_is_in_none(scene: Scene, group: Group) -> None:
    alice, turn_id, salt = group.turn(), group.message("said"), new_salt()
    await scene.memory.begin_turn(alice, turn_id=group.message("first"), content="I was here")
    await scene.memory.take_back(group.message("first"), alice.chat_id)
    await scene.memory.begin_turn(alice, turn_id=turn_id, content="I leave in May")

    await Operations(scene.rpc).forget_person(group.person("alice"), salt=salt)

    await scene.receipts.sign(KEY)
    copy = await scene.receipts.copy(salt)
    assert copy
    assert copy.receipt.fields["kind"] == "forget me"
    assert copy.receipt.names_text(salt, "I leave in May")
    assert copy.receipt.fields["counts"]["public.agent_turns"]["deleted"] >= 1
    assert tables_with(scene.database, group.person("alice")) == set()
    assert tables_with(scene.database, salt) == set()
    assert verify_chain(await scene.chain(), KEYS, anchor=copy.receipt.hash)


async def test_an_item_that_is_deleted_leaves_a_receipt(scene: Scene, group: Group) -> None:
    alice, turn_id = group.turn(), group.message("said")
    await scene.memory.begin_turn(alice, turn_id=turn_id, content="note the code 4471")
    note = await NoteStore(scene.rpc).create(alice, title="Code", body="4471", turn_id=turn_id)

    items = ItemStore(scene.rpc)
    await items.forget(alice, "note", note.id, turn_id=group.message("asked"))

    copy = await scene.newest(group)
    assert copy.receipt.fields["kind"] == "item"
    assert copy.receipt.fields["about"] == [f"note:{note.id}"]
    assert copy.receipt.names_text(copy.salt, "4471")


async def test_a_thread_that_is_forgotten_leaves_a_receipt(scene: Scene, group: Group) -> None:
    alice, turn_id = group.turn(), group.message("said")
    await scene.memory.begin_turn(alice, turn_id=turn_id, content="we moved to Porto")

    await Operations(scene.rpc).forget_conversation(
        alice.conversation_id, group.person("alice"), keep_notes=True
    )

    copy = await scene.newest(group)
    assert copy.receipt.fields["kind"] == "conversation"
    assert copy.receipt.names_text(copy.salt, "we moved to Porto")


async def test_processes_that_sign_together_make_one_chain(scene: Scene, group: Group) -> None:
    alice = group.turn()
    for number in range(8):
        turn_id = group.message(f"said{number}")
        await scene.memory.begin_turn(alice, turn_id=turn_id, content=f"line {number}")
        await scene.memory.take_back(turn_id, alice.chat_id)

    signed = await asyncio.gather(*(scene.receipts.sign(KEY) for _ in range(4)))

    assert sum(map(len, signed)) == 8
    lines = await scene.chain()
    receipts = verify_chain(lines, KEYS)
    named = [one.fields["about"] for one in receipts if "om_said0" in str(one.fields["about"])]
    assert named.count([group.message("said0")]) == 1
    with pytest.raises(ReceiptRefused):
        verify_chain(lines[:-1], KEYS, anchor=receipts[-1].hash)
