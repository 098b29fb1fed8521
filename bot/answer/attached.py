"""The text of the files that came with a question, as quotations; or why a file was not read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from bot.agents.quotation import quotation, remark
from bot.feishu.content import Attachment
from bot.feishu.errors import FeishuFailure, ResourceTooLarge
from bot.files.names import safe_name
from bot.files.reading import Limits, Read, Reason, Unread, is_readable
from bot.files.sentences import MOST_FILES, not_read
from bot.services import Services
from bot.settings import Settings
from memory.tokens import estimate_tokens

log = structlog.get_logger()

_LOADED_WITHIN_S = 10.0
_CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Files:
    """`parts` stand before the question and cost about `tokens`; `unread` gave no text."""

    parts: tuple[str, ...] = ()
    tokens: int = 0
    unread: tuple[tuple[str, Reason], ...] = ()


def limits_of(settings: Settings) -> Limits:
    """What a file may be and cost."""
    characters = settings.file_token_budget * _CHARACTERS_A_TOKEN
    return Limits(settings.file_max_mb, settings.file_seconds, characters)


async def attached_files(services: Services, files: Sequence[tuple[str, Attachment]]) -> Files:
    """What is in `files`, pairs of message_id and attachment: at once, and in their order."""
    if not files:
        return Files()
    limits, given = limits_of(services.settings), list(dict.fromkeys(files))
    read = await asyncio.gather(
        *(_read(services, *pair, limits) for pair in given[:MOST_FILES]),
    )
    parts, unread, tokens = [], [], 0
    for (_, one), result in zip(given, [*read, *[Unread("many")] * len(given)], strict=False):
        name = safe_name(one.name)
        if isinstance(result, Unread):
            unread.append((name, result.reason))
            why = not_read(name, result.reason, limits, "en")
            parts.append(remark(f"{why} You know its name only, not what is in it: say so"))
            continue
        part = _quoted(name, result, services.settings.file_token_budget - tokens)
        tokens += estimate_tokens(part)
        parts.append(part)
    return Files(tuple(parts), tokens, tuple(unread))


async def _read(
    services: Services, message_id: str, file: Attachment, limits: Limits
) -> Read | Unread:
    most = limits.megabytes * 1024 * 1024
    if not most:
        return Unread("off")
    if not is_readable(file.name):  # nothing is loaded for it
        return Unread("kind")
    if file.size is not None and file.size > most:
        return Unread("size")
    try:
        async with asyncio.timeout(_LOADED_WITHIN_S):
            data = await services.feishu.download_resource(message_id, file.key, "file", most)
    except ResourceTooLarge:
        return Unread("size")
    except (TimeoutError, FeishuFailure) as exc:
        log.info("incoming.file_unavailable", error=type(exc).__name__)
        return Unread("unavailable")
    return await services.files.read(file.name, data, limits)


def _quoted(name: str, read: Read, budget_tokens: int) -> str:
    """The text as far as it fits; the model is told where it ends."""
    cost = max(1, estimate_tokens(read.text))
    fits = cost <= budget_tokens
    text = read.text if fits else read.text[: len(read.text) * max(budget_tokens, 0) // cost]
    whole = "" if fits and not read.cut else ", its beginning only: say so where it matters"
    return quotation(f'Text of the file "{name}"{whole}', text, longest=len(text))
