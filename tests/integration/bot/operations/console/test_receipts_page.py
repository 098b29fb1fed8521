"""The chain of receipts is shown without words and downloaded as JSON Lines."""

from __future__ import annotations

import asyncio
import base64

import pytest

from memory.backends.postgres import PostgresRpc, connection_pool
from memory.receipts import (
    Receipt,
    ReceiptStore,
    public_keys_by_name,
    read_signing_key,
    verify_chain,
)
from memory.store import MemoryStore
from tests.integration.bot.operations.console.conftest import Browser
from tests.support.people import Group

KEY = read_signing_key(base64.b64encode(bytes(range(32))).decode())
DELETIONS = 52


@pytest.fixture
def chain(database_url: str) -> tuple[Receipt, ...]:
    """Two more retractions than a page of receipts shows, signed."""

    async def retract() -> tuple[Receipt, ...]:
        pool = connection_pool(database_url, size=1)
        await pool.open()
        rpc, group = PostgresRpc(pool), Group()
        memory, alice = MemoryStore(rpc), group.turn()
        for number in range(DELETIONS):
            said = group.message(f"said{number}")
            await memory.begin_turn(alice, turn_id=said, content=f"the gym code is {number}")
            await memory.take_back(said, alice.chat_id)
        signed = await ReceiptStore(rpc).sign(KEY)
        await rpc.close()
        return signed

    return asyncio.run(retract())


def test_receipts_are_shown_newest_first_and_without_words(
    ada: Browser, chain: tuple[Receipt, ...]
) -> None:
    page = ada.get("/console/receipts").text
    assert page.index(chain[-1].label) < page.index(chain[2].label)
    assert chain[1].label not in page
    assert "message retracted" in page
    assert "agent_messages −1" in page
    assert "gym" not in page
    older = ada.get("/console/receipts?before=3").text
    assert chain[1].label in older
    assert chain[2].label not in older
    assert "撤回消息" in ada.get("/console/receipts?lang=zh").text


def test_the_whole_chain_is_downloaded_and_that_is_kept(
    ada: Browser, chain: tuple[Receipt, ...]
) -> None:
    answer = ada.post("/console/receipts/export")
    assert "receipts.jsonl" in answer.headers["Content-Disposition"]
    assert verify_chain(answer.text.splitlines(), public_keys_by_name(KEY)) == chain
    assert "downloaded the receipts" in ada.get("/console/audit").text


def test_without_deletions_the_page_says_so(ada: Browser) -> None:
    assert "R1" not in ada.get("/console/receipts").text
