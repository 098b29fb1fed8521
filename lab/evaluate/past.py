"""Recall in the imported past of a group: what it finds of what the group settled, and its cost.

The group is the sandbox's group with a past. Its messages take the way of an import: as Feishu
lists them, read as the bot reads them, stored page by page; then questions are asked through the
SQL function as a member. The labels are keys of scenes (`sandbox/past/scenes.txt`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psutil  # type: ignore[import-untyped]
import psycopg

from bot.features.history_import.reading import Source, forward_ids, names_in, read_page
from bot.feishu.models import RawMessage, forward_text, raw_message
from lab.corpora.recall import CorpusTurn
from lab.evaluate import bm25
from lab.figures import Figure
from memory.backends.pool import Pool
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
FEW = 1_000
_PER_PAGE = 500
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class PastQuestion:
    """`evidence`: keys of matters. `kind`: person, date or plain; `language`: en or zh."""

    question: str
    evidence: tuple[str, ...]
    kind: str
    language: str


@dataclass(frozen=True, slots=True)
class PastShare:
    """`found[k]`: the mean share of the evidence among the first k, 0 to 1, by recall and by plain
    BM25."""

    questions: str
    count: int
    found: Mapping[int, float]
    plain: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class PastRecall:
    """`missed`: questions whose evidence is not among the first five. `cpu_ms`: processor time of
    the database for one recall in a chat of so many messages."""

    shares: tuple[PastShare, ...]
    missed: tuple[str, ...]
    cpu_ms: Mapping[int, float]


def past_questions(file: Path = QUESTIONS) -> tuple[PastQuestion, ...]:
    """The labelled questions."""
    lines = file.read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    return tuple(PastQuestion(**one | {"evidence": tuple(one["evidence"])}) for one in found)


async def evaluate_past(
    url: str, messages: int, ks: Sequence[int], report: Callable[[str], None]
) -> PastRecall:
    """Imports two pasts into a migrated database, one of `FEW` messages, and asks."""
    large, small = make_past(PastRequest(messages=messages)), make_past(PastRequest(2, FEW))
    pools = [connection_pool(url, size=1) for _ in range(2)]
    for pool in pools:
        await pool.open()
    asking, beside = _ImportedPast(pools[0], large), _ImportedPast(pools[1], small)
    try:
        for one in (asking, beside):
            report(f"importing {len(one.past.messages):,} messages")
            await one.store(url)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("vacuum analyze")
        asked = past_questions()
        rankings = [await asking.ask(one.question, max(ks)) for one in asked]
        plain = _by_bm25(large, asking.told, asked, ks)
        shares = _shares(large, asked, rankings, plain, ks)
        cpu_ms = await _costs({len(large.messages): asking, FEW: beside}, asked)
    finally:
        for pool in pools:
            await pool.close()
    missed = [
        one.question
        for one, found in zip(asked, rankings, strict=True)
        if not set(_ids(large, one)).issubset(found[:5])
    ]
    return PastRecall(tuple(shares), tuple(missed), cpu_ms)


def past_figures(past: PastRecall, messages: int) -> list[Figure]:
    """Lists what was found, beside plain BM25, and the processor time of a recall."""
    found: list[Figure] = []
    for share in past.shares:
        for k, value in share.found.items():
            bar = 90.0 if share.questions == "all" and k == 5 else None
            note = f"BM25 {100 * share.plain[k]:.1f} %, {share.count} questions"
            name = f"past of {messages:,}, {share.questions}: R@{k}"
            found.append(Figure(name, 100 * value, "%", bar, at_least=True, note=note))
    missed = "; ".join(past.missed)
    return [
        *found,
        Figure("past: not among the first five", len(past.missed), "", note=missed),
        *(
            Figure(f"past of {size:,}: CPU of a recall", ms, "ms")
            for size, ms in past.cpu_ms.items()
        ),
    ]


class _ImportedPast:
    """One past in the database, and a member who asks."""

    def __init__(self, pool: Pool, past: Past) -> None:
        self.pool = pool
        self.rpc = PostgresRpc(pool)
        self.past = past
        self.told = imported_pages(past)
        chat_id, actor = past.chat.chat_id, past.chat.members[0]
        self.who: AgentMemoryContext = memory_context(
            chat_id=chat_id, root="main", subject=actor, actor=actor, chat_type="group"
        )

    async def store(self, url: str) -> None:
        chat = (self.who.tenant_key, self.who.chat_id)
        with psycopg.connect(url) as connection:
            connection.execute(
                "insert into chat_rules (tenant_key, chat_id, history) values (%s, %s, 'shown')",
                chat,
            )
        imports = ImportStore(self.rpc)
        started = await imports.start(
            chat, "group", context=None, since_ms=None, until_ms=ENDS_MS + 1
        )
        at = ""
        for page in self.told:
            await imports.store_page(started.id, phase="chat", at=at, page=page)
            at = page.next_position
        await imports.next_thread(started.id)
        members = {one.open_id: [one.name] for one in self.past.people}
        await imports.finish(started.id, members)

    async def ask(self, question: str, k: int) -> list[str]:
        """The message ids of the first `k`."""
        params = recall_params(self.who, question, now=ASKED_AT, scope=usual_scope(self.who), k=k)
        rows: Any = await call_as(self.rpc, "recall", self.who, **params)
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


def _ids(past: Past, asked: PastQuestion) -> list[str]:
    return [message_id for key in asked.evidence for message_id in past.evidence[key]]


def _shares(
    past: Past,
    asked: Sequence[PastQuestion],
    rankings: Sequence[Sequence[str]],
    plain: Sequence[Sequence[str]],
    ks: Sequence[int],
) -> Iterator[PastShare]:
    for name, takes in (
        ("all", lambda one: True),
        ("Chinese", lambda one: one.language == "zh"),
        ("English", lambda one: one.language == "en"),
        ("by person", lambda one: one.kind == "person"),
        ("by date", lambda one: one.kind == "date"),
        ("others", lambda one: one.kind == "plain"),
    ):
        here = [number for number, one in enumerate(asked) if takes(one)]

        def share(found: Sequence[Sequence[str]], k: int, here: list[int] = here) -> float:
            hits = [
                len(set(_ids(past, asked[one])) & set(found[one][:k])) / len(_ids(past, asked[one]))
                for one in here
            ]
            return sum(hits) / len(hits)

        yield PastShare(
            name,
            len(here),
            {k: share(rankings, k) for k in ks},
            {k: share(plain, k) for k in ks},
        )


def _by_bm25(
    past: Past, told: Sequence[Page], asked: Sequence[PastQuestion], ks: Sequence[int]
) -> list[list[str]]:
    turns = tuple(
        CorpusTurn(one.message_id, one.content, "", one.author_name, _at(one.sent_ms))
        for page in told
        for one in page.messages
    )
    return bm25.rankings(turns, [one.question for one in asked], max(ks))


def _at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


async def _costs(
    chats: Mapping[int, _ImportedPast], asked: Sequence[PastQuestion]
) -> dict[int, float]:
    """The questions are asked in turn of either, so that both see the same machine."""
    backends = {}
    for size, one in chats.items():
        async with one.pool.connection() as connection:
            backends[size] = connection.info.backend_pid
        for question in asked[:10]:
            await one.ask(question.question, 5)
    used = {size: _seconds(pid) for size, pid in backends.items()}
    for number in range(_ROUNDS):
        order = list(chats.items())[:: 1 if number % 2 else -1]
        for question in asked:
            for _, one in order:
                await one.ask(question.question, 5)
    calls = _ROUNDS * len(asked)
    return {
        size: round((_seconds(pid) - used[size]) * 1000 / calls, 2)
        for size, pid in backends.items()
    }


def _seconds(pid: int) -> float:
    """Returns user and system time of a backend."""
    return float(sum(psutil.Process(pid).cpu_times()[:2]))
