"""Embeds questions at once and messages in the background.

Without EMBEDDING_MODEL there is none and recall goes by words. So it does while the model is away
or slow: then questions do not wait for it. Every few seconds one of them tries it again beside its
turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Protocol

import structlog

from bot.agents.llm.endpoint import Endpoint
from bot.agents.llm.model import Declined, ModelFailed
from bot.agents.llm.model_traits import EmbeddingInputs, inputs_of
from bot.agents.running_turns import SLOW_EMBEDDING_S, note_sources
from bot.process import metrics
from bot.process.concurrency import cancel_tasks, without_slot
from bot.process.usage import UsageCounter
from bot.settings import Settings
from bot.text.json_text import dump_json, load_json
from bot.text.slash_commands import parse_command
from memory.fallback.breaker import CircuitBreaker
from memory.models import QuestionEmbedding
from memory.recall.passages import Passage, RecallScope
from memory.scope import AgentMemoryContext
from memory.store import MemoryStore
from memory.tables.derived import Vector, text_to_embed, vector_text

log = structlog.get_logger()
QUESTION_WITHIN_S = 1.0
_PROBES_EVERY_S, _WINDOW_S = 5.0, 600.0
_BATCH_WITHIN_S = 30.0

# The local model does one thing at a time, and a question waits for it at most a second.
_BATCH, _LOCAL_BATCH = 64, 4
COMMANDS_AMONG = 3
_LIKENESS_WEIGHT = 0.2  # of the ranks in recall; those by words keep the rest
_PATH = "/embeddings"


class EmbeddingFailed(Exception):
    """The embedding model gave no vectors. `reason` is a kind, without text of anybody."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the embedding model gave no vectors ({reason}): check EMBEDDING_MODEL")
        self.reason = reason


class EmbeddingRefused(EmbeddingFailed):
    """The endpoint does not take one of the texts; others it may."""


class Likens(Protocol):
    """What gives the likeness of a question."""

    async def likeness(self, question: str) -> QuestionEmbedding | None:
        """What recall needs to find by meaning; None when there is no vector in time."""
        ...


class Embedder:
    """An OpenAI-compatible embeddings endpoint. `weight` is what likeness counts in recall."""

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        *,
        inputs: EmbeddingInputs | None = None,
        dimensions: int = 0,
        batch: int = _BATCH,
        question_within_s: float = QUESTION_WITHIN_S,
        tally: UsageCounter | None = None,
    ) -> None:
        self._tally = tally or UsageCounter()
        self._endpoint = endpoint
        self._inputs = inputs or EmbeddingInputs(model, model)
        self._asked: dict[str, Any] = {"encoding_format": "float"}
        if dimensions:
            self._asked["dimensions"] = dimensions
        self._question_within_s = question_within_s
        self._breaker = CircuitBreaker(window_s=_WINDOW_S, probe_every_s=_PROBES_EVERY_S)
        self._probe: asyncio.Task[QuestionEmbedding | None] | None = None
        self.weight = _LIKENESS_WEIGHT
        self.batch = batch  # messages that are embedded at once
        self.name = _name(model, dimensions, self._inputs)

    async def close(self) -> None:
        if self._probe:
            await cancel_tasks([self._probe])
        await self._endpoint.close()

    @property
    def is_away(self) -> bool:
        """Whether questions do not wait for it now."""
        return not self._breaker.admit()

    async def of_messages(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of at most 64 texts, none of them empty, in their order.

        Raises `EmbeddingFailed`, `EmbeddingRefused` when the request itself was not taken.
        """
        inputs = [self._inputs.passage(text) for text in texts]
        return await self._ask("messages", inputs, _BATCH_WITHIN_S)

    async def of_questions(self, texts: Sequence[str]) -> list[QuestionEmbedding]:
        """The likenesses of at most 64 questions. Raises as `of_messages` does."""
        inputs = [self._inputs.question(text_to_embed(text)) for text in texts]
        vectors = await self._ask("question", inputs, _BATCH_WITHIN_S)
        return [
            QuestionEmbedding(self.name, vector_text(vector), self.weight) for vector in vectors
        ]

    async def likeness(self, question: str) -> QuestionEmbedding | None:
        """As `Likens` has it; at once while the model is away."""
        if not question.strip():
            return None
        return None if self.tries_if_away(question) else await self._likeness(question)

    def tries_if_away(self, question: str) -> bool:
        """Whether the model is away; every few seconds the question tries it."""
        if self.is_away and self._breaker.admit_probe():
            self._probe = asyncio.create_task(self._likeness(question))
        return self.is_away

    async def _likeness(self, question: str) -> QuestionEmbedding | None:
        start_s, was_away = time.monotonic(), self.is_away
        try:
            inputs = [self._inputs.question(text_to_embed(question))]
            [vector] = await self._ask("question", inputs, self._question_within_s)
            likeness = QuestionEmbedding(self.name, vector_text(vector), self.weight)
        except ValueError:
            _embedding_failure("no_direction")
            log.warning("embedding.unavailable", reason="no_direction")
            likeness = None
        except EmbeddingFailed as exc:
            log.warning("embedding.unavailable", reason=exc.reason)
            self._note(is_well=isinstance(exc, EmbeddingRefused), was_away=was_away)
            return None
        self._note(is_well=time.monotonic() - start_s < SLOW_EMBEDDING_S, was_away=was_away)
        return likeness

    def _note(self, *, is_well: bool, was_away: bool) -> None:
        """Notes how the model answered a question, which began while it `was_away` or not."""
        if is_well and was_away == self.is_away:
            self._breaker.note_success()
        elif not is_well:
            self._breaker.note_failure()
        metrics.EMBEDDING_AWAY.set(self.is_away)
        if was_away != self.is_away:
            log.warning("embedding.away" if self.is_away else "embedding.back")

    async def _ask(self, of: str, texts: Sequence[str], within_s: float) -> list[Vector]:
        inputs = self._inputs
        model = inputs.question_model if of == "question" else inputs.passage_model
        body = dump_json({"model": model, **self._asked, "input": list(texts)})
        try:
            with metrics.EMBEDDING_SECONDS.labels(of=of).time():
                async with asyncio.timeout(within_s):
                    async with self._endpoint.post(_PATH, body) as chunks:
                        answer = load_json(b"".join([chunk async for chunk in chunks]))
        except (ModelFailed, Declined, TimeoutError, ValueError) as exc:
            raise _translate_error(exc) from exc
        self._tally.count_request("embedding", _tokens(answer))
        vectors = _vectors(answer)
        if len(vectors) != len(texts):
            raise _embedding_failure("incomplete")
        return vectors


def _vectors(answer: Any) -> list[Vector]:
    """The vectors in their order; some servers answer with an error and status 200."""
    rows = (answer.get("data") if isinstance(answer, dict) else None) or ()
    try:
        return [one["embedding"] for one in sorted(rows, key=lambda one: one["index"])]
    except (KeyError, TypeError) as exc:
        raise _embedding_failure("malformed") from exc


def _tokens(answer: Any) -> int:
    """As they are reported; 0 when they are not."""
    usage = answer.get("usage") if isinstance(answer, dict) else None
    count = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return count if isinstance(count, int) else 0


def _translate_error(exc: Exception) -> EmbeddingFailed:
    if not isinstance(exc, ModelFailed):
        return _embedding_failure("timeout" if isinstance(exc, TimeoutError) else "malformed")
    if exc.reason == "status_400":
        metrics.EMBEDDING_FAILURES.labels(reason="refused").inc()
        return EmbeddingRefused("refused")
    return _embedding_failure(exc.reason)


def _embedding_failure(reason: str) -> EmbeddingFailed:
    metrics.EMBEDDING_FAILURES.labels(reason=reason).inc()
    return EmbeddingFailed(reason)


class QuestionVector:
    """The likeness of one question, asked for beside other work."""

    def __init__(self, task: asyncio.Task[QuestionEmbedding | None]) -> None:
        self._asked = task

    async def likeness(self, question: str) -> QuestionEmbedding | None:
        """As `Likens` has it; it is the question that was asked."""
        with without_slot():
            return await self._asked


@contextmanager
def question_vector_beside(
    embedder: Embedder | None, question: str
) -> Iterator[QuestionVector | None]:
    """Asks for the vector of `question` while this is entered. None where nobody would wait for it:
    without an embedder, and while the model is away."""
    if embedder is None or embedder.tries_if_away(question):
        yield None
        return
    task = asyncio.create_task(embedder.likeness(question))
    try:
        yield QuestionVector(task)
    finally:
        task.cancel()


def _name(model: str, dimensions: int, inputs: EmbeddingInputs) -> str:
    """Vectors of other lengths, or made with other words before, do not compare: another model."""
    return "/".join(filter(None, (model, f"{dimensions or ''}", inputs.passage_prefix.strip())))


def embeddings_name(settings: Settings) -> str:
    """What the vectors of these settings are kept as; "" without EMBEDDING_MODEL."""
    model, dimensions = settings.embedding_model, settings.embedding_dimensions
    return _name(model, dimensions, inputs_of(settings)) if model else ""


def build_embedder(settings: Settings, tally: UsageCounter | None = None) -> Embedder | None:
    """The embedder of the settings; None without EMBEDDING_MODEL."""
    if not settings.embedding_model:
        return None
    # The key of one endpoint is not given to another.
    key = settings.embedding_api_key or (
        "" if settings.embedding_address else settings.openai_api_key
    )
    endpoint = Endpoint(
        key or "none",
        settings.embedding_address or settings.openai_base_url,
        timeout_s=_BATCH_WITHIN_S,
        retries=0,
    )
    return Embedder(
        endpoint,
        settings.embedding_model,
        inputs=inputs_of(settings),
        dimensions=settings.embedding_dimensions,
        batch=_LOCAL_BATCH if settings.local_embeddings else _BATCH,
        tally=tally,
    )


async def find_passages(
    store: MemoryStore,
    embedder: Likens | None,
    context: AgentMemoryContext,
    query: str,
    *,
    now: datetime,
    scope: RecallScope,
    k: int = 5,
    before_id: int | None = None,
    newest_too: bool = False,
) -> tuple[Passage, ...]:
    """`MemoryStore.find`, by meaning too where there is an embedder that answers in time. What a
    command showed, such as the settings, is nothing that was said."""
    likeness = await embedder.likeness(query) if embedder else None
    result_count = k + COMMANDS_AMONG
    hits = await store.find(
        context,
        query,
        now=now,
        scope=scope,
        k=result_count,
        before_id=before_id,
        likeness=likeness,
        newest_too=newest_too,
    )
    return spoken_passages(hits, k)


def spoken_passages(hits: Sequence[Passage], k: int) -> tuple[Passage, ...]:
    """The first `k` of `hits` without what commands showed; they are noted as sources."""
    passages = tuple(one for one in hits if not parse_command(one.question))[:k]
    note_sources(source for passage in passages for source in passage.ids)
    return passages
