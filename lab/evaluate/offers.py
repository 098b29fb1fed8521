"""After which answers the bot offers what a person told it elsewhere, and how often that helps.

A line of the labelled file is one case: `asked` and `answer` in a group, what was told there before
(`group`, pairs of message and answer), what the person told elsewhere (`private`), and whether an
offer `helps`. Each person also told the bot the `said` of the line whose `background` is the case's
language.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from bot.features.private_answers.comparing import helps_more, recalled_in_group
from bot.features.private_answers.questions import asks_for_information
from lab.figures import Figure
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.models import ANSWERED_BY_COMMAND, apology_outcome
from memory.scope import AgentMemoryContext, FeishuPerson, memory_context, private_context
from memory.store import MemoryStore
from memory.tables.directory import ChatStore
from memory.tables.notes import NoteStore
from memory.tables.private import PrivateStore

_TENANT = "tenant"
_OUTCOMES = {"command": ANSWERED_BY_COMMAND.row(), "apologised": apology_outcome("model").row()}


@dataclass(frozen=True, slots=True)
class OfferCase:
    id: str
    split: str
    lang: str
    kind: str
    helps: bool
    asked: str
    answer: str
    group: Sequence[tuple[str, str]]
    private: Sequence[Mapping[str, Any]]
    background: Sequence[str]


@dataclass(frozen=True, slots=True)
class OfferReport:
    """Ids of cases that are `wrong`, offered without help, and `missed`: help that was not
    offered."""

    cases: int
    offered: int
    would_help: int
    wrong: tuple[str, ...]
    missed: tuple[str, ...]

    @property
    def precision(self) -> float:
        """The share of the offers that help."""
        return 1 - len(self.wrong) / self.offered if self.offered else 1.0

    @property
    def missed_share(self) -> float:
        """The share of the cases with help that no offer was made for."""
        return len(self.missed) / self.would_help if self.would_help else 0.0


def load_offer_cases(file: Path) -> list[OfferCase]:
    """Raises OSError, ValueError."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    said = {row["background"]: row["said"] for row in rows if "background" in row}
    return [OfferCase(**row, background=said[row["lang"]]) for row in rows if "asked" in row]


async def offers_made(url: str, cases: Sequence[OfferCase]) -> dict[str, bool]:
    """By its id whether an offer follows a case, in the migrated database `url`."""
    pool = connection_pool(url)
    await pool.open()
    rpc = PostgresRpc(pool)
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            for case in cases:
                await _store(connection, rpc, case)
        return {case.id: await _is_offered(rpc, case) for case in cases}
    finally:
        await rpc.close()


def report(cases: Sequence[OfferCase], offered: Mapping[str, bool]) -> OfferReport:
    """The figures of `cases`."""
    return OfferReport(
        len(cases),
        sum(offered[one.id] for one in cases),
        sum(one.helps for one in cases),
        tuple(one.id for one in cases if offered[one.id] and not one.helps),
        tuple(one.id for one in cases if one.helps and not offered[one.id]),
    )


def offer_figures(cases: Sequence[OfferCase], offered: Mapping[str, bool]) -> list[Figure]:
    """Lists the figures of each half; the notes name the mistakes."""
    found: list[Figure] = []
    for split in sorted({one.split for one in cases}):
        told = report([one for one in cases if one.split == split], offered)
        helps, missed = 100 * told.precision, 100 * told.missed_share
        wrong = f"{told.offered} offers after {told.cases} questions; wrong: {told.wrong}"
        found.append(Figure(f"offers, {split}: help", helps, "%", 90, True, wrong))
        note = f"of {told.would_help}: {told.missed}"
        found.append(Figure(f"offers, {split}: missed", missed, "%", 20, note=note))
    return found


async def _is_offered(rpc: PostgresRpc, case: OfferCase) -> bool:
    if not asks_for_information(case.asked):
        return False
    group = _context(case, "here", "asked")
    given = await recalled_in_group(
        MemoryStore(rpc), group, case.asked, but=_turn_id(group, case.asked), now=datetime.now(UTC)
    )
    return await helps_more(
        PrivateStore(rpc),
        private_context(group.actor_id, _TENANT),
        case.asked,
        asked_in=group.chat_id,
        answer=case.answer,
        group_passages=given,
    )


async def _store(connection: psycopg.Connection, rpc: PostgresRpc, case: OfferCase) -> None:
    """What was said before the question and with it, as the bot would have stored it."""
    alone, here = _context(case, "alone", "main"), _context(case, "here", "asked")
    hour_ago = int((datetime.now(UTC) - timedelta(hours=1)).timestamp() * 1000)
    for chat in ("here", "there"):
        person = FeishuPerson(_TENANT, here.actor_id)
        chat_id = _context(case, chat, "main").chat_id
        await ChatStore(rpc).add(_TENANT, chat_id, [person], at_ms=hour_ago)
    for text in case.background:
        _store_turn(connection, alone, {"said": text, "answered": "👌"})
    for source in case.private:
        await _store_source(connection, rpc, case, source)
    for said, answered in case.group:
        _store_turn(connection, _context(case, "here", said), {"said": said, "answered": answered})
    _store_turn(connection, here, {"said": case.asked, "answered": case.answer})


async def _store_source(
    connection: psycopg.Connection, rpc: PostgresRpc, case: OfferCase, source: Mapping[str, Any]
) -> None:
    alone = _context(case, "alone", "main")
    if "said" in source:
        where = _context(case, "there", source["said"]) if source.get("where") == "group" else alone
        _store_turn(connection, where, source)
    elif "note" in source:
        note = {"title": source["note"], "body": source["body"], "tags": source["tags"]}
        await NoteStore(rpc).create(alone, **note)
    else:
        await MemoryStore(rpc).merge_working_memory(alone, scope="user", patch=source["facts"])


def _store_turn(
    connection: psycopg.Connection, where: AgentMemoryContext, turn: Mapping[str, Any]
) -> None:
    turn_id = _turn_id(where, turn["said"])
    connection.execute(
        "insert into agent_chats (id, user_id, tenant_key, chat_id, chat_type, root_id)"
        " values (%s, %s, %s, %s, %s, %s) on conflict do nothing",
        (where.conversation_id, where.user_id, _TENANT, where.chat_id, where.chat_type,
         where.root_id),
    )  # fmt: skip
    ended = _OUTCOMES.get(turn.get("outcome", ""))
    connection.execute(
        "insert into agent_turns (id, conversation_id, user_id, actor_id, tenant_key, chat_id,"
        " state, intended, read_messages) values (%s, %s, %s, %s, %s, %s, 'sent', %s, %s)",
        (turn_id, where.conversation_id, where.user_id, where.actor_id, _TENANT, where.chat_id,
         json.dumps(ended) if ended else None, [f"{turn_id} file"] if "file" in turn else []),
    )  # fmt: skip
    for role, text in (("user", turn["said"]), ("assistant", turn["answered"])):
        connection.execute(
            "insert into agent_messages (conversation_id, user_id, turn_id, tenant_key, chat_id,"
            " role, content, actor_id, status) values (%s, %s, %s, %s, %s, %s, %s, %s, 'sent')",
            (where.conversation_id, where.user_id, turn_id, _TENANT, where.chat_id, role, text,
             where.actor_id),
        )  # fmt: skip


def _context(case: OfferCase, chat: str, root: str) -> AgentMemoryContext:
    person = f"ou_{case.id}"
    return memory_context(
        chat_id=f"oc_{chat}_{case.id}",
        root=root if root == "main" else f"om_{abs(hash(root))}",
        subject=person,
        actor=person,
        tenant_key=_TENANT,
        chat_type="p2p" if chat == "alone" else "group",
    )


def _turn_id(where: AgentMemoryContext, said: str) -> str:
    return f"om {where.chat_id} {said}"
