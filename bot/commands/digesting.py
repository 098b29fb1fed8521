"""A digest: what was said in a chat in some time, in short, for those who read the chat anyway.

A model writes it from what is stored of the chat; where there is none, or it fails, the sentences
that tell most are chosen by rules. What it is made of is noted first, so that it goes with it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from bot.agents.summariser import extractive
from bot.commands import digest_texts as texts
from bot.feishu import markup, splitting
from bot.languages import Language, language_of
from bot.mentions import from_card
from bot.services import Services
from bot.slash import parse
from memory.kept.digests import DigestStore, Said
from memory.kept.timers import Repeats
from memory.scope import AgentMemoryContext
from memory.summary.text import Line, batch

_ADDRESSED = re.compile(r"^(?:@\S+\s+)+")
_WITHIN_S = 40.0
_MOST_BATCHES = 6
_PERIOD_DAYS: dict[Repeats, int] = {"daily": 1, "weekdays": 1, "weekly": 7, "monthly": 31}


@dataclass(frozen=True, slots=True)
class Span:
    """What a digest tells of: a time (both ends aware), or in it the thread `root`."""

    since: datetime
    until: datetime
    root: str | None = None


async def gathered(services: Services, context: AgentMemoryContext, span: Span) -> tuple[Said, ...]:
    """What there is to tell. Raises `StoreError`."""
    return await DigestStore(services.rpc).material(
        context, since=span.since, until=span.until, root=span.root
    )


async def cards(
    services: Services,
    context: AgentMemoryContext,
    turn_id: str,
    said: Sequence[Said],
    span: Span,
    language: Language | None = None,
) -> list[str]:
    """The markdown of the cards of the open turn `turn_id`; none where some of it was taken back
    meanwhile. `language`: of the heading; None: that of what was said. Raises `StoreError`."""
    if not said or not await DigestStore(services.rpc).keep_sources(context, turn_id, said):
        return []
    lines = _lines(services, context, said)
    text = await _written(services, lines)
    tongue = language or language_of(line.text for line in lines if not line.by_bot)
    zone = services.settings.zone
    head = texts.heading(
        span.since.astimezone(zone),
        span.until.astimezone(zone),
        len(lines),
        tongue,
        of_thread=bool(span.root),
    )
    return splitting.split_markdown(f"{head}\n\n{markup.card_markdown(text)}")


def begins(repeats: Repeats, due: datetime, zone: ZoneInfo) -> datetime:
    """From when a scheduled digest tells: the time before the one that is `due`."""
    local = due.astimezone(zone).replace(tzinfo=None)
    days = 3 if repeats == "weekdays" and local.weekday() == 0 else _PERIOD_DAYS[repeats]
    return (local - timedelta(days=days)).replace(tzinfo=zone).astimezone(UTC)


def _lines(services: Services, context: AgentMemoryContext, said: Sequence[Said]) -> list[Line]:
    names, zone = services.people.of(context.tenant_key), services.settings.zone

    def line(one: Said) -> Line:
        day = f"{datetime.fromtimestamp(one.at_ms / 1000, zone):%Y-%m-%d}"
        if one.card:
            text = from_card(one.content, names.known, unescape=markup.unescape)
            return Line("Bot", text, day, by_bot=True)
        return Line(one.author or names.name(one.author_id or ""), one.content, day)

    worded = [one for one in said if one.content.strip()]
    return [line(one) for one in worded if not _is_command(one)] or list(map(line, worded))


def _is_command(one: Said) -> bool:
    return not one.card and parse(_ADDRESSED.sub("", one.content)) is not None


async def _written(services: Services, lines: Sequence[Line]) -> str:
    """The newest are told where there is too much to read in time."""
    if services.summarise is extractive:  # rules cannot tell that the bot repeats what people said
        lines = [line for line in lines if not line.by_bot] or lines
    parts, left, text = [], list(lines), ""
    while left:
        parts.append(batch(left))
        left = left[len(parts[-1]) :]
    try:
        async with asyncio.timeout(_WITHIN_S):
            for part in parts[-_MOST_BATCHES:]:
                text = await services.summarise(text, part)
    except TimeoutError:
        return await extractive(text, lines)
    return text
