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
from tests.support.rows import every_row

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


def _from_to(first: tuple[int, int], last: tuple[int, int], year: int = 2026) -> tuple[date, date]:
    return date(year, *first), date(year, *last)


@every_row(
    ("question", "days"),
    [
        ("我5月4日说了什么？", _day(5, 4)),
        ("五月四号的天气怎么样", _day(5, 4)),
        ("十二月二十五日我们聊了什么", _day(12, 25, 2025)),
        ("2023年5月4日", _day(5, 4, 2023)),
        ("二〇二三年五月四日", _day(5, 4, 2023)),
        ("去年5月4日我在哪", _day(5, 4, 2025)),
        ("5月1日到3日我去了哪里", _from_to((5, 1), (5, 3))),
        ("上个月5号定的是什么", _day(10, 5)),
        ("4号那天我说了什么", _day(11, 4)),
        ("昨天我说了什么", _day(11, 20)),
        ("昨晚吃了什么", _day(11, 20)),
        ("前天", _day(11, 19)),
        ("大前天", _day(11, 18)),
        ("今天早上我问了什么", _day(11, 21)),
        ("三天前天气怎么样", _day(11, 18)),
        ("两周前提到的书", _from_to((11, 4), (11, 10))),
        ("一个月前", _from_to((10, 1), (10, 31))),
        ("上周我们决定了什么", _from_to((11, 9), (11, 15))),
        ("上周三的会", _day(11, 11)),
        ("上上周五", _day(11, 6)),
        ("这周二", _day(11, 17)),
        ("周三我说了什么", _day(11, 18)),
        ("上周末去哪了", _from_to((11, 14), (11, 15))),
        ("上个月", _from_to((10, 1), (10, 31))),
        ("三月份的计划", _from_to((3, 1), (3, 31))),
        ("去年", _from_to((1, 1), (12, 31), 2025)),
        ("前年5月", _from_to((5, 1), (5, 31), 2024)),
        ("2025 年 9 月签的合同", _from_to((9, 1), (9, 30), 2025)),
        ("2024 年定了什么", _from_to((1, 1), (12, 31), 2024)),
        ("2025 年第三季度", _from_to((7, 1), (9, 30), 2025)),
        ("去年二季度", _from_to((4, 1), (6, 30), 2025)),
        ("三季度的预算", _from_to((7, 1), (9, 30))),
        ("去年Q2定的", _from_to((4, 1), (6, 30), 2025)),
        ("上个季度", _from_to((7, 1), (9, 30))),
        ("最近三天", _from_to((11, 18), (11, 21))),
    ],
)
def test_chinese_dates_are_read(question: str, days: tuple[date, date]) -> None:
    assert _days(question) == days


@every_row(
    ("question", "days"),
    [
        ("What did I say on May 4?", _day(5, 4)),
        ("what happened on 4 May", _day(5, 4)),
        ("the 4th of May", _day(5, 4)),
        ("on May 4th, 2023", _day(5, 4, 2023)),
        ("Sept 5 2024", _day(9, 5, 2024)),
        ("2023-05-04", _day(5, 4, 2023)),
        ("on 2023/5/4", _day(5, 4, 2023)),
        ("on 13/5", _day(5, 13)),
        ("what did we decide yesterday?", _day(11, 20)),
        ("the day before yesterday", _day(11, 19)),
        ("three days ago", _day(11, 18)),
        ("two weeks ago", _from_to((11, 4), (11, 10))),
        ("a month ago", _from_to((10, 1), (10, 31))),
        ("last week", _from_to((11, 9), (11, 15))),
        ("the week before last", _from_to((11, 2), (11, 8))),
        ("last Tuesday", _day(11, 17)),
        ("on Monday", _day(11, 16)),
        ("last weekend", _from_to((11, 14), (11, 15))),
        ("last month", _from_to((10, 1), (10, 31))),
        ("in March", _from_to((3, 1), (3, 31))),
        ("May 2023", _from_to((5, 1), (5, 31), 2023)),
        ("in December", _from_to((12, 1), (12, 31), 2025)),
        ("last year", _from_to((1, 1), (12, 31), 2025)),
        ("in 2023", _from_to((1, 1), (12, 31), 2023)),
        ("in Q3 2025", _from_to((7, 1), (9, 30), 2025)),
        ("Q1 last year", _from_to((1, 1), (3, 31), 2025)),
        ("2025 Q4", _from_to((10, 1), (12, 31), 2025)),
        ("in Q4", _from_to((10, 1), (12, 31))),
        ("the second quarter of 2024", _from_to((4, 1), (6, 30), 2024)),
        ("last quarter", _from_to((7, 1), (9, 30))),
        ("in the last two weeks", _from_to((11, 7), (11, 21))),
    ],
)
def test_english_dates_are_read(question: str, days: tuple[date, date]) -> None:
    assert _days(question) == days


@every_row(
    "question",
    [
        "I may go",
        "May I ask you something?",
        "march on",
        "may 4 people join?",
        "5/4 of the people",
        "a ratio of 3/4",
        "五一去哪玩",
        "一号楼在哪",
        "坐3号线去吗",
        "开了五个月的店",
        "第二周三次",
        "每周三开会",
        "2月30日",
        "十二三号是谁值班",
        "十十月",
        "二三十号",
        "next Monday",
        "明天有什么安排",
        "2030年的目标",
        "a quarter of the people",
        "FAQ1 and Q7",
        "四个季度",
        "",
    ],
)
def test_what_is_no_past_date_gives_nothing(question: str) -> None:
    assert date_range(question, NOW) is None


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


@every_row("question", ["最近几天我说了什么", "have I said so recently?", "几天前"])
def test_lately_is_a_hint_and_not_a_date(question: str) -> None:
    found = date_range(question, NOW)

    assert found is not None
    assert found.fuzzy


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
