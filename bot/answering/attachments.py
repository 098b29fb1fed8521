"""The text of the files that came with a question, as quotations; or why a file was not read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from bot.agents.prompts.quotation import quotation, remark
from bot.answering.request_rate import asker_of
from bot.feishu.errors import FeishuFailure, ResourceTooLarge
from bot.feishu.resources import Attachment
from bot.files.reading import Read, ReadingLimits, Reason, Unread, is_readable
from bot.files.reading_slots import NoPlace
from bot.files.refusals import MOST_FILES, not_read
from bot.listening.turn_request import TurnRequest
from bot.process.working_places import waiting
from bot.services import Services
from bot.text.file_names import safe_name
from memory.tokens import estimate_tokens

log = structlog.get_logger()

_LOADED_WITHIN_S = 10.0
_CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Files:
    """`parts` stand before the question and cost about `tokens`; `unread` gave no text; `texts` are
    what was read, each with the message_id of its file."""

    parts: tuple[str, ...] = ()
    tokens: int = 0
    unread: tuple[tuple[str, Reason], ...] = ()
    texts: tuple[tuple[str, str], ...] = ()


def limits_of(services: Services) -> ReadingLimits:
    """What a file may be and cost."""
    settings = services.settings
    characters = settings.file_token_budget * _CHARACTERS_A_TOKEN
    return ReadingLimits(settings.file_max_mb, settings.file_seconds, characters)


async def attached_files(
    services: Services, request: TurnRequest, files: Sequence[tuple[str, Attachment]]
) -> Files:
    """What is in `files`, pairs of message_id and attachment, in their order. `request` asks."""
    if not files:
        return Files()
    limits, unique_files = limits_of(services), list(dict.fromkeys(files))
    with waiting():
        read = await asyncio.gather(
            *(_read(services, request, *pair, limits) for pair in unique_files[:MOST_FILES]),
        )
    parts, unread, texts, tokens = [], [], [], 0
    for (message_id, one), result in zip(
        unique_files, [*read, *[Unread("many")] * len(unique_files)], strict=False
    ):
        name = safe_name(one.name)
        if isinstance(result, Unread):
            unread.append((name, result.reason))
            why = not_read(name, result.reason, limits, "en")
            parts.append(remark(f"{why} You know its name only, not what is in it: say so"))
            continue
        part = _quoted(name, result, services.settings.file_token_budget - tokens)
        texts.append((message_id, result.text))
        tokens += estimate_tokens(part)
        parts.append(part)
    return Files(tuple(parts), tokens, tuple(unread), tuple(texts))


async def _read(
    services: Services,
    request: TurnRequest,
    message_id: str,
    file: Attachment,
    limits: ReadingLimits,
) -> Read | Unread:
    most = limits.megabytes * 1024 * 1024
    if not most:
        return Unread("off")
    if not is_readable(file.name):  # nothing is loaded for it
        return Unread("kind")
    if file.size is not None and file.size > most:
        return Unread("size")
    person = " ".join(asker_of(request))
    try:
        async with services.files.place(person, request.chat_id, limits):
            data = await _loaded(services, message_id, file.key, most)
            if isinstance(data, Unread):
                return data
            return await services.files.read(file.name, data, limits)
    except NoPlace:
        return Unread("busy")


async def _loaded(services: Services, message_id: str, key: str, most: int) -> bytes | Unread:
    try:
        async with asyncio.timeout(_LOADED_WITHIN_S):
            return await services.feishu.download_resource(message_id, key, "file", most)
    except ResourceTooLarge:
        return Unread("size")
    except (TimeoutError, FeishuFailure) as exc:
        log.info("incoming.file_unavailable", error=type(exc).__name__)
        return Unread("unavailable")


def _quoted(name: str, read: Read, budget_tokens: int) -> str:
    """The text as far as it fits; the model is told where it ends."""
    cost = max(1, estimate_tokens(read.text))
    fits = cost <= budget_tokens
    text = read.text if fits else read.text[: len(read.text) * max(budget_tokens, 0) // cost]
    whole = "" if fits and not read.cut else ", its beginning only: say so where it matters"
    remarks = "".join(f", {one}: say so where it matters" for one in read.remarks)
    return quotation(f'Text of the file "{name}"{whole}{remarks}', text, longest=len(text))
