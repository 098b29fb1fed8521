"""Summarises and embeds a conversation between its turns, in the background.

A turn asks for it when it has answered; the job carries ids only. What fails here is tried a few
times and then left until the next turn asks again: no turn waits for it or fails with it."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, tzinfo

import structlog

from bot.agents.embeddings import Embedder, EmbeddingFailed, EmbeddingRefused
from bot.agents.summaries import Summarise
from bot.feishu import markup
from bot.process import metrics
from bot.queue.inbox import QueueUnavailable
from bot.queue.jobs import Later
from bot.services import Services
from bot.text.roster import from_card
from memory.errors import StoreError
from memory.models import OpenTurn
from memory.rpc import Rpc
from memory.scope import AgentMemoryContext
from memory.summary import (
    SummaryLine,
    first_batch,
    settled_summary,
    summary_references,
    without_references,
)
from memory.tables.derived import (
    EmbeddingStore,
    FoldedMessage,
    Summaries,
    SummaryFold,
    Unembedded,
    Vector,
    text_to_embed,
)

log = structlog.get_logger()
TRIES = 4

# A thread that is very far behind goes on with the job of a later turn.
_FOLDS_A_JOB = 40
_BOT = "Bot"

# open_ids → at least those names of them that are known, by open_id
NamesOf = Callable[[Sequence[str]], Awaitable[Mapping[str, str]]]

# A job of the background looks at so many of a conversation's newest messages, and embeds so many.
_RECENT = 1000
_MOST_A_JOB = 512


async def tend_later(services: Services, context: AgentMemoryContext, open_turn: OpenTurn) -> None:
    """Asks for the tending of a turn's conversation if there is anything to do."""
    to_embed = services.embedder is not None and not open_turn.degraded
    if services.queue_tending is None or not (open_turn.fold_due or to_embed):
        return
    try:
        await services.queue_tending(context)
    except QueueUnavailable as exc:
        log.warning("tending.not_queued", error=str(exc))


async def handle_tending(services: Services, context: AgentMemoryContext, attempt: int) -> None:
    """One job. Raises what is worth another attempt; the last one is given up quietly."""
    structlog.contextvars.bind_contextvars(conversation_id=context.conversation_id)
    try:
        await tend_conversation(services, context)
    except Exception as exc:
        given_up = attempt >= TRIES
        metrics.TENDING.labels(outcome="given_up" if given_up else "failed").inc()
        log.warning("tending.failed", error=type(exc).__name__, given_up=given_up, **_cause(exc))
        if not given_up:
            raise Later(type(exc).__name__) from exc
    else:
        metrics.TENDING.labels(outcome="done").inc()


def _cause(exc: Exception) -> dict[str, object]:
    """Of what was foreseen the code; else the frames only, for the message may hold words."""
    if isinstance(exc, StoreError):
        return {"code": exc.code}
    return {"stack": "".join(traceback.format_tb(exc.__traceback__))}


async def tend_conversation(services: Services, context: AgentMemoryContext) -> None:
    """Every step, one after the other; each finds out by itself whether there is work."""
    await fold_history(services, context)
    await embed_messages(services, context)


async def fold_history(services: Services, context: AgentMemoryContext) -> None:
    """Folds what the window no longer shows, if enough has come together."""
    least = services.settings.summary_after_messages
    if not least:
        return
    people = services.people.of(context.tenant_key)

    async def names(open_ids: Sequence[str]) -> Mapping[str, str]:
        await people.look_up(open_ids)
        return people.known

    message_count = await fold_messages(
        Summaries(services.rpc),
        services.summarise,
        context,
        window=window_size(services.settings.history_messages),
        least=least,
        names=names,
        zone=services.settings.zone,
    )
    log.info("summary", messages=message_count)


def window_size(history_messages: int) -> int:
    """How many of the stored messages the next turn shows beside its question."""
    return history_messages - 1


async def fold_messages(
    summaries: Summaries,
    summarise: Summarise,
    context: AgentMemoryContext,
    *,
    window: int,
    least: int = 1,
    names: NamesOf,
    zone: tzinfo,
    most: int = _FOLDS_A_JOB,
) -> int:
    """Folds until all before the last `window` messages is in the summary; returns how many were.

    Days are those of `zone`. Nothing happens unless there are `least`; after `most` versions it
    stops. Who loses against another fold starts over from what is then stored. Raises `StoreError`.
    """
    message_count = 0
    for _ in range(most):
        open_fold = await summaries.open_fold(
            context, window=window, least=1 if message_count else least
        )
        if not open_fold.messages:
            break
        message_count += await _fold_once(summaries, summarise, context, open_fold, names, zone)
    return message_count


async def _fold_once(
    summaries: Summaries,
    summarise: Summarise,
    context: AgentMemoryContext,
    open_fold: SummaryFold,
    names: NamesOf,
    zone: tzinfo,
) -> int:
    """One version; 0 when it was not stored."""
    author_names = {
        m.actor_id: m.actor_name for m in open_fold.messages if m.actor_id and m.actor_name
    }
    names_by_id = {**author_names, **await names(_addressed_people(open_fold))}
    telling = [message for message in open_fold.messages if not message.command]
    lines = first_batch([summary_line(message, names_by_id, zone) for message in telling])
    folded_messages = _until(open_fold.messages, telling[len(lines) :])
    required_ids = summary_references(open_fold.references, lines, names_by_id.values())
    content = without_references(open_fold.content)
    text = await summarise(content, lines) if lines else content
    version = await summaries.save(
        context,
        open_fold,
        content=settled_summary(text, required_ids),
        references=required_ids,
        messages=folded_messages,
    )
    if version is None:
        log.info("summary.superseded", version=open_fold.version)
    return len(folded_messages) if version else 0


def _until(
    messages: Sequence[FoldedMessage], left: Sequence[FoldedMessage]
) -> Sequence[FoldedMessage]:
    """Those before the first that is left for another fold."""
    return messages[: messages.index(left[0])] if left else messages


def summary_line(message: FoldedMessage, names: Mapping[str, str], zone: tzinfo) -> SummaryLine:
    """A stored message as a summariser reads it: the visible text, at-tags as names."""
    day = f"{datetime.fromisoformat(message.created_at).astimezone(zone):%Y-%m-%d}"
    ids = tuple(message.note_ids)
    if message.role == "assistant":
        text = from_card(message.content, names, unescape=markup.unescape)
        mentioned_names = [
            names[open_id] for open_id in _at_tags(message.content) if open_id in names
        ]
        return SummaryLine(_BOT, text, day, by_bot=True, ids=(*mentioned_names, *ids))
    author = message.actor_name or names.get(message.actor_id, "")
    return SummaryLine(author, message.content, day, ids=ids)


def _addressed_people(open_fold: SummaryFold) -> list[str]:
    """The open_ids that the messages name by an at-tag only."""
    cards = [m.content for m in open_fold.messages if m.role == "assistant"]
    person_ids = dict.fromkeys(open_id for card in cards for open_id in _at_tags(card))
    return [open_id for open_id in person_ids if open_id != "all"]


def _at_tags(markdown: str) -> list[str]:
    return [tag[1] for tag in markup.AT_TAG.finditer(markdown)]


async def embed_messages(services: Services, context: AgentMemoryContext) -> None:
    """Embeds what has no embedding yet; what fails is left until a later turn asks again."""
    if services.embedder is None:
        return
    try:
        count = await embed_new(services.rpc, services.embedder, context)
    except EmbeddingFailed as exc:
        log.warning("embedding.postponed", reason=exc.reason)
    else:
        log.info("embedded", messages=count)


async def embed_new(
    rpc: Rpc,
    embedder: Embedder,
    context: AgentMemoryContext,
    *,
    most: int = _MOST_A_JOB,
    recent: int | None = _RECENT,
) -> int:
    """Embeds messages of the conversation that have no embedding, newest first; returns how many.

    At most `most`, among the `recent` newest. Raises `EmbeddingFailed` and `StoreError`.
    """
    store = EmbeddingStore(rpc)
    count = 0
    while count < most:
        limit = min(embedder.batch, most - count)
        messages = await store.missing(context, embedder.name, limit=limit, recent=recent)
        if messages is None:
            log.warning("embedding.no_vectors", next_step="run scripts/migrate: it says why")
        if not messages:
            break
        saved_count = await store.save(
            context, embedder.name, await _embed_messages_of(embedder, messages)
        )
        if not saved_count:
            break  # what is left is refused, or has just gone
        count += saved_count
    return count


async def _embed_messages_of(
    embedder: Embedder, messages: Sequence[Unembedded]
) -> list[tuple[Unembedded, Vector]]:
    """Each message with its vector, without those that the endpoint does not take."""
    try:
        vectors = await embedder.of_messages(
            [text_to_embed(message.content) for message in messages]
        )
    except EmbeddingRefused:
        if len(messages) == 1:
            log.warning("embedding.refused", id=messages[0].id)
            return []
        half = len(messages) // 2
        return [
            *await _embed_messages_of(embedder, messages[:half]),
            *await _embed_messages_of(embedder, messages[half:]),
        ]
    return [pair for pair in zip(messages, vectors, strict=True) if any(pair[1])]
