"""Recall in the imported past of a group: what it finds of what the group settled.

The group is the sandbox's group with a past. Its messages take the way of an import: as Feishu
lists them, read as the bot reads them, stored page by page; then questions are asked through the
SQL function as a member. The labels are keys of scenes (`sandbox/past/scenes.txt`).
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psycopg

from bot.features.history_import.reading import Source, forward_ids, names_in, read_page
from bot.feishu.models import RawMessage, forward_text, raw_message
from lab.figures import Figure
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.recall.passages import passages, recall_params, usual_scope
from memory.rpc import call_as
from memory.scope import AgentMemoryContext, memory_context
from memory.tables.imports import ImportStore, Page
from sandbox.config import SandboxConfig
from sandbox.past.making import ENDS_MS, Past, PastRequest, make_past
from sandbox.world.state import World
from sandbox.world.wire import rest_messages

QUESTIONS = Path(__file__).parents[2] / "tests" / "data" / "recall" / "past_questions.jsonl"
ASKED_AT = datetime.fromtimestamp(ENDS_MS / 1000, ZoneInfo("Asia/Shanghai")) + timedelta(hours=15)
_PER_PAGE = 500
_BARS = {5: 90.0}
_KINDS = {"zh": "Chinese", "en": "English", "person": "by person", "date": "by date"}


@dataclass(frozen=True, slots=True)
class PastQuestion:
    """`evidence`: keys of matters. `kind`: person, date or plain; `language`: en or zh."""

    question: str
    evidence: tuple[str, ...]
    kind: str
    language: str


def past_questions(file: Path = QUESTIONS) -> tuple[PastQuestion, ...]:
    """The labelled questions."""
    lines = file.read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    return tuple(PastQuestion(**one | {"evidence": tuple(one["evidence"])}) for one in found)


async def evaluate_past(url: str, messages: int, ks: Sequence[int]) -> list[Figure]:
    """Imports a past into the migrated database `url`, and asks. Of each k: the share of the
    evidence among the first k, with that of each kind of question."""
    past, asked = make_past(PastRequest(messages=messages)), past_questions()
    chat_id, actor = past.chat.chat_id, past.chat.members[0]
    who = memory_context(
        chat_id=chat_id, root="main", subject=actor, actor=actor, chat_type="group"
    )
    pool = connection_pool(url, size=1)
    await pool.open()
    rpc = PostgresRpc(pool)
    await _store(url, rpc, who, past)
    found = [await _ask(rpc, who, one.question, max(ks)) for one in asked]
    await rpc.close()
    wanted = [{id for key in one.evidence for id in past.evidence[key]} for one in asked]
    return [_figure(k, messages, asked, wanted, found) for k in ks]


def _figure(
    k: int,
    messages: int,
    asked: Sequence[PastQuestion],
    wanted: Sequence[set[str]],
    found: Sequence[Sequence[str]],
) -> Figure:
    shares = [
        100 * len(ids.intersection(hits[:k])) / len(ids)
        for ids, hits in zip(wanted, found, strict=True)
    ]
    of_kinds = {
        title: [share for one, share in zip(asked, shares, strict=True)
                if kind in (one.language, one.kind)]
        for kind, title in _KINDS.items()
    }  # fmt: skip
    told = [f"{title} {statistics.fmean(its):.1f}" for title, its in of_kinds.items()]
    missed = [one.question for one, share in zip(asked, shares, strict=True) if share < 100]
    note = f"{', '.join(told)}; missed: {'; '.join(missed) or 'none'}"
    name = f"past of {messages:,}: R@{k}"
    return Figure(name, statistics.fmean(shares), "%", _BARS.get(k), at_least=True, note=note)


async def _store(url: str, rpc: PostgresRpc, who: AgentMemoryContext, past: Past) -> None:
    chat = (who.tenant_key, who.chat_id)
    with psycopg.connect(url) as connection:
        connection.execute(
            "insert into chat_rules (tenant_key, chat_id, history) values (%s, %s, 'shown')", chat
        )
    imports = ImportStore(rpc)
    started = await imports.start(chat, "group", context=None, since_ms=None, until_ms=ENDS_MS + 1)
    at = ""
    for page in imported_pages(past):
        await imports.store_page(started.id, phase="chat", at=at, page=page)
        at = page.next_position
    await imports.next_thread(started.id)
    await imports.finish(started.id, {one.open_id: [one.name] for one in past.people})
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("vacuum analyze")


async def _ask(rpc: PostgresRpc, who: AgentMemoryContext, question: str, k: int) -> list[str]:
    """The message ids of the first `k`."""
    params = recall_params(who, question, now=ASKED_AT, scope=usual_scope(who), k=k)
    rows: Any = await call_as(rpc, "recall", who, **params)
    return [one.feishu_id for one in passages(rows)]


def imported_pages(past: Past) -> tuple[Page, ...]:
    """What an import of the past keeps."""
    config = SandboxConfig(rate_limits=False)
    world = World(config)
    world.take_in((past.chat, *past.people, *past.messages))
    names = {one.open_id: one.name for one in past.people}
    source = Source(past.chat.chat_id, config.app_id)
    pages = []
    for first in range(0, len(past.messages), _PER_PAGE):
        ids = [one.message_id for one in past.messages[first : first + _PER_PAGE]]
        last = first + _PER_PAGE >= len(past.messages)
        pages.append(_page(world, source, names, ids, "" if last else str(first + _PER_PAGE)))
    return tuple(pages)


def _page(
    world: World, source: Source, names: Mapping[str, str], ids: Sequence[str], following: str
) -> Page:
    items = {one: list(_listed(world, one)) for one in ids}
    messages = [found[0] for found in items.values()]
    names = {**names, **names_in(messages)}
    forwarded = {one: forward_text(items[one], names) for one in forward_ids(messages, source)}
    page = read_page(messages, source, names, forwarded, following)
    return replace(page, threads=())  # what is in threads stands among the others here


def _listed(world: World, message_id: str) -> Iterator[RawMessage]:
    """The message as Feishu lists it; after it what it forwards."""
    for item in rest_messages(world, world.messages[message_id], original_card=True):
        yield raw_message(item)
