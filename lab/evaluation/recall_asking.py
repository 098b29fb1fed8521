"""Asks the questions of a corpus in a real database: what recall finds, and what a prompt tells."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import psycopg

from lab.evaluation.recall_corpora import Corpus, CorpusTurn, Question
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.models import Likeness
from memory.recall.ordinals import enough_for, in_order
from memory.recall.passages import Passage, passages, recall_params
from memory.rpc import call_as
from memory.scope import AgentMemoryContext, memory_context
from memory.tokens import estimate_tokens

Found = dict[int, float]


@dataclass(frozen=True, slots=True)
class RecallLatency:
    """Milliseconds."""

    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class Telling:
    """How a version tells in a prompt what it found.

    `most` are asked for; `choose` gives those that a prompt tells, `words` what it tells of one.
    `fits` drops hits that do not fit the question; `options` go to `recall_params`.
    """

    most: int
    choose: Callable[[Sequence[Passage]], Sequence[Passage]]
    words: Callable[[Passage], str]
    options: Mapping[str, Any] = field(default_factory=dict)
    fits: Callable[[Sequence[Passage], str], Sequence[Passage]] = lambda found, _: found


@dataclass(frozen=True, slots=True)
class PromptShare:
    """What prompts tell: the share of the evidence, the share of what is told that is evidence, and
    turns and tokens. `elsewhere`: of the same question in a conversation without the answer."""

    told: float = 0.0
    precision: float = 0.0
    tokens: float = 0.0
    turns_elsewhere: float = 0.0
    tokens_elsewhere: float = 0.0


@dataclass(frozen=True, slots=True)
class RecallReport:
    """`found[k]` is the mean share of a question's evidence among the first k hits, 0 to 1;
    `kinds` has the same for each kind of question. `weight` is that of the vectors; 0: words alone.
    """

    corpus: str
    questions: int
    with_dates: bool
    found: Found
    ms: RecallLatency
    weight: float = 0.0
    prompt: PromptShare = PromptShare()
    kinds: dict[str, Found] = field(default_factory=dict)


def latency(times_ms: Sequence[float]) -> RecallLatency:
    """The percentiles of at least one measurement."""
    ordered = sorted(times_ms)
    p50, p95 = statistics.median(ordered), ordered[len(ordered) * 95 // 100]
    return RecallLatency(round(p50, 2), round(p95, 2))


def mean_found(shares: Sequence[Found]) -> Found:
    """The mean of at least one."""
    return {k: statistics.fmean(one[k] for one in shares) for k in shares[0]}


def store(url: str, corpus: Corpus) -> None:
    """Every turn as the bot would have stored it, each conversation as one person's thread."""
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        for name, turns in corpus.conversations.items():
            who = context_of(name)
            cursor.execute(
                "insert into agent_chats (id, user_id, chat_id, root_id)"
                " values (%s, %s, %s, 'main')",
                (who.conversation_id, who.user_id, who.chat_id),
            )
            for turn in turns:
                _store_turn(cursor, who, turn)


def _store_turn(cursor: psycopg.Cursor, who: AgentMemoryContext, turn: CorpusTurn) -> None:
    turn_id = _turn_id(who, turn.id)
    cursor.execute(
        "insert into agent_turns (id, conversation_id, user_id, actor_id, chat_id, state)"
        " values (%s, %s, %s, %s, %s, 'sent')",
        (turn_id, who.conversation_id, who.user_id, who.user_id, who.chat_id),
    )
    place = (who.conversation_id, who.user_id, turn_id, who.chat_id)
    said = [("user", turn.question, turn.speaker), ("assistant", turn.answer, "")]
    cursor.executemany(
        "insert into agent_messages (conversation_id, user_id, turn_id, chat_id, role, content,"
        " actor_id, actor_name, status, created_at)"
        " values (%s, %s, %s, %s, %s, %s, %s, %s, 'sent', %s)",
        [
            (*place, role, text, who.user_id, speaker, turn.at)
            for role, text, speaker in said
            if text
        ],
    )


def context_of(name: str) -> AgentMemoryContext:
    """The person whose conversation `name` is."""
    return memory_context(
        chat_id=f"oc_{name}", root="main", subject=f"ou_{name}", actor=f"ou_{name}"
    )


def _turn_id(who: AgentMemoryContext, turn: str) -> str:
    return f"{who.chat_id} {turn}"


async def evaluate(
    url: str,
    corpus: Corpus,
    ks: Sequence[int],
    telling: Telling,
    *,
    with_dates: bool = True,
    likenesses: Mapping[str, Likeness] = MappingProxyType({}),
) -> RecallReport:
    """Asks every question of `corpus`, which `store` put into the database.

    `likenesses` are those of the questions, all of one weight.
    """
    pool = connection_pool(url, size=1)
    await pool.open()
    asking = _QuestionsAsked(PostgresRpc(pool), corpus, ks, telling, with_dates, likenesses)
    for question in corpus.questions:
        await asking.add(question)
    await asking.rpc.close()
    return asking.report()


@dataclass(slots=True)
class _QuestionsAsked:
    rpc: PostgresRpc
    corpus: Corpus
    ks: Sequence[int]
    telling: Telling
    with_dates: bool
    likenesses: Mapping[str, Likeness]
    times_ms: list[float] = field(default_factory=list)
    found: list[tuple[str, Found]] = field(default_factory=list)
    prompts: list[PromptShare] = field(default_factory=list)

    async def add(self, question: Question) -> None:
        best = await self._best(question, question.conversation)
        who = context_of(question.conversation)
        evidence = {_turn_id(who, turn) for turn in question.evidence}
        hits = [passage.turn_id for passage in best]
        shares = {k: len(evidence.intersection(hits[:k])) / len(evidence) for k in self.ks}
        self.found.append((question.kind, shares))

        told = self.telling.choose(best)
        right = len(evidence.intersection(one.turn_id for one in told))
        other = self.corpus.elsewhere(question)
        elsewhere = self.telling.choose(await self._best(question, other))
        self.prompts.append(
            PromptShare(
                right / len(evidence),
                right / len(told) if told else 0.0,
                self._tokens(told),
                len(elsewhere),
                self._tokens(elsewhere),
            )
        )

    async def _best(self, question: Question, conversation: str) -> tuple[Passage, ...]:
        who, most = context_of(conversation), max(*self.ks, self.telling.most)
        params = recall_params(
            who,
            question.text,
            now=self.corpus.asked_at(conversation),
            k=enough_for(question.text, most),
            likeness=self.likenesses.get(question.text),
            **self.telling.options,
        )
        if not self.with_dates:
            params |= {"p_spans": "[]"}
        started = time.perf_counter()
        rows = await call_as(self.rpc, "recall", who, **params)
        self.times_ms.append((time.perf_counter() - started) * 1000)
        return tuple(
            self.telling.fits(in_order(passages(rows), question.text, most), question.text)
        )

    def _tokens(self, told: Sequence[Passage]) -> int:
        return sum(estimate_tokens(self.telling.words(one)) for one in told)

    def report(self) -> RecallReport:
        kinds = sorted({kind for kind, _ in self.found} - {""})
        return RecallReport(
            self.corpus.name,
            len(self.found),
            self.with_dates,
            mean_found([shares for _, shares in self.found]),
            latency(self.times_ms),
            next((one.weight for one in self.likenesses.values()), 0.0),
            PromptShare(
                *(
                    statistics.fmean(getattr(one, name) for one in self.prompts)
                    for name in PromptShare.__slots__
                )
            ),
            {kind: mean_found([one for its, one in self.found if its == kind]) for kind in kinds},
        )
