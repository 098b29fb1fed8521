"""What is shown of a chat beside the sandbox's page, and what operators are told of the queue."""

from __future__ import annotations

import psycopg
import pytest

from bot.features.registry import PAGE_TEXTS
from bot.operations.sandbox import inspect_chat
from bot.queue.operator_actions import QueueOperations
from memory.backends.postgres import PostgresRpc
from memory.store import MemoryStore
from memory.tables.notes import NoteStore
from tests.support.exchanges import exchange
from tests.support.people import Group

pytestmark = pytest.mark.anyio


async def test_the_panel_shows_what_is_kept_of_a_chat_newest_first(
    rpc: PostgresRpc, database_url: str
) -> None:
    memory, alice = MemoryStore(rpc), Group().turn()
    await exchange(memory, alice, "noodles?", "at 9&#58;50 in the canteen")
    await memory.merge_working_memory(alice, scope="chat", patch={"topic": "noodles"})
    await NoteStore(rpc).create(alice, title="Shopping", tags=["food", "tea"])

    shown = {
        part["title"]["en"]: part["rows"]
        for part in inspect_chat(database_url, alice.chat_id, PAGE_TEXTS)["sections"]
    }

    assert shown == {
        "Facts": [[alice.user_id, {"en": "topic: “noodles”", "zh": "topic：“noodles”"}]],
        "Notes": [[alice.user_id, "Shopping #food #tea"]],
        "Summaries of long threads": [],
        "Why it answered or stayed silent": [],
        "What is stored, and in whose memory": [
            [alice.user_id, "→ at 9:50 in the canteen"],
            [alice.user_id, "← noodles?"],
        ],
    }


async def test_the_panel_shows_nothing_of_another_chat(rpc: PostgresRpc, database_url: str) -> None:
    group = Group()
    await exchange(MemoryStore(rpc), group.turn(), "noodles?", "in the canteen")

    sections = inspect_chat(database_url, group.chat("there"), PAGE_TEXTS)["sections"]

    assert [part["rows"] for part in sections] == [[], [], [], [], []]


def test_a_table_of_the_queue_without_row_level_security_is_named(
    database_url: str, connection: psycopg.Connection
) -> None:
    queue = QueueOperations(database_url)
    assert queue.unprotected_tables() == []

    connection.execute("alter table feishu_bot.inbox disable row level security")

    assert queue.unprotected_tables() == ["inbox"]
