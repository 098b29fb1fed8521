"""Rebuilds the prompt of an earlier turn, and asks its question again without sending anything.

Tools answer as they would have, from the memory as it was, and change nothing. Tools of MCP
servers are not there: what they do outside could not be taken back."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import dict_row

from bot.agents.configured_models import Models
from bot.agents.embeddings import Embedder, build_embedder, find_passages
from bot.agents.manager import Manager, Stores
from bot.agents.prompts.prompt import AgentAnswer, Prompt
from bot.agents.specialists import load_own_specialists
from bot.agents.tool_types import Tool
from bot.answering.prompt_history import Scene, build_prompt
from bot.answering.recall import NamesIn, recall_tool, rendered_earlier
from bot.answering.window import statements_of_people, with_heard
from bot.feishu.client import FeishuClient
from bot.listening.chat_rules import owner_instructions, rules_of
from bot.listening.transcript import MessageRecord
from bot.people.people_directory import Names, NameSources
from bot.settings import Settings
from bot.text.languages import Catalogue, Sentence
from memory.backends.postgres import RehearsalRpc, connection_pool
from memory.context import Calibration
from memory.models import OpenTurn, StoredMessage, Summary
from memory.recall.passages import Passage, usual_scope
from memory.rpc import call_as
from memory.scope import AgentMemoryContext, memory_context
from memory.store import MemoryStore
from memory.tables.notes import NoteStore
from memory.text import one_line

_PEOPLE_QUERY = "select open_id, name from public.people where tenant_key = %s and name <> ''"
_NOTE = "insert into feishu_bot.console_audit (admin, action, about) values (%s, 'replay turn', %s)"

_both = Catalogue(__file__).both
_LOOK_FAR = 100

# For one %(turn)s: by its id, by the question's Feishu message, or by a card of the answer.
FIND_TURN = """
select t.id from public.agent_turns t
join public.agent_messages q on q.turn_id = t.id and q.role = 'user'  -- gone when taken back
where t.id = %(turn)s
   or t.id = (select m.turn_id from public.agent_messages m where m.message_id = %(turn)s
           and m.role = 'assistant' limit 1)
limit 1
"""
TURN_ROW = """
select t.id, t.conversation_id, t.user_id, t.actor_id, t.tenant_key, t.chat_id,
       coalesce(t.outcome, 'under_way') as outcome, t.outcome_reason, t.attempts,
       t.shown, t.created_at, t.updated_at, c.chat_type, c.root_id,
       bot_private.told_record(bot_private.whole_record(r.short),
         bot_private.given_ids(t.given_messages, t.given)) as record,
       (select k.name from public.chats k
        where k.chat_id = t.chat_id and k.tenant_key = t.tenant_key) as chat_name
from public.agent_turns t
join public.agent_chats c on c.id = t.conversation_id and c.user_id = t.user_id
  and c.tenant_key = t.tenant_key
left join public.agent_turn_records r on r.turn_id = t.id
where t.id = %(turn)s
"""
TURN_MESSAGES = """
select m.id, m.role, m.chunk, m.content, m.actor_id, m.actor_name, m.message_id, m.status, m.error,
       m.tool_calls, m.file, m.created_at, m.updated_at
from public.agent_messages m where m.turn_id = %(turn)s order by m.role desc, m.chunk
"""


class NoSuchTurn(Exception):
    """There is no such turn."""


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
        turn_row = cursor.execute(FIND_TURN, {"turn": turn}).fetchone()
        if turn_row is None:
            raise NoSuchTurn(turn)
        query_params = {"turn": turn_row["id"]}
        row = cursor.execute(TURN_ROW, query_params).fetchone() or {}
        messages: list[Any] = cursor.execute(TURN_MESSAGES, query_params).fetchall()
        people = cursor.execute(_PEOPLE_QUERY, [row["tenant_key"]]).fetchall()
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


async def prompt_of_turn(
    settings: Settings, url: str, turn: RecordedTurn, known_names: list[tuple[str, str]]
) -> RebuiltPrompt:
    """The prompt of the turn, to be looked at."""
    async with memory_of(settings, url, turn) as rpc:
        return await rebuild_prompt(settings, rpc, turn, known_names)


async def ask_again(
    settings: Settings,
    url: str,
    turn: RecordedTurn,
    known_names: list[tuple[str, str]],
    tools: Sequence[Tool],
) -> tuple[RebuiltPrompt, Rerun]:
    """Asks the model of `settings`; `tools` are those of the features. Raises `ModelUnavailable`
    and `StoreError`."""
    embedder = build_embedder(settings)
    async with contextlib.AsyncExitStack() as stack:
        if embedder:
            stack.push_async_callback(embedder.close)
        rpc = await stack.enter_async_context(memory_of(settings, url, turn))
        models = Models(settings)
        stack.push_async_callback(models.close)
        prompt = await rebuild_prompt(settings, rpc, turn, known_names, embedder)
        store = MemoryStore(rpc)
        manager = Manager(
            models.main(),
            stores=Stores(
                store,
                NoteStore(rpc),
                recall_tool(store, None, settings.zone, _names_in(dict(known_names))),
            ),
            tools=tools,
            specialists=load_own_specialists(settings, ()),
            model_named=models.model_of,
        )
        return prompt, await timed_answer(manager, prompt.prompt, settings)


async def timed_answer(manager: Manager, prompt: Prompt, settings: Settings) -> Rerun:
    """One answer and how long it took."""
    start_s = time.perf_counter()
    answer = await manager.answer(prompt, timeout_s=settings.model_timeout_seconds)
    return Rerun(answer, time.perf_counter() - start_s)


def _names_in(known_names: dict[str, str]) -> NamesIn:
    def label(open_id: str, name: str) -> str:
        return one_line(known_names.get(open_id) or name) or open_id

    return lambda _: (known_names, label)


@dataclass(frozen=True)
class RebuiltPrompt:
    """`missing`: what the prompt had and could not be found again."""

    prompt: Prompt
    missing: tuple[Sentence, ...]


async def rebuild_prompt(
    settings: Settings,
    rpc: RehearsalRpc,
    turn: RecordedTurn,
    known_names: Sequence[tuple[str, str]],
    embedder: Embedder | None = None,
) -> RebuiltPrompt:
    """The prompt of `turn`; `known_names` are open_ids with names. Raises `StoreError`."""
    names = Names(turn.context.tenant_key, NameSources(_NoFeishu(), time.time))
    names.learn(known_names, keep=False)
    open_turn = await _opened_turn(rpc, turn)
    now = turn.at.astimezone(settings.zone)
    passages_found = await _recalled_passages(rpc, turn, embedder, open_turn)
    earlier = rendered_earlier(
        passages_found,
        turn.context,
        now,
        names.known,
        names.label,
        turn.question,
        window=statements_of_people(open_turn.told, turn.context.chat_id),
    )
    scene = Scene(
        bot_name=str(turn.record.get("bot") or "Bot"),
        subject=names.name(turn.context.user_id),
        names=names.known,
        label=names.label,
        labelled=turn.context.chat_type != "p2p",
        now=now,
        owner=owner_instructions(settings.bot_instructions, rules_of(open_turn.rules, settings)),
    )
    prompt = build_prompt(
        open_turn,
        turn.question,
        scene,
        context=turn.context,
        turn_id=turn.id,
        earlier=earlier,
        budget_tokens=int(turn.record.get("budget") or settings.history_token_budget),
        calibration=Calibration(),
    )
    return RebuiltPrompt(prompt, tuple(_missing_parts(turn, open_turn, len(passages_found))))


async def _opened_turn(rpc: RehearsalRpc, turn: RecordedTurn) -> OpenTurn:
    rows = await rpc.messages(turn.ids("history_ids"))
    talk = [MessageRecord(**row) for row in await rpc.talk(turn.ids("transcript_ids"))]
    message_rows = (
        StoredMessage(**{**row, "tool_calls": tuple(row["tool_calls"])}) for row in rows
    )
    messages_by_id = {message.id: message for message in message_rows}
    history = tuple(messages_by_id[one] for one in turn.ids("history_ids") if one in messages_by_id)
    summary = await rpc.summary() if turn.record.get("summary") else None
    place = {"p_chat_id": turn.context.chat_id, "p_tenant_key": turn.context.tenant_key}
    registry = await call_as(rpc, "note_registry", turn.context, **place)
    rules = await rpc.call("get_chat_rules", place, turn.context)
    open_turn = OpenTurn(
        state="open",
        attempts=1,
        history=history,
        working_memory=await MemoryStore(rpc).working_memory(turn.context, turn.question),
        registry=tuple(registry),
        summary=Summary(**summary) if summary else None,
        rules=rules or {},
    )
    return with_heard(open_turn, talk)


async def _recalled_passages(
    rpc: RehearsalRpc, turn: RecordedTurn, embedder: Embedder | None, open_turn: OpenTurn
) -> list[Passage]:
    """Those that were found then, however they would rank today."""
    wanted_ids = turn.ids("recalled")
    if not wanted_ids:
        return []
    passages_found = await find_passages(
        MemoryStore(rpc),
        embedder,
        turn.context,
        turn.question,
        now=turn.at,
        scope=usual_scope(turn.context),
        k=_LOOK_FAR,
        before_id=open_turn.history[-1].id if open_turn.history else None,
    )
    by_turn = {passage.turn_id: passage for passage in passages_found}
    return [by_turn[one] for one in wanted_ids if one in by_turn]


def _missing_parts(turn: RecordedTurn, open_turn: OpenTurn, found_count: int) -> list[Sentence]:
    sentences = []
    if not turn.record:
        sentences.append(_both("no-record"))
    wanted_count = sum(
        len(turn.ids(which)) for which in ("history_ids", "transcript_ids", "recalled")
    )
    missing_count = wanted_count - len(open_turn.history) - found_count
    if missing_count > 0:
        sentences.append(_both("messages-gone", n=missing_count))
    if turn.record.get("came_along"):
        sentences.append(_both("came-along"))
    version = turn.record.get("summary")
    if version and (open_turn.summary is None or open_turn.summary.version != version):
        sentences.append(_both("new-summary"))
    return sentences


class _NoFeishu(FeishuClient):
    """Nobody is asked for names: those that are known are enough."""

    def __init__(self) -> None:
        pass


@dataclass(frozen=True)
class RecordedTurn:
    """`record` is {} when TRACE_DAYS has passed; `answer` is the text of its cards."""

    id: str
    context: AgentMemoryContext
    at: datetime
    question: str
    answer: str
    record: Mapping[str, Any] = field(default_factory=dict)
    tool_calls: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of_rows(cls, turn: Mapping[str, Any], messages: list[Mapping[str, Any]]) -> RecordedTurn:
        """From the rows of `TURN_ROW` and `TURN_MESSAGES`."""
        cards = [row for row in messages if row["role"] == "assistant"]
        questions = [row["content"] for row in messages if row["role"] == "user"]
        context = memory_context(
            chat_id=turn["chat_id"],
            root=turn["root_id"],
            subject=turn["user_id"],
            actor=turn["actor_id"],
            tenant_key=turn["tenant_key"],
            chat_type=turn["chat_type"] or "group",
        )
        return cls(
            id=turn["id"],
            context=context,
            at=turn["created_at"],
            question="\n".join(questions),
            answer="\n\n".join(row["content"] for row in cards),
            record=turn["record"] or {},
            tool_calls=tuple(cards[0]["tool_calls"]) if cards else (),
        )

    def ids(self, name: str) -> list[Any]:
        """A list of ids in the record."""
        recorded_ids = self.record.get(name)
        return list(recorded_ids) if isinstance(recorded_ids, list) else []
