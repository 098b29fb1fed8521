"""Filters and sort orders of records/search (open.feishu.cn, bitable-v1, record-filter-guide)."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from sandbox.errors import ApiError

Record = dict[str, Any]
Row = tuple[str, Record]  # with its id
MOST_CONDITIONS, MOST_VALUES = 50, 10
_NUMBER, _SINGLE, _MULTIPLE, _DATE, _CHECKBOX, _PERSON = 2, 3, 4, 5, 7, 11
_CHOICES = (_SINGLE, _MULTIPLE, _PERSON)
_ALL = ("is", "isNot", "contains", "doesNotContain", "isEmpty", "isNotEmpty")
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "isGreater": lambda have, wanted: bool(have > wanted),
    "isGreaterEqual": lambda have, wanted: bool(have >= wanted),
    "isLess": lambda have, wanted: bool(have < wanted),
    "isLessEqual": lambda have, wanted: bool(have <= wanted),
}
_OPERATORS = {
    _DATE: ("is", "isEmpty", "isNotEmpty", "isGreater", "isLess"),
    _CHECKBOX: ("is",),
    _NUMBER: ("is", "isNot", "isEmpty", "isNotEmpty", *_ORDER),
}
_DAY = timedelta(days=1)
# The first and the last day that a word stands for, given today.
_DAYS: dict[str, Callable[[date], tuple[date, date]]] = {
    "Today": lambda day: (day, day),
    "Tomorrow": lambda day: (day + _DAY, day + _DAY),
    "Yesterday": lambda day: (day - _DAY, day - _DAY),
    "CurrentWeek": lambda day: _week(day),
    "LastWeek": lambda day: _week(day - 7 * _DAY),
    "CurrentMonth": lambda day: _month(day),
    "LastMonth": lambda day: _month(day.replace(day=1) - _DAY),
    "TheLastWeek": lambda day: (day - 6 * _DAY, day),
    "TheNextWeek": lambda day: (day, day + 6 * _DAY),
    "TheLastMonth": lambda day: (day - 29 * _DAY, day),
    "TheNextMonth": lambda day: (day, day + 29 * _DAY),
}
_SINGLE_DAYS = ("ExactDate", "Today", "Tomorrow", "Yesterday")


class RecordSearch:
    """Finds records by fields of these types (`{name: number}`); days begin in `zone`."""

    def __init__(self, types: dict[str, int], zone: str, now_ms: int) -> None:
        self._types, self._zone = types, ZoneInfo(zone)
        self._today = self._day(now_ms)

    def matching(self, rows: list[Row], wanted: Any) -> list[Row]:
        """Those that `filter` lets through. Raises ApiError 1254018 for a malformed one."""
        test = self._group(wanted, nested=False)
        return [one for one in rows if test(one[1])]

    def ordered(self, rows: list[Row], sort: Any) -> list[Row]:
        """In the order of `sort`, those without a value last. Raises ApiError 1254016."""
        if not isinstance(sort, list) or not all(isinstance(one, dict) for one in sort):
            raise ApiError(1254016, "InvalidSort", status=200)
        for key in reversed(sort):
            name, desc = key.get("field_name"), key.get("desc", False)
            if name not in self._types or not isinstance(desc, bool):
                raise ApiError(1254016, "InvalidSort", status=200)
            filled = [one for one in rows if not _is_empty(one[1].get(name))]
            empty = [one for one in rows if _is_empty(one[1].get(name))]
            rows = sorted(filled, key=_value_of(name), reverse=desc) + empty
        return rows

    def _group(self, wanted: Any, *, nested: bool) -> Callable[[Record], bool]:
        """`conditions` joined by `conjunction`; one level of `children` beside them."""
        if not isinstance(wanted, dict) or wanted.get("conjunction") not in ("and", "or"):
            raise _invalid()
        conditions, children = wanted.get("conditions") or [], wanted.get("children") or []
        if not isinstance(conditions, list) or not isinstance(children, list):
            raise _invalid()
        if len(conditions) > MOST_CONDITIONS or (nested and children):
            raise _invalid()
        tests = [self._condition(one) for one in conditions]
        tests += [self._group(one, nested=True) for one in children]
        joined = all if wanted["conjunction"] == "and" else any
        return lambda record: not tests or joined(test(record) for test in tests)

    def _condition(self, wanted: Any) -> Callable[[Record], bool]:
        if not isinstance(wanted, dict) or wanted.get("field_name") not in self._types:
            raise _invalid()
        name, operator, values = wanted["field_name"], wanted.get("operator"), wanted.get("value")
        kind = self._types[name]
        if operator not in _OPERATORS.get(kind, _ALL) or not _is_texts(values):
            raise _invalid()
        if operator in ("isEmpty", "isNotEmpty"):
            if values:
                raise _invalid()
            return lambda record: _is_empty(record.get(name)) == (operator == "isEmpty")
        if not values or (len(values) > 1 and kind not in (*_CHOICES, _DATE)):
            raise _invalid()
        if len(values) > 1 and kind in _CHOICES and operator in ("is", "isNot"):
            raise _invalid()
        test = self._test(kind, operator, values)
        return lambda record: test(record.get(name))

    def _test(self, kind: int, operator: str, values: list[str]) -> Callable[[Any], bool]:
        if kind == _DATE:
            return self._date_test(operator, values)
        if kind == _CHECKBOX:
            return lambda value: str(bool(value)).lower() == values[0]
        if operator in _ORDER:
            limit, holds = _number(values[0]), _ORDER[operator]
            return lambda value: not _is_empty(value) and holds(value, limit)
        negated = operator in ("isNot", "doesNotContain")
        if kind in _CHOICES:
            has = _chosen if operator in ("is", "isNot") else _among
            return lambda value: has(value, values) != negated
        if operator in ("is", "isNot"):
            wanted = _number(values[0]) if kind == _NUMBER else values[0]
            return lambda value: bool(value == wanted) != negated
        return lambda value: (values[0] in str(value or "")) != negated

    def _date_test(self, operator: str, values: list[str]) -> Callable[[Any], bool]:
        word, exact = values[0], values[0] == "ExactDate"
        if len(values) != 1 + exact or (operator != "is" and word not in _SINGLE_DAYS):
            raise _invalid()
        if exact:
            first = last = self._day(int(_number(values[1])))
        elif word in _DAYS:
            first, last = _DAYS[word](self._today)
        else:
            raise _invalid()

        def test(value: Any) -> bool:
            if _is_empty(value):
                return False
            day = self._day(value)
            return first <= day <= last if operator == "is" else _ORDER[operator](day, first)

        return test

    def _day(self, moment_ms: int) -> date:
        try:
            return datetime.fromtimestamp(moment_ms / 1000, UTC).astimezone(self._zone).date()
        except (OverflowError, ValueError, OSError):
            raise _invalid() from None


def _value_of(name: str) -> Callable[[Row], Any]:
    return lambda row: row[1][name]


def _week(day: date) -> tuple[date, date]:
    """Monday and Sunday."""
    monday = day - day.weekday() * _DAY
    return monday, monday + 6 * _DAY


def _month(day: date) -> tuple[date, date]:
    first = day.replace(day=1)
    return first, (first + 31 * _DAY).replace(day=1) - _DAY


def _chosen(value: Any, wanted: list[str]) -> bool:
    """True if the choices made are the wanted ones, no more and no less."""
    return _choices(value) == set(wanted)


def _among(value: Any, wanted: list[str]) -> bool:
    """True if a choice made is among the wanted ones."""
    return not _choices(value).isdisjoint(wanted)


def _choices(value: Any) -> set[str]:
    if _is_empty(value):
        return set()
    return set(value) if isinstance(value, list) else {value}


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or value == []


def _is_texts(values: Any) -> bool:
    texts = isinstance(values, list) and all(isinstance(one, str) for one in values)
    return texts and len(values) <= MOST_VALUES


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise _invalid() from None


def _invalid() -> ApiError:
    return ApiError(1254018, "InvalidFilter", status=200)
