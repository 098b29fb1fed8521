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
    known: Sequence[tuple[str, str]],
    embedder: Embedder | None = None,
) -> Rebuilt:
    """The prompt of `turn`; `known` are open_ids with names. Raises `StoreError`."""
    names = Names(turn.context.tenant_key, Sources(_NoFeishu(), time.time))
    names.learn(known, keep=False)
    opened = await _opened(rpc, turn)
    now = turn.at.astimezone(settings.zone)
    found = await _recalled(rpc, turn, embedder, opened)
    earlier = told_passages(found, turn.context, now, names.known, names.label, turn.question)
    scene = Scene(
        bot_name=str(turn.record.get("bot") or "Bot"),
        subject=names.name(turn.context.user_id),
        names=names.known,
        label=names.label,
        labelled=turn.context.chat_type != "p2p",
        now=now,
        owner=told_by_owner(settings.bot_instructions, rules_of(opened.rules, settings)),
    )
    prompt = build_prompt(
        opened,
        turn.question,
        scene,
        context=turn.context,
        turn_id=turn.id,
        recalled=earlier.text,
        recalled_worth=earlier.worth,
        budget_tokens=int(turn.record.get("budget") or settings.history_token_budget),
        calibration=Calibration(),
    )
    return Rebuilt(prompt, tuple(_missing(turn, opened, len(found))))


async def _opened(rpc: RehearsalRpc, turn: RecordedTurn) -> OpenTurn:
    rows = await rpc.messages(turn.ids("history_ids"))
    talk = [MessageRecord(**row) for row in await rpc.talk(turn.ids("transcript_ids"))]
    told = (StoredMessage(**{**row, "tool_calls": tuple(row["tool_calls"])}) for row in rows)
    stored = {message.id: message for message in told}
    history = tuple(stored[one] for one in turn.ids("history_ids") if one in stored)
    summary = await rpc.summary() if turn.record.get("summary") else None
    place = {"p_chat_id": turn.context.chat_id, "p_tenant_key": turn.context.tenant_key}
    registry = await call_as(rpc, "note_registry", turn.context, **place)
    rules = await rpc.call("get_chat_rules", place, turn.context)
    opened = OpenTurn(
        state="open",
        attempts=1,
        history=history,
        working_memory=await MemoryStore(rpc).working_memory(turn.context, turn.question),
        registry=tuple(registry),
        summary=Summary(**summary) if summary else None,
        rules=rules or {},
    )
    return with_heard(opened, talk)


async def _recalled(
    rpc: RehearsalRpc, turn: RecordedTurn, embedder: Embedder | None, opened: OpenTurn
) -> list[Passage]:
    """Those that were found then, however they would rank today."""
    wanted = turn.ids("recalled")
    if not wanted:
        return []
    found = await find(
        MemoryStore(rpc),
        embedder,
        turn.context,
        turn.question,
        now=turn.at,
        scope=usual_scope(turn.context),
        k=_LOOK_FAR,
        before_id=opened.history[-1].id if opened.history else None,
    )
    by_turn = {passage.turn_id: passage for passage in found}
    return [by_turn[one] for one in wanted if one in by_turn]


def _missing(turn: RecordedTurn, opened: OpenTurn, found: int) -> list[Sentence]:
    told = []
    if not turn.record:
        told.append(_both("no-record"))
    wanted = sum(len(turn.ids(which)) for which in ("history_ids", "transcript_ids", "recalled"))
    gone = wanted - len(opened.history) - found
    if gone > 0:
        told.append(_both("messages-gone", n=gone))
    if turn.record.get("came_along"):
        told.append(_both("came-along"))
    version = turn.record.get("summary")
    if version and (opened.summary is None or opened.summary.version != version):
        told.append(_both("new-summary"))
    return told


class _NoFeishu(FeishuClient):
    """Nobody is asked for names: those that are known are enough."""

    def __init__(self) -> None:
        pass
