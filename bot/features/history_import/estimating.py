"""How much there is to import, from one page of the history at each of ten dates; nothing is kept.

The dates are spread evenly. What a page shows is taken for how much was said until the next date.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bot.features.history_import.standing import seconds_a_page
from bot.feishu.client import FeishuClient
from bot.feishu.models import HistoryPage
from bot.services import Services
from memory.tables.imports import Chat

DATES = 10
_PER_PAGE = 50


@dataclass(frozen=True, slots=True)
class Estimate:
    """How many messages an import would read, in how many minutes and pages; `oldest_ms` is when
    the first was sent, ms since epoch, None where there is none."""

    messages: int
    minutes: int
    oldest_ms: int | None
    pages: int


@dataclass(frozen=True, slots=True)
class Sample:
    """The page of one date: when its messages were sent, ms since epoch, oldest first; `at_ms` is
    the date; `is_last`: nothing was said after it; `threads`: how many messages begin one;
    `position`: the number of the first in the chat, 0 where Feishu does not tell it."""

    at_ms: int
    sent_ms: tuple[int, ...]
    is_last: bool
    threads: int = 0
    position: int = 0


async def estimate(services: Services, chat: Chat, since_ms: int | None, until_ms: int) -> Estimate:
    """What an import of `chat` would bring. Raises `FeishuFailure`; see `refusals`."""
    samples = await look_at_dates(services.feishu, chat[1], since_ms, until_ms)
    return extrapolated(samples, until_ms, seconds_a_page(services.settings))


async def look_at_dates(
    feishu: FeishuClient, chat_id: str, since_ms: int | None, until_ms: int
) -> list[Sample]:
    """A page at each date that has to be looked at. Raises `FeishuFailure`."""
    at_ms, samples = since_ms or 0, list[Sample]()
    for number in range(DATES):
        page = await feishu.history_page(
            "chat",
            chat_id,
            start_s=at_ms // 1000 if at_ms else None,
            end_s=math.ceil(until_ms / 1000),
        )
        sample = _sample(page, at_ms, until_ms)
        if number == 0 and sample.sent_ms:
            at_ms = sample.sent_ms[0]
            sample = _sample(page, at_ms, until_ms)
        samples.append(sample)
        following = next_date(samples, until_ms)
        if following is None:
            break
        at_ms = following
    return samples


def next_date(samples: Sequence[Sample], until_ms: int) -> int | None:
    """The next date to look at, ms since epoch; None: all is known, or enough. Dates that a page
    reaches beyond need not be looked at."""
    first, last = samples[0], samples[-1]
    if last.is_last or not last.sent_ms:
        return None
    step = max((until_ms - first.at_ms) / DATES, 1)
    number = math.floor((max(last.sent_ms[-1], last.at_ms) - first.at_ms) / step) + 1
    return first.at_ms + math.ceil(number * step) if number < DATES else None


def extrapolated(samples: Sequence[Sample], until_ms: int, page_s: float) -> Estimate:
    """What the pages say of all. The numbers of two messages tell how many lie between them.
    Without them a page is exact as far as it reaches, and goes on so until the next date.
    `page_s`: how long a page takes, in seconds."""
    messages = threads = 0.0
    for sample, following in zip(samples, [*samples[1:], None], strict=True):
        message_count = _until(sample, following.at_ms if following else until_ms)
        if following and 0 < sample.position <= following.position:
            message_count = following.position - sample.position
        messages += message_count
        threads += message_count * sample.threads / max(len(sample.sent_ms), 1)
    pages = math.ceil(messages / _PER_PAGE) + round(threads)
    oldest = samples[0].sent_ms[0] if samples and samples[0].sent_ms else None
    return Estimate(round(messages), math.ceil(pages * page_s / 60), oldest, pages)


def _until(sample: Sample, end_ms: int) -> float:
    if sample.is_last or not sample.sent_ms or sample.sent_ms[-1] >= end_ms:
        return sum(sent < end_ms for sent in sample.sent_ms)
    covered_ms = max(sample.sent_ms[-1] - sample.at_ms, 1)
    return len(sample.sent_ms) * max((end_ms - sample.at_ms) / covered_ms, 1)


def _sample(page: HistoryPage, at_ms: int, until_ms: int) -> Sample:
    inside = [one for one in page.messages if at_ms <= one.create_time_ms < until_ms]
    sent_times = tuple(sorted(one.create_time_ms for one in inside))
    threads = sum(bool(one.thread_id) for one in inside)
    position = inside[0].position if inside else 0
    return Sample(at_ms, sent_times, not page.next_token, threads, position)
