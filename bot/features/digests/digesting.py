"""Collects what was said in a chat and writes a digest of it.

A model writes the digest. Without a model, or if it fails, rules choose the most telling sentences
and the card says so. The sources are noted first, so that a retraction takes the digest back.

Messages that were not addressed to the bot are read from Feishu for the digest and not kept. Of
messages to the bot only the stored ones count: the others were forgotten."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Literal
from zoneinfo import ZoneInfo

import structlog

from bot.agents.offline.facts import is_errand
from bot.agents.summaries import extractive_summary, note_failure, noting_failures
from bot.features.documents import SourceDocumentCheck
from bot.feishu import drawable_markdown, markup
from bot.feishu.content import UNREADABLE_CARD
from bot.feishu.errors import FeishuError, FeishuFailure, is_still_refused
from bot.feishu.models import RawMessage, message_text
from bot.listening.conversation_store import ChatConversations
from bot.process import metrics
from bot.services import Services
from bot.text import times
from bot.text.languages import Catalogue, Language, join_list, language_of
from bot.text.meant_commands import command_meant
from bot.text.roster import from_card
from bot.text.slash_commands import parse_command, without_address
from memory.scope import AgentMemoryContext
from memory.summary import SummaryLine, first_batch
from memory.tables.timers import MOST_DIGEST_MESSAGES, DigestMessage, DigestStore

say = Catalogue(__file__).say
_FILE = re.compile(r"\[(?:file|video): ([^\]\n]+)\]")
_MOST_FILES = 10
_CHOSEN_LINE = re.compile(
    r"^- (?:(?P<day>\d{4}-\d\d-\d\d) )?(?P<name>[^:\n]{1,80}): ", re.MULTILINE
)

_IMAGE = re.compile(r"!\[image\]\([^()\s]{0,2000}\)")
_MODEL_TIMEOUT_S = 40.0
_MOST_BATCHES = 6

log = structlog.get_logger()
Extent = Literal["all", "newest", "heard"]
_API = "list_messages"
_LISTING_TIMEOUT_S = 20.0
_MOST_THREADS = 30
_MOST_OF_A_THREAD = 50  # one page
_WORDLESS = frozenset({"", UNREADABLE_CARD, "[sticker]", "[voice message]"})


async def digest_cards(
    services: Services,
    context: AgentMemoryContext,
    turn_id: str,
    material: GatheredMessages,
    span: DigestSpan,
    language: Language | None = None,
) -> list[str]:
    """The markdown of the cards of the open turn `turn_id`; none where some of it was taken back
    meanwhile. `language`: of the heading; None: that of what was said. Raises `StoreError`."""
    messages = material.messages
    if not messages or not await DigestStore(services.rpc).keep_sources(context, turn_id, messages):
        return []
    lines = _digest_lines(services, context, messages)
    text, without_model = await _write_digest(services, lines)
    tongue = language or language_of(line.text for line in lines if not line.by_bot)
    zone = services.settings.zone
    began = span.since
    if span.root or material.extent == "newest":
        began = datetime.fromtimestamp(messages[0].at_ms / 1000, zone)
    head = heading(
        began.astimezone(zone),
        span.until.astimezone(zone),
        len([line for line in lines if not line.by_bot]) or len(lines),
        tongue,
        of_thread=bool(span.root),
    )
    notes = limit_notes(
        material.extent, material.wordless, tongue, follows=services.settings.sharing == "chat"
    )
    attachments = attachment_line(
        [(line.author, line.text) for line in lines if not line.by_bot], tongue
    )
    foot = [markup.escape(attachments)] if attachments else []
    honest = [say(without_model, tongue)] if without_model else []
    if without_model:
        text = chosen_lines(text, tongue, span.until.astimezone(zone))
    parts = [head, *honest, markup.card_markdown(text), *foot, *notes]
    return drawable_markdown.split_markdown("\n\n".join(parts))


def _digest_lines(
    services: Services, context: AgentMemoryContext, messages: Sequence[DigestMessage]
) -> list[SummaryLine]:
    """Dated, unless all was said on one day, which the heading names."""
    names, zone = services.people.of(context.tenant_key), services.settings.zone
    days = {_day(one, zone) for one in messages}

    def line(one: DigestMessage) -> SummaryLine:
        day = _day(one, zone) if len(days) > 1 else ""
        if one.card:
            text = from_card(one.content, names.known, unescape=markup.unescape)
            return SummaryLine("Bot", text, day, by_bot=True)
        text = _IMAGE.sub("[image]", one.content)
        return SummaryLine(one.author or names.name(one.author_id or ""), text, day)

    with_words = [one for one in messages if one.content.strip()]
    return [line(one) for one in with_words if not _is_command(one)] or list(map(line, with_words))


def _day(one: DigestMessage, zone: ZoneInfo) -> str:
    return f"{datetime.fromtimestamp(one.at_ms / 1000, zone):%Y-%m-%d}"


def _is_command(one: DigestMessage) -> bool:
    words = without_address(one.content)
    return not one.card and bool(parse_command(words) or command_meant(words))


async def _write_digest(services: Services, lines: Sequence[SummaryLine]) -> tuple[str, str]:
    """The digest, and the key of the text that says why no model wrote it, or ""."""
    if services.summarise is extractive_summary:
        return await choose_lines(lines), "without-model"
    with noting_failures() as failures:
        text = await _by_model(services, lines)
    if not failures:
        return text, ""
    metrics.note_for_log(model_failed=failures[0])
    return await choose_lines(lines), "model-failed"


async def choose_lines(lines: Sequence[SummaryLine]) -> str:
    """Rules cannot tell that the bot repeats what people said, or apologises, so only people's
    lines count, without the errands that the bot did."""
    by_people = [line for line in lines if not line.by_bot]
    errands = {
        line
        for line, answer in pairwise(lines)
        if answer.by_bot and is_errand(without_address(line.text))
    }
    telling = [line for line in by_people if line not in errands]
    return await extractive_summary("", telling or by_people or lines)


async def _by_model(services: Services, lines: Sequence[SummaryLine]) -> str:
    """The newest are told where there is too much to read in time."""
    parts, remaining_lines, text = [], list(lines), ""
    while remaining_lines:
        parts.append(first_batch(remaining_lines))
        remaining_lines = remaining_lines[len(parts[-1]) :]
    try:
        async with asyncio.timeout(_MODEL_TIMEOUT_S):
            for part in parts[-_MOST_BATCHES:]:
                text = await services.summarise(text, part)
    except TimeoutError:
        note_failure("timeout")
    return text


@dataclass(frozen=True, slots=True)
class DigestSpan:
    """What a digest tells of: a time (both ends aware), or in it the thread `root`."""

    since: datetime
    until: datetime
    root: str | None = None


@dataclass(frozen=True, slots=True)
class GatheredMessages:
    """What was said, oldest first. `extent`: all of it, the newest of it, or only what the bot
    heard; `wordless`: how many messages besides have no words, such as stickers and voice."""

    messages: tuple[DigestMessage, ...]
    extent: Extent = "all"
    wordless: int = 0


async def gather_messages(
    services: Services, context: AgentMemoryContext, span: DigestSpan
) -> GatheredMessages:
    """What there is to tell. Raises `StoreError`."""
    material = await _gather_messages(services, context, span)
    answers = [one.message_id for one in material.messages if one.card]
    if services.access is None or not answers:
        return material
    hidden_ids = await SourceDocumentCheck(services, context).untellable(answers)
    return replace(
        material,
        messages=tuple(one for one in material.messages if one.message_id not in hidden_ids),
    )


async def _gather_messages(
    services: Services, context: AgentMemoryContext, span: DigestSpan
) -> GatheredMessages:
    span = await _as_far_as_told(services, context, span)
    digests = DigestStore(services.rpc)
    stored_messages = await digests.material(
        context, since=span.since, until=span.until, root=span.root
    )
    if context.chat_type == "p2p":
        return GatheredMessages(
            stored_messages, "newest" if len(stored_messages) >= MOST_DIGEST_MESSAGES else "all"
        )
    if services.settings.sharing != "chat" or await is_still_refused(
        services.feishu, services.denials, _API, "group"
    ):
        return GatheredMessages(stored_messages, "heard")
    try:
        async with asyncio.timeout(_LISTING_TIMEOUT_S):
            raw_messages, whole = await _list_messages(services, context, span)
            others = await _unaddressed_messages(services, context, raw_messages, digests)
    except (TimeoutError, FeishuFailure) as exc:
        if isinstance(exc, FeishuError) and not exc.action.is_of_one_call:
            services.denials.note(_API, "group", exc)
        log.info("digest.not_listed", error=type(exc).__name__)
        return GatheredMessages(stored_messages, "heard")
    services.denials.allow(_API, "group")
    stored_ids = {one.message_id for one in stored_messages}
    new = [one for one in others if one.message_id not in stored_ids]
    messages = sorted(
        (*stored_messages, *(one for one in new if one.content.strip())), key=lambda one: one.at_ms
    )
    wordless = sum(not one.content.strip() for one in new)
    whole = (
        whole
        and len(messages) <= MOST_DIGEST_MESSAGES
        and len(stored_messages) < MOST_DIGEST_MESSAGES
    )
    return GatheredMessages(
        tuple(messages[-MOST_DIGEST_MESSAGES:]), "all" if whole else "newest", wordless
    )


async def _as_far_as_told(
    services: Services, context: AgentMemoryContext, span: DigestSpan
) -> DigestSpan:
    """The span without what newcomers do not see, where the chat says so."""
    rules = await ChatConversations(services.rpc, context).rules(services.settings)
    visible_since = datetime.fromtimestamp(rules.told_since_ms / 1000, span.since.tzinfo)
    return replace(span, since=max(span.since, visible_since))


async def _list_messages(
    services: Services, context: AgentMemoryContext, span: DigestSpan
) -> tuple[list[RawMessage], bool]:
    """What Feishu lists of it, and whether that is all. A thread that began earlier is not found by
    its chat's list."""
    since_ms, until_ms = span.since.timestamp() * 1000, span.until.timestamp() * 1000
    if span.root:
        root = await services.feishu.get_message(span.root, user_card_content=True)
        thread = root[0].thread_id if root else ""
        raw_messages = (
            await _list_thread(services, thread, MOST_DIGEST_MESSAGES) if thread else list(root)
        )
        return [raw for raw in raw_messages if raw.create_time_ms >= since_ms], len(
            raw_messages
        ) < MOST_DIGEST_MESSAGES
    main = await services.feishu.list_messages(
        "chat",
        context.chat_id,
        start_s=int(span.since.timestamp()),
        end_s=int(span.until.timestamp()) + 1,
        descending=True,
        max_items=MOST_DIGEST_MESSAGES,
        user_card_content=True,
    )
    threads = list(dict.fromkeys(raw.thread_id for raw in main if raw.thread_id))
    whole = len(main) < MOST_DIGEST_MESSAGES and len(threads) <= _MOST_THREADS
    under: list[RawMessage] = []
    for thread in threads[:_MOST_THREADS]:
        newest = await _list_thread(services, thread, _MOST_OF_A_THREAD)
        whole = whole and len(newest) < _MOST_OF_A_THREAD
        under += newest
    return [raw for raw in (*main, *under) if since_ms <= raw.create_time_ms <= until_ms], whole


async def _list_thread(services: Services, thread_id: str, most: int) -> list[RawMessage]:
    """The newest of it, newest first."""
    return await services.feishu.list_messages(
        "thread", thread_id, descending=True, max_items=most, user_card_content=True
    )


async def _unaddressed_messages(
    services: Services,
    context: AgentMemoryContext,
    raw_messages: Sequence[RawMessage],
    digests: DigestStore,
) -> list[DigestMessage]:
    """What people said among themselves and did not have forgotten."""
    bot = await services.own_person.look_up()
    talk = {
        raw.message_id: raw
        for raw in raw_messages
        if not raw.deleted
        and raw.sender_type == "user"
        and raw.message_type != "system"  # such as who joined
        and not any(mention.open_id == bot.open_id for mention in raw.mentions)
    }
    people = {raw.sender_id for raw in talk.values()}
    names = services.people.of(context.tenant_key)
    await names.look_up(people)
    messages = _as_chat_messages(talk.values(), names.known, names.name)
    gone_ids = await digests.gone_ids(messages)
    return [one for one in messages if one.message_id not in gone_ids]


def _as_chat_messages(
    talk: Iterable[RawMessage], names: Mapping[str, str], name: Callable[[str], str]
) -> list[DigestMessage]:
    """As stored messages are; without text where there are no words."""
    return [
        DigestMessage(
            raw.message_id,
            name(raw.sender_id),
            raw.sender_id,
            "" if (text := message_text(raw, names)).strip() in _WORDLESS else text,
            raw.create_time_ms,
            card=False,
        )
        for raw in talk
    ]


def heading(
    start: datetime, until: datetime, count: int, language: Language, *, of_thread: bool
) -> str:
    key = "heading-of-thread" if of_thread else "heading"
    return say(key, language, span=_span(start, until, language), n=count)


def _span(start: datetime, until: datetime, language: Language) -> str:
    """“23 Nov, 09:00–18:00”."""
    if start.date() == until.date():
        day = times.day_text(start, language, now=until)
        return say("span-of-day", language, day=day, since=f"{start:%H:%M}", until=f"{until:%H:%M}")
    since_said, until_said = (times.moment_text(at, language, now=until) for at in (start, until))
    return say("span", language, since=since_said, until=until_said)


def chosen_lines(text: str, language: Language, now: datetime) -> str:
    """Lines `- 2026-11-24 Alice: …`, with or without the day, as people write them."""

    def label(line: re.Match[str]) -> str:
        key = "line-of-day" if line["day"] else "line"
        at = datetime.fromisoformat(line["day"] or "2000-01-01")
        day = times.day_text(at, language, now=now)
        return say(key, language, day=day, name=line["name"])

    return _CHOSEN_LINE.sub(label, text)


def limit_notes(seen_part: str, wordless: int, language: Language, *, follows: bool) -> list[str]:
    """What the digest does not know. `follows`: the bot follows the talk of groups at all."""
    keys = {"heard": "only-heard" if follows else "only-to-me", "newest": "only-newest"}
    lines = [say(keys[seen_part], language)] if seen_part in keys else []
    return lines + ([say("without-words", language, n=wordless)] if wordless else [])


def attachment_line(lines: Iterable[tuple[str, str]], language: Language) -> str:
    """“📎 plan.pdf (Bob), 2 pictures”, of what people wrote as (name, text); "" where there is
    nothing of the kind."""
    files, pictures = dict[str, str](), 0
    for name, text in lines:
        pictures += text.count("[image]")
        files |= dict.fromkeys(_FILE.findall(text), name)
    file_lines = [say("file-by", language, file=file, name=name) for file, name in files.items()]
    more = [f"+{len(file_lines) - _MOST_FILES}"] if len(file_lines) > _MOST_FILES else []
    images = [say("pictures", language, n=pictures)] if pictures else []
    parts = [*file_lines[:_MOST_FILES], *more, *images]
    return f"📎 {join_list(parts, language)}" if parts else ""
