"""Folding: what the window no longer shows of a conversation goes into its summary."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, tzinfo

import structlog

from bot.agents.summaries.summariser import Summarise
from bot.feishu import markup
from bot.services import Services
from bot.text.card_names import from_card
from memory.scope import AgentMemoryContext
from memory.summary.text import Line, batch, references, settled, without_references
from memory.tables.summaries import Fold, FoldedMessage, Summaries

log = structlog.get_logger()

# A thread that is very far behind goes on with the job of a later turn.
_FOLDS_A_JOB = 40
_BOT = "Bot"

# open_ids → at least those names of them that are known, by open_id
NamesOf = Callable[[Sequence[str]], Awaitable[Mapping[str, str]]]


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
        zone=services.settings.zone,
    )
    log.info("summary", messages=folded)


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
    zone: tzinfo,
    most: int = _FOLDS_A_JOB,
) -> int:
    """Folds until all before the last `window` messages is in the summary; returns how many were.

    Days are those of `zone`. Nothing happens unless there are `least`; after `most` versions it
    stops. Who loses against another fold starts over from what is then stored. Raises `StoreError`.
    """
    folded = 0
    for _ in range(most):
        begun = await summaries.open_fold(context, window=window, least=1 if folded else least)
        if not begun.messages:
            break
        folded += await _fold_once(summaries, summarise, context, begun, names, zone)
    return folded


async def _fold_once(
    summaries: Summaries,
    summarise: Summarise,
    context: AgentMemoryContext,
    begun: Fold,
    names: NamesOf,
    zone: tzinfo,
) -> int:
    """One version; 0 when it was not stored."""
    said = {m.actor_id: m.actor_name for m in begun.messages if m.actor_id and m.actor_name}
    known = {**said, **await names(_addressed(begun))}
    telling = [message for message in begun.messages if not message.command]
    lines = batch([told(message, known, zone) for message in telling])
    taken = _until(begun.messages, telling[len(lines) :])
    required = references(begun.references, lines, known.values())
    content = without_references(begun.content)
    text = await summarise(content, lines) if lines else content
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


def _until(
    messages: Sequence[FoldedMessage], left: Sequence[FoldedMessage]
) -> Sequence[FoldedMessage]:
    """Those before the first that is left for another fold."""
    return messages[: messages.index(left[0])] if left else messages


def told(message: FoldedMessage, names: Mapping[str, str], zone: tzinfo) -> Line:
    """A stored message as a summariser reads it: the visible text, at-tags as names."""
    day = f"{datetime.fromisoformat(message.created_at).astimezone(zone):%Y-%m-%d}"
    ids = tuple(message.note_ids)
    if message.role == "assistant":
        text = from_card(message.content, names, unescape=markup.unescape)
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
