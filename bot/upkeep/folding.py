"""What is done for a conversation between its turns, in the background and for its owner.

A turn asks for it when it has answered; the job carries ids only. What fails here is tried a few
times and then left until the next turn asks again: no turn waits for it or fails with it.
"""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime

import structlog

from bot.agents.embedder import EmbeddingFailed, embed_new
from bot.agents.offline.model import without_label
from bot.agents.summariser import Summarise
from bot.feishu import markup
from bot.mentions import from_card
from bot.queue.inbox import QueueUnavailable
from bot.services import Services
from bot.telemetry import metrics
from memory.errors import StoreError
from memory.kept.summaries import Fold, FoldedMessage, Summaries
from memory.models import OpenTurn
from memory.scope import AgentMemoryContext, own_context
from memory.summary.text import Line, batch, references, settled, without_references

log = structlog.get_logger()

TRIES = 4
# A thread that is very far behind goes on with the job of a later turn.
_FOLDS_A_JOB = 40
_BOT = "Bot"

# open_ids → at least those names of them that are known, by open_id
NamesOf = Callable[[Sequence[str]], Awaitable[Mapping[str, str]]]


async def tend_later(services: Services, context: AgentMemoryContext, opened: OpenTurn) -> None:
    """Asks for the tending of a turn's conversation if there is anything to do."""
    to_embed = services.embedder is not None and not opened.degraded
    if services.defer_tending is None or not (opened.fold_due or to_embed):
        return
    try:
        await services.defer_tending(context)
    except QueueUnavailable as exc:
        log.warning("tending.not_deferred", error=str(exc))


async def handle_tending(
    services: Services, conversation_id: str, user_id: str, tenant_key: str, attempt: int
) -> None:
    """One job. Raises what is worth another attempt; the last one is given up quietly."""
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(conversation_id=conversation_id, attempt=attempt)
    try:
        await tend_conversation(services, own_context(conversation_id, user_id, tenant_key))
    except Exception as exc:
        given_up = attempt >= TRIES
        metrics.TENDING.labels(outcome="given_up" if given_up else "failed").inc()
        log.warning("tending.failed", error=type(exc).__name__, given_up=given_up, **_cause(exc))
        if not given_up:
            raise
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

    folded = await fold(
        Summaries(services.rpc),
        services.summarise,
        context,
        window=window(services.settings.history_messages),
        least=least,
        names=names,
    )
    log.info("summary", messages=folded)


async def embed_messages(services: Services, context: AgentMemoryContext) -> None:
    """Embeds what has no embedding yet; what fails is left until a later turn asks again."""
    if services.embedder is None:
        return
    try:
        embedded = await embed_new(services.rpc, services.embedder, context)
    except EmbeddingFailed as exc:
        log.warning("embedding.postponed", reason=exc.reason)
    else:
        log.info("embedded", messages=embedded)


def window(history_messages: int) -> int:
    """How many of the stored messages the next turn shows beside its question."""
    return history_messages - 1


async def fold(
    summaries: Summaries,
    summarise: Summarise,
    context: AgentMemoryContext,
    *,
    window: int,
    least: int = 1,
    names: NamesOf,
    most: int = _FOLDS_A_JOB,
) -> int:
    """Folds until all before the last `window` messages is in the summary; returns how many were.

    Nothing happens unless there are `least`; after `most` versions it stops. Who loses against
    another fold starts over from what is then stored. Raises `StoreError`.
    """
    folded = 0
    for _ in range(most):
        begun = await summaries.open_fold(context, window=window, least=1 if folded else least)
        if not begun.messages:
            break
        folded += await _fold_once(summaries, summarise, context, begun, names)
    return folded


async def _fold_once(
    summaries: Summaries,
    summarise: Summarise,
    context: AgentMemoryContext,
    begun: Fold,
    names: NamesOf,
) -> int:
    """One version; 0 when it was not stored."""
    said = {m.actor_id: m.actor_name for m in begun.messages if m.actor_id and m.actor_name}
    known = {**said, **await names(_addressed(begun))}
    lines = batch([told(message, known) for message in begun.messages])
    taken = begun.messages[: len(lines)]
    required = references(begun.references, lines, known.values())
    text = await summarise(without_references(begun.content), lines)
    version = await summaries.save(
        context,
        begun,
        content=settled(text, required),
        references=required,
        messages=taken,
    )
    if version is None:
        log.info("summary.superseded", version=begun.version)
    return len(taken) if version else 0


def told(message: FoldedMessage, names: Mapping[str, str]) -> Line:
    """A stored message as a summariser reads it: the visible text, at-tags as names."""
    day = f"{datetime.fromisoformat(message.created_at).astimezone():%Y-%m-%d}"
    ids = tuple(message.note_ids)
    if message.role == "assistant":
        text = without_label(from_card(message.content, names, unescape=markup.unescape))
        mentioned = [names[open_id] for open_id in _at_tags(message.content) if open_id in names]
        return Line(_BOT, text, day, by_bot=True, ids=(*mentioned, *ids))
    author = message.actor_name or names.get(message.actor_id, "")
    return Line(author, message.content, day, ids=ids)


def _addressed(begun: Fold) -> list[str]:
    """The open_ids that the messages name by an at-tag only."""
    cards = [m.content for m in begun.messages if m.role == "assistant"]
    found = dict.fromkeys(open_id for card in cards for open_id in _at_tags(card))
    return [open_id for open_id in found if open_id != "all"]


def _at_tags(markdown: str) -> list[str]:
    return [tag[1] for tag in markup.AT_TAG.finditer(markdown)]
