"""Filters and sort orders of a Base's records, as Feishu's guide describes them."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from sandbox.errors import ApiError
from sandbox.views.record_search import RecordSearch
from tests.support.rows import every_row

ZONE = "Asia/Shanghai"
TYPES = {"Text": 1, "Number": 2, "One": 3, "Many": 4, "Day": 5, "Tick": 7}


def ms(day, hour=0):
    return int(datetime(2026, 2, day, hour, tzinfo=ZoneInfo(ZONE)).timestamp() * 1000)


NOW = ms(11, 7)  # a Wednesday; in UTC it is still the 10th
ROWS = [
    ("a", {"Text": "red apple", "Number": 1, "One": "x", "Many": ["p", "q"], "Day": ms(11, 23)}),
    (
        "b",
        {"Text": "apple", "Number": 2.5, "One": "xy", "Many": ["p"], "Day": ms(10), "Tick": True},
    ),
    ("c", {"Text": "", "Number": 10, "One": "y", "Many": [], "Day": ms(1, 12), "Tick": False}),
    ("d", {}),
]
SEARCH = RecordSearch(TYPES, ZONE, NOW)


def one(name, operator, *value):
    return {"field_name": name, "operator": operator, "value": list(value)}


def both(*conditions, conjunction="and", **more):
    return {"conjunction": conjunction, "conditions": list(conditions), **more}


@every_row(
    "wanted, found",
    [
        (one("Text", "is", "apple"), "b"),
        (one("Text", "isNot", "apple"), "acd"),
        (one("Text", "contains", "app"), "ab"),
        (one("Text", "doesNotContain", "app"), "cd"),
        (one("Text", "isEmpty"), "cd"),
        (one("Text", "isNotEmpty"), "ab"),
        (one("Number", "is", "10.0"), "c"),
        (one("Number", "isGreater", "2.5"), "c"),
        (one("Number", "isGreaterEqual", "2.5"), "bc"),
        (one("Number", "isLess", "2.5"), "a"),
        (one("Number", "isLessEqual", "2.5"), "ab"),
        (one("One", "is", "x"), "a"),
        (one("One", "contains", "x", "y"), "ac"),
        (one("One", "doesNotContain", "x", "y"), "bd"),
        (one("Many", "is", "p"), "b"),
        (one("Many", "contains", "q", "z"), "a"),
        (one("Many", "isEmpty"), "cd"),
        (one("Tick", "is", "true"), "b"),
        (one("Tick", "is", "false"), "acd"),
        (one("Day", "is", "Today"), "a"),
        (one("Day", "is", "Yesterday"), "b"),
        (one("Day", "is", "CurrentWeek"), "ab"),
        (one("Day", "is", "CurrentMonth"), "abc"),
        (one("Day", "is", "LastMonth"), ""),
        (one("Day", "is", "TheLastWeek"), "ab"),
        (one("Day", "is", "TheNextMonth"), "a"),
        (one("Day", "is", "ExactDate", str(ms(1, 5))), "c"),
        (one("Day", "isGreater", "Yesterday"), "a"),
        (one("Day", "isLess", "ExactDate", str(ms(10, 5))), "c"),
    ],
)
def test_a_condition_finds(wanted, found):
    assert "".join(name for name, _ in SEARCH.matching(ROWS, both(wanted))) == found


@every_row(
    "wanted, found",
    [
        (both(), "abcd"),
        (both(one("Number", "isGreater", "1"), one("Tick", "is", "false")), "c"),
        (both(one("One", "is", "x"), one("Tick", "is", "true"), conjunction="or"), "ab"),
        (
            both(
                one("Number", "isGreater", "1"),
                children=[both(one("One", "is", "y"), one("One", "is", "x"), conjunction="or")],
            ),
            "c",
        ),
    ],
)
def test_conditions_are_joined(wanted, found):
    assert "".join(name for name, _ in SEARCH.matching(ROWS, wanted)) == found


@every_row(
    "wanted",
    [
        "CurrentValue.[Text]=1",
        {"conditions": []},
        both(conjunction="xor"),
        both("Text"),
        both(one("Gone", "is", "x")),
        both(one("Text", "like", "x")),
        both(one("Text", "isGreater", "x")),
        both(one("Text", "is")),
        both(one("Text", "is", 1)),
        both(one("Text", "is", "x", "y")),
        both(one("One", "is", "x", "y")),
        both(one("Text", "isEmpty", "x")),
        both({"field_name": "Text", "operator": "isEmpty"}),
        both(one("Number", "is", "many")),
        both(one("Day", "is", "Someday")),
        both(one("Day", "isNot", "Today")),
        both(one("Day", "isGreater", "CurrentWeek")),
        both(one("Day", "is", "ExactDate")),
        both(one("Day", "is", "ExactDate", "1e30")),
        both(children=[both(children=[both()])]),
        both(*[one("Text", "isEmpty")] * 51),
    ],
)
def test_a_malformed_filter_is_refused(wanted):
    with pytest.raises(ApiError) as refused:
        SEARCH.matching(ROWS, wanted)
    assert refused.value.code == 1254018


@every_row(
    "sort, order",
    [
        ([{"field_name": "Number"}], "abcd"),
        ([{"field_name": "Number", "desc": True}], "cbad"),
        ([{"field_name": "Text"}], "bacd"),
        ([{"field_name": "Tick", "desc": True}, {"field_name": "Number"}], "bcad"),
    ],
)
def test_records_are_sorted_and_those_without_a_value_come_last(sort, order):
    assert "".join(name for name, _ in SEARCH.ordered(ROWS, sort)) == order


@every_row(
    "sort", ["Number", ["Number"], [{"field_name": "Gone"}], [{"field_name": "Text", "desc": 1}]]
)
def test_a_malformed_sort_is_refused(sort):
    with pytest.raises(ApiError) as refused:
        SEARCH.ordered(ROWS, sort)
    assert refused.value.code == 1254016
