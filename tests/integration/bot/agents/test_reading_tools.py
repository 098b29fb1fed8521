"""A tool that says it only reads leaves every table as it was."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql

from bot.agents.manager import own_tools
from bot.agents.prompts.prompt import Prompt
from bot.agents.tool_types import Tool, ToolFailed, tool
from bot.agents.tools.deps import ToolDeps
from bot.features.registry import TOOLS
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.models import WorkingMemory
from memory.recall.selection import RenderedPassages
from memory.scope import AgentMemoryContext, memory_context
from memory.store import MemoryStore
from memory.tables.notes import NoteStore
from memory.tables.timers import TimerPlan, TimerStore

pytestmark = pytest.mark.anyio

READING = [one for one in (*own_tools(with_recall=True), *TOOLS) if one.reads]
CONTEXT = memory_context(chat_id="oc_1", root="om_1", subject="ou_a", actor="ou_a")
# Which notes a conversation is about, for “that note”: whoever looks at one notes that.
BOOKKEEPING = "agent_note_uses"
NOW = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
PROMPT = Prompt(
    bot_name="Bot",
    question="what is there?",
    history=(),
    subject="Alice",
    working_memory=WorkingMemory(),
    now=NOW,
    context=CONTEXT,
    turn_id="om_q",
)


@dataclass
class Desk:
    """Tools at work on a memory with a note and a reminder."""

    deps: ToolDeps
    database: psycopg.Connection[Any]
    note_id: str

    def arguments(self, one: Tool) -> dict[str, Any]:
        """What the tool is called with."""
        by_name: Mapping[str, dict[str, Any]] = {
            "get_note": {"note_id": self.note_id},
            "search_notes": {"query": "pasta"},
            "recall": {"query": "pasta"},
            "suggest_follow_ups": {"questions": ["Shall I go on?"]},
            "send_file": {"name": "list.txt", "kind": "text", "content": "pasta"},
            "read_document": {"url": "https://acme.feishu.cn/docx/" + "a" * 27},
            "search_documents": {"query": "pasta"},
            "book_meeting": {"title": "launch", "at": "tomorrow at 3 pm"},
            "make_task": {"title": "slides"},
        }
        return by_name.get(one.name, {})

    async def changed_by(self, one: Tool) -> str:
        """What is said of a tool that writes although it is marked as one that reads."""
        before = dict(self._tables())
        with contextlib.suppress(ToolFailed):  # nobody is connected
            await one.call(self.deps, one.valid(self.arguments(one)))
        changed = [name for name, rows in self._tables() if rows != before[name]]
        if not changed:
            return ""
        return (
            f"{one.name} is marked reads=True and changes {changed}: leave that out of its tool()"
        )

    def _tables(self) -> Iterator[tuple[str, list[Any]]]:
        found = self.database.execute(
            "select table_schema, table_name from information_schema.tables"
            " where table_schema in ('public', 'feishu_bot') and table_type = 'BASE TABLE'"
        ).fetchall()
        for schema, name in found:
            if name != BOOKKEEPING:
                query = sql.SQL("select t::text from {} t order by 1")
                yield (
                    name,
                    self.database.execute(query.format(sql.Identifier(schema, name))).fetchall(),
                )


@pytest.fixture
async def desk(database_url: str) -> AsyncIterator[Desk]:
    async with connection_pool(database_url, size=1) as pool:
        rpc = PostgresRpc(pool)
        store, notes, timers = MemoryStore(rpc), NoteStore(rpc), TimerStore(rpc)

        async def recall(context: AgentMemoryContext, query: str, *_: object) -> RenderedPassages:
            return RenderedPassages(found=await store.find(context, query, now=NOW))

        note = await notes.create(CONTEXT, title="Pasta")
        due = NOW + timedelta(days=300)
        due_ms = int(due.timestamp() * 1000)
        plan = TimerPlan("Eat pasta", due.replace(tzinfo=None), "UTC", due_ms)
        await timers.set(CONTEXT, "om_set", plan)
        with psycopg.connect(database_url, autocommit=True) as database:
            deps = ToolDeps(CONTEXT, notes, store, PROMPT, recall, timers=timers)
            yield Desk(deps, database, note.id)


@pytest.mark.parametrize("one", READING, ids=lambda one: str(one.name))
async def test_a_tool_that_reads_writes_nothing(one: Tool, desk: Desk) -> None:
    assert await desk.changed_by(one) == ""


async def test_a_tool_that_writes_is_found(desk: Desk) -> None:
    async def peek(deps: ToolDeps) -> str:
        """Looks."""
        await deps.notes.create(deps.context, title="Seen")
        return "Seen."

    finding = await desk.changed_by(tool(peek, reads=True))
    assert "peek is marked reads=True and changes ['agent_notes'" in finding
