"""Which time a question speaks of."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.recall import dates
from memory.recall.dates import date_range

SHANGHAI = ZoneInfo("Asia/Shanghai")
# A Saturday.
NOW = datetime(2026, 11, 21, 14, tzinfo=SHANGHAI)


def _days(question: str, now: datetime = NOW) -> tuple[date, date] | None:
    """First and last day of the span that is tried first."""
    found = date_range(question, now)
    if found is None:
        return None
    span = found.spans[0]
    return span.since.date(), (span.until - timedelta(days=1)).date()


def _day(month: int, day: int, year: int = 2026) -> tuple[date, date]:
    return date(year, month, day), date(year, month, day)


def test_a_date_without_a_year_is_tried_from_the_latest_year_back() -> None:
    found = date_range("5月4日", NOW)

    assert found is not None
    assert [span.since.year for span in found.spans] == [2026, 2025, 2024, 2023, 2022]


def test_the_29th_of_february_is_looked_for_in_leap_years_only() -> None:
    found = date_range("2月29日", NOW)

    assert found is not None
    assert [span.since.year for span in found.spans] == [2024]


def test_an_ambiguous_date_is_tried_month_first() -> None:
    found = date_range("on 5/4", NOW)

    assert found is not None
    assert [span.since.date() for span in found.spans[:3]] == [
        date(2026, 5, 4),
        date(2026, 4, 5),
        date(2025, 5, 4),
    ]


def test_the_day_is_the_one_where_the_person_is() -> None:
    after_midnight = datetime(2026, 11, 21, 0, 30, tzinfo=SHANGHAI)

    assert _days("昨天", after_midnight) == _day(11, 20)
    assert _days("昨天", after_midnight.astimezone(UTC)) == _day(11, 19)
    found = date_range("yesterday", after_midnight)
    assert found is not None
    assert found.spans[0].since == datetime(2026, 11, 19, 16, tzinfo=UTC)


def test_an_exact_date_wins_over_a_relative_one() -> None:
    assert _days("昨天你说5月4日的会议取消了") == _day(5, 4)


_WORDS = st.sampled_from(
    [
        *"5 12 31 月 日 号 年 上 周 三 天 前 / - May ago last week on 的 2023 两 个 零 十".split(),
        " ",
    ]
)


@given(st.lists(_WORDS, max_size=14).map("".join))
def test_any_text_gives_aware_spans_that_have_begun_or_nothing(question: str) -> None:
    found = date_range(question, NOW)

    for span in found.spans if found else ():
        assert span.since < span.until
        assert span.since <= NOW


_LOOKS_AROUND = re.compile(r"\(\?<?[=!](?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")


@pytest.mark.parametrize("rule", dates._RULES, ids=lambda rule: rule.pattern.pattern[:30])
@settings(max_examples=10)
@given(data=st.data())
def test_no_rule_reads_what_is_not_looked_at(rule: dates._Rule, data: st.DataObject) -> None:
    reads = re.compile(_LOOKS_AROUND.sub("", rule.pattern.pattern), re.IGNORECASE)
    assert dates._may_speak_of_a_time(data.draw(st.from_regex(reads, fullmatch=True)))
