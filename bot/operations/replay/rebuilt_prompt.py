"""The prompt of an earlier turn, built again from the ids in its record and what is still there."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from bot.agents.embeddings.embedder import Embedder, find
from bot.agents.prompts.prompt import Prompt
from bot.answering.prompt_history import Scene, build_prompt
from bot.answering.told_passages import told_passages
from bot.answering.window import with_heard
from bot.feishu.client import FeishuClient
from bot.listening.chat_rules import rules_of, told_by_owner
from bot.listening.transcript import MessageRecord
from bot.operations.replay.turn_record import RecordedTurn
from bot.people.names import Names, Sources
from bot.settings import Settings
from bot.text.catalogues import Catalogue
from bot.text.languages import Sentence
from memory.backends.rehearsal import RehearsalRpc
from memory.models import OpenTurn, StoredMessage, Summary
from memory.recall.passages import Passage, usual_scope
from memory.rpc import call_as
from memory.store import MemoryStore
from memory.tokens import Calibration

_both = Catalogue(__file__).both
_LOOK_FAR = 100


@dataclass(frozen=True)
class Rebuilt:
    """`missing`: what the prompt had and could not be found again."""

    prompt: Prompt
    missing: tuple[Sentence, ...]


async def rebuild(
    settings: Settings,
    rpc: RehearsalRpc,
    turn: RecordedTurn,
    known_names: Sequence[tuple[str, str]],
    embedder: Embedder | None = None,
) -> Rebuilt:
    """The prompt of `turn`; `known_names` are open_ids with names. Raises `StoreError`."""
    names = Names(turn.context.tenant_key, Sources(_NoFeishu(), time.time))
    names.learn(known_names, keep=False)
    open_turn = await _opened(rpc, turn)
    now = turn.at.astimezone(settings.zone)
    passages_found = await _recalled(rpc, turn, embedder, open_turn)
    earlier = told_passages(
        passages_found, turn.context, now, names.known, names.label, turn.question
    )
    scene = Scene(
        bot_name=str(turn.record.get("bot") or "Bot"),
        subject=names.name(turn.context.user_id),
        names=names.known,
        label=names.label,
        labelled=turn.context.chat_type != "p2p",
        now=now,
        owner=told_by_owner(settings.bot_instructions, rules_of(open_turn.rules, settings)),
    )
    prompt = build_prompt(
        open_turn,
        turn.question,
        scene,
        context=turn.context,
        turn_id=turn.id,
        recalled=earlier.text,
        recalled_worth=earlier.worth,
        budget_tokens=int(turn.record.get("budget") or settings.history_token_budget),
        calibration=Calibration(),
    )
    return Rebuilt(prompt, tuple(_missing(turn, open_turn, len(passages_found))))


async def _opened(rpc: RehearsalRpc, turn: RecordedTurn) -> OpenTurn:
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


async def _recalled(
    rpc: RehearsalRpc, turn: RecordedTurn, embedder: Embedder | None, open_turn: OpenTurn
) -> list[Passage]:
    """Those that were found then, however they would rank today."""
    wanted_ids = turn.ids("recalled")
    if not wanted_ids:
        return []
    passages_found = await find(
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


def _missing(turn: RecordedTurn, open_turn: OpenTurn, found_count: int) -> list[Sentence]:
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
