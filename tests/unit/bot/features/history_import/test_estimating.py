"""How well ten pages tell how much was said, over synthetic densities."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable

import pytest

from bot.features.history_import.importing import DATES, Estimate, Sample, extrapolate, next_date
from tests.support.rows import every_row

DAY = 86_400_000
BEGAN = 1_600_000_000_000
UNTIL = BEGAN + 730 * DAY
PAGE_S = 0.35


def sampled(times: list[int], *, numbered: bool = False) -> tuple[Estimate, int]:
    """The estimate, and how many pages were looked at."""
    samples: list[Sample] = []
    at_ms: int | None = times[0] if times else BEGAN
    while at_ms is not None:
        first = bisect_left(times, at_ms)
        sent = tuple(times[first : first + 50])
        is_last = first + 50 >= len(times)
        samples.append(Sample(at_ms, sent, is_last, 0, first + 1 if numbered else 0))
        at_ms = next_date(samples, UNTIL)
    return extrapolate(samples, UNTIL, PAGE_S), len(samples)


def moments(rng: random.Random, count: int, of_day: Callable[[float], float]) -> list[int]:
    """`count` times whose density over two years is `of_day`, by rejection."""
    times: list[int] = []
    while len(times) < count:
        day = rng.uniform(0, 730)
        if rng.random() < of_day(day):
            times.append(BEGAN + int(day * DAY))
    return sorted(times)


def at_work(day: float) -> float:
    return 1.0 if day % 7 < 5 and 9 / 24 < day % 1 < 18 / 24 else 0.02


def growing(day: float) -> float:
    return day / 730


def with_gaps(day: float) -> float:
    return 1.0 if int(day / 60) % 3 else 0.01


@every_row("count", [1_000, 10_000])
@every_row("of_day", [lambda _: 1.0, at_work, growing, with_gaps])
def test_the_estimate_is_of_the_right_order(count, of_day):
    errors = []
    for seed in range(7):
        estimate, pages = sampled(moments(random.Random(seed), count, of_day))
        assert pages <= DATES
        errors.append(estimate.messages / count)
    assert 0.4 < sorted(errors)[3] < 2.5


@every_row("of_day", [lambda _: 1.0, at_work, growing, with_gaps])
def test_where_feishu_numbers_the_messages_it_is_nearly_exact(of_day):
    times = moments(random.Random(1), 10_000, of_day)
    estimate, _ = sampled(times, numbered=True)
    assert estimate.messages == pytest.approx(10_000, rel=0.3)


@every_row("count", [0, 1, 49, 50])
def test_what_one_page_shows_is_exact(count):
    times = [BEGAN + number * DAY for number in range(count)]
    estimate, pages = sampled(times)
    assert estimate.messages == count
    assert estimate.oldest_ms == (times[0] if times else None)
    assert pages == 1


def test_dates_that_a_page_reaches_beyond_are_not_looked_at():
    times = [BEGAN + number * DAY * 5 for number in range(146)]
    estimate, pages = sampled(times)
    assert estimate.messages == pytest.approx(146, abs=1)
    assert pages == 3


def test_threads_cost_a_page_each():
    sample = Sample(BEGAN, tuple(BEGAN + n for n in range(50)), is_last=True, threads=10)
    estimate = extrapolate([sample], UNTIL, PAGE_S)
    assert (estimate.messages, estimate.pages, estimate.minutes) == (50, 11, 1)


def test_the_minutes_go_by_how_long_a_page_takes():
    sample = Sample(BEGAN, tuple(BEGAN + n for n in range(50)), is_last=True, threads=50)
    assert extrapolate([sample], UNTIL, 5.0).minutes == 5
