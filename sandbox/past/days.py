"""The days of a past. It may be moved by whole weeks, so that it ends today; then the dates in its
texts move too. Pure."""

import re
from datetime import UTC, date, datetime, timedelta, timezone

LAST_DAY = "2026-06-30"
ZONE = timezone(timedelta(hours=8))
WEEK_MS = 7 * 86_400_000
_DATE = re.compile(r"\{(\d{4}-\d\d-\d\d):([^}]*)\}")
_UNIT = re.compile(r"\b[DdMm]\b")
_MONTHS = (
    "January February March April May June July August September October November December".split()
)


def moment(day: str, time: str) -> int:
    """Ms since the epoch of a day and a time of day in `ZONE`."""
    return int(datetime.fromisoformat(f"{day}T{time}").replace(tzinfo=ZONE).timestamp() * 1000)


def day_of(at_ms: int) -> str:
    """The ISO day of a moment in `ZONE`."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(ZONE).date().isoformat()


def moved_ms(ends_ms: int) -> int:
    """By how much a past is moved that is to end at or before `ends_ms`, in whole weeks."""
    return (ends_ms - moment(LAST_DAY, "19:00")) // WEEK_MS * WEEK_MS


def with_dates(text: str, by_ms: int) -> str:
    """The text with its dates moved: `{2025-03-18:the D of M}` becomes “the 18th of March”."""
    days = timedelta(milliseconds=by_ms)

    def told(found: re.Match[str]) -> str:
        day = date.fromisoformat(found[1]) + days
        units = {
            "D": _ordinal(day.day),
            "d": str(day.day),
            "M": _MONTHS[day.month - 1],
            "m": str(day.month),
        }
        return _UNIT.sub(lambda unit: units[unit[0]], found[2])

    return _DATE.sub(told, text)


def _ordinal(day: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{'th' if 11 <= day <= 13 else ending}"
