"""An earlier question asked again: with another model or other instructions, and nothing is sent.

Tools answer as they would have, from the memory as it was, and change nothing. Tools of MCP servers
are not there: what they do outside could not be taken back.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row

from bot.agents.configured_models import Models
from bot.agents.embeddings.embedder import build_embedder
from bot.agents.manager import Manager, Stores
from bot.agents.operator_files import specialists
from bot.agents.prompts.prompt import AgentAnswer, Prompt
from bot.agents.tool_types.tool import Tool
from bot.answering.recall import NamesIn, recall_tool
from bot.operations.replay.rebuilt_prompt import Rebuilt, rebuild
from bot.operations.replay.turn_record import FIND, MESSAGES, OF_TURN, RecordedTurn
from bot.settings import Settings
from memory.backends.postgres import connection_pool
from memory.backends.rehearsal import RehearsalRpc
from memory.store import MemoryStore
from memory.tables.notes import NoteStore
from memory.text import one_line

_KNOWN = "select open_id, name from public.people where tenant_key = %s and name <> ''"
_NOTE = "insert into feishu_bot.console_audit (admin, action, about) values (%s, 'replay turn', %s)"


class NoSuchTurn(Exception):
    """There is no such turn: give the id of its question or of a card, or copy it from /console."""


@dataclass(frozen=True)
class Rerun:
    """What came of asking again; `seconds` it took."""

    answer: AgentAnswer
    seconds: float


def read_turn(url: str, turn: str, admin: str) -> tuple[RecordedTurn, list[tuple[str, str]]]:
    """The turn and who is known by name there; that `admin` looked at it is kept. Raises
    `NoSuchTurn` and `psycopg.Error`."""
    with (
        psycopg.connect(url, connect_timeout=5) as connection,
        connection.cursor(row_factory=dict_row) as cursor,
    ):
        turn_row = cursor.execute(FIND, {"turn": turn}).fetchone()
        if turn_row is None:
            raise NoSuchTurn(turn)
        query_params = {"turn": turn_row["id"]}
        row = cursor.execute(OF_TURN, query_params).fetchone() or {}
        messages: list[Any] = cursor.execute(MESSAGES, query_params).fetchall()
        people = cursor.execute(_KNOWN, [row["tenant_key"]]).fetchall()
        cursor.execute(_NOTE, (admin, turn_row["id"]))
    return RecordedTurn.of_rows(row, messages), [(one["open_id"], one["name"]) for one in people]


@contextlib.asynccontextmanager
async def memory_of(
    settings: Settings, url: str, turn: RecordedTurn
) -> AsyncIterator[RehearsalRpc]:
    """The memory as it was for this turn."""
    pool = connection_pool(url, size=2, timeout_s=10.0)
    await pool.open()
    try:
        yield RehearsalRpc(pool, turn.context, turn.at, sharing=settings.sharing)
    finally:
        await pool.close()


async def rebuilt(
    settings: Settings, url: str, turn: RecordedTurn, known_names: list[tuple[str, str]]
) -> Rebuilt:
    """The prompt of the turn, to be looked at."""
    async with memory_of(settings, url, turn) as rpc:
        return await rebuild(settings, rpc, turn, known_names)


async def ask_again(
    settings: Settings,
    url: str,
    turn: RecordedTurn,
    known_names: list[tuple[str, str]],
    tools: Sequence[Tool],
) -> tuple[Rebuilt, Rerun]:
    """Asks the model of `settings`; `tools` are those of the features. Raises `ModelUnavailable`
    and `StoreError`."""
    embedder = build_embedder(settings)
    async with contextlib.AsyncExitStack() as stack:
        if embedder:
            stack.push_async_callback(embedder.close)
        rpc = await stack.enter_async_context(memory_of(settings, url, turn))
        models = Models(settings)
        stack.push_async_callback(models.close)
        prompt = await rebuild(settings, rpc, turn, known_names, embedder)
        store = MemoryStore(rpc)
        manager = Manager(
            models.main(),
            stores=Stores(
                store,
                NoteStore(rpc),
                recall_tool(store, None, settings.zone, _names_in(dict(known_names))),
            ),
            tools=tools,
            specialists=specialists(settings, ()),
            model_named=models.named,
        )
        return prompt, await answered(manager, prompt.prompt, settings)


async def answered(manager: Manager, prompt: Prompt, settings: Settings) -> Rerun:
    """One answer and how long it took."""
    start_s = time.perf_counter()
    answer = await manager.answer(prompt, timeout_s=settings.model_timeout_seconds)
    return Rerun(answer, time.perf_counter() - start_s)


def _names_in(known_names: dict[str, str]) -> NamesIn:
    def label(open_id: str, name: str) -> str:
        return one_line(known_names.get(open_id) or name) or open_id

    return lambda _: (known_names, label)
