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

    message_count = await fold(
        Summaries(services.rpc),
        services.summarise,
        context,
        window=window(services.settings.history_messages),
        least=least,
        names=names,
        zone=services.settings.zone,
    )
    log.info("summary", messages=message_count)


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
    open_fold: Fold,
    names: NamesOf,
    zone: tzinfo,
) -> int:
    """One version; 0 when it was not stored."""
    author_names = {
        m.actor_id: m.actor_name for m in open_fold.messages if m.actor_id and m.actor_name
    }
    names_by_id = {**author_names, **await names(_addressed(open_fold))}
    telling = [message for message in open_fold.messages if not message.command]
    lines = batch([told(message, names_by_id, zone) for message in telling])
    folded_messages = _until(open_fold.messages, telling[len(lines) :])
    required_ids = references(open_fold.references, lines, names_by_id.values())
    content = without_references(open_fold.content)
    text = await summarise(content, lines) if lines else content
    version = await summaries.save(
        context,
        open_fold,
        content=settled(text, required_ids),
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


def told(message: FoldedMessage, names: Mapping[str, str], zone: tzinfo) -> Line:
    """A stored message as a summariser reads it: the visible text, at-tags as names."""
    day = f"{datetime.fromisoformat(message.created_at).astimezone(zone):%Y-%m-%d}"
    ids = tuple(message.note_ids)
    if message.role == "assistant":
        text = from_card(message.content, names, unescape=markup.unescape)
        mentioned_names = [
            names[open_id] for open_id in _at_tags(message.content) if open_id in names
        ]
        return Line(_BOT, text, day, by_bot=True, ids=(*mentioned_names, *ids))
    author = message.actor_name or names.get(message.actor_id, "")
    return Line(author, message.content, day, ids=ids)


def _addressed(open_fold: Fold) -> list[str]:
    """The open_ids that the messages name by an at-tag only."""
    cards = [m.content for m in open_fold.messages if m.role == "assistant"]
    person_ids = dict.fromkeys(open_id for card in cards for open_id in _at_tags(card))
    return [open_id for open_id in person_ids if open_id != "all"]


def _at_tags(markdown: str) -> list[str]:
    return [tag[1] for tag in markup.AT_TAG.finditer(markdown)]
