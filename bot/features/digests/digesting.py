"""A digest: what was said in a chat in some time, in short, for those who read the chat anyway.

A model writes it from what is stored of the chat. Where there is none, or it fails, the card says
so, and rules choose the sentences of people that tell most. What it is made of is noted first, so
that it goes with it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from bot.agents.summaries.summariser import extractive, note_failure, noting_failures
from bot.features.digests import texts
from bot.features.digests.sources import DigestSpan, Gathered
from bot.feishu import markup, splitting
from bot.process import timing
from bot.services import Services
from bot.text.card_names import from_card
from bot.text.languages import Language, language_of
from bot.text.slash_commands import parse_addressed
from memory.scope import AgentMemoryContext
from memory.summary.text import Line, batch
from memory.tables.digests import ChatMessage, DigestStore

_IMAGE = re.compile(r"!\[image\]\([^()\s]{0,2000}\)")
_WITHIN_S = 40.0
_MOST_BATCHES = 6


async def cards(
    services: Services,
    context: AgentMemoryContext,
    turn_id: str,
    material: Gathered,
    span: DigestSpan,
    language: Language | None = None,
) -> list[str]:
    """The markdown of the cards of the open turn `turn_id`; none where some of it was taken back
    meanwhile. `language`: of the heading; None: that of what was said. Raises `StoreError`."""
    messages = material.said
    if not messages or not await DigestStore(services.rpc).keep_sources(context, turn_id, messages):
        return []
    lines = _lines(services, context, messages)
    text, without_model = await _written(services, lines)
    tongue = language or language_of(line.text for line in lines if not line.by_bot)
    zone = services.settings.zone
    began = span.since
    if span.root or material.seen == "newest":
        began = datetime.fromtimestamp(messages[0].at_ms / 1000, zone)
    head = texts.heading(
        began.astimezone(zone),
        span.until.astimezone(zone),
        len(lines),
        tongue,
        of_thread=bool(span.root),
    )
    notes = texts.notes(
        material.seen, material.wordless, tongue, follows=services.settings.sharing == "chat"
    )
    attachments = texts.attached(
        [(line.author, line.text) for line in lines if not line.by_bot], tongue
    )
    foot = [markup.escape(attachments)] if attachments else []
    honest = [texts.say(without_model, tongue)] if without_model else []
    parts = [head, *honest, markup.card_markdown(text), *foot, *notes]
    return splitting.split_markdown("\n\n".join(parts))


def _lines(
    services: Services, context: AgentMemoryContext, messages: Sequence[ChatMessage]
) -> list[Line]:
    """Dated, unless all was said on one day, which the heading names."""
    names, zone = services.people.of(context.tenant_key), services.settings.zone
    days = {_day(one, zone) for one in messages}

    def line(one: ChatMessage) -> Line:
        day = _day(one, zone) if len(days) > 1 else ""
        if one.card:
            text = from_card(one.content, names.known, unescape=markup.unescape)
            return Line("Bot", text, day, by_bot=True)
        text = _IMAGE.sub("[image]", one.content)
        return Line(one.author or names.name(one.author_id or ""), text, day)

    with_words = [one for one in messages if one.content.strip()]
    return [line(one) for one in with_words if not _is_command(one)] or list(map(line, with_words))


def _day(one: ChatMessage, zone: ZoneInfo) -> str:
    return f"{datetime.fromtimestamp(one.at_ms / 1000, zone):%Y-%m-%d}"


def _is_command(one: ChatMessage) -> bool:
    return not one.card and parse_addressed(one.content) is not None


async def _written(services: Services, lines: Sequence[Line]) -> tuple[str, str]:
    """The digest, and the key of the text that says why no model wrote it, or ""."""
    if services.summarise is extractive:
        return await _chosen(lines), "without-model"
    with noting_failures() as failures:
        text = await _by_model(services, lines)
    if not failures:
        return text, ""
    timing.note(model_failed=failures[0])
    return await _chosen(lines), "model-failed"


async def _chosen(lines: Sequence[Line]) -> str:
    """Rules cannot tell that the bot repeats what people said, or apologises."""
    return await extractive("", [line for line in lines if not line.by_bot] or lines)


async def _by_model(services: Services, lines: Sequence[Line]) -> str:
    """The newest are told where there is too much to read in time."""
    parts, left, text = [], list(lines), ""
    while left:
        parts.append(batch(left))
        left = left[len(parts[-1]) :]
    try:
        async with asyncio.timeout(_WITHIN_S):
            for part in parts[-_MOST_BATCHES:]:
                text = await services.summarise(text, part)
    except TimeoutError:
        note_failure("timeout")
    return text
