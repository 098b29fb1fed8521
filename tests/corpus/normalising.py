"""Replaces what differs from run to run by placeholders: ids, times, dates. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

_PLAIN = (
    "ms",
    "seconds",
    "origin",
    "port",
    "zone",
    "weekday",
    "took",
    "code",
    "cut",
    "ago",
    "bare",
    "row",
    "receipt",
)

# Sources are told apart by their minute.
_SOURCE = r"<day\+0>[^,、<]*<now>[^,、\"]*"
_SOURCES = re.compile(rf"{_SOURCE}(?:(?P<comma>, |、){_SOURCE})+")

# Read messages are stored in the order of their ids, which are random.
_READ = re.compile(r'(?<="read_messages":\[)[^\]]+')

# The local time of an offer goes by the hour of the run.
_LOCAL = re.compile(r'(?<="kind":"proactive",)(?P<before>[^}]*"local_at":")[^"]*')

# Times within this distance of the clock are "now".
_NEAR = timedelta(minutes=4)
_HOUR_OF_DAY = 12

_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_MONTH = rf"(?:{'|'.join(_MONTHS)})[a-z]*"
_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d(?::?\d\d)?)?"
_PATTERN = re.compile(
    "|".join(
        f"(?P<{name}>{pattern})"
        for name, pattern in {
            "origin": r"http://127\.0\.0\.1:\d+",
            "port": r"127\.0\.0\.1:\d+",
            "zone": r"Etc(?:/|&#47;)GMT(?:[+-]|&#4[35];)?\d*"
            r"|\b(?:UTC|GMT)[+-]\d+(?::\d\d)?|(?<=\()[+-]\d\d(?=, UTC)",
            "id": r"(?<![A-Za-z0-9])(?:om|oc|ou|omt|on|evt|img|file|note|timer|call|aud|st)"
            r"_[A-Za-z0-9_-]{6,}",
            "code": r"(?<=user_code=)[0-9A-F]{4}-[0-9A-F]{4}",
            "row": r"(?<=forgotten:)\d+|(?<=\"id\":\")\d+(?=\",\"key\")"
            r"|(?<=\[)\d+(?=-[0-9a-f]{8} ·)",
            "cut": r"(?<=/docx/)[0-9a-f]{1,26}(?=…)",
            "bare": r'(?<=noteid\\": \\")note\w+',  # in the summary of a card
            "ago": r"\b\d+ seconds ago",
            "receipt": r"\bR\d+ · (?:[0-9a-f]{8}…)?",
            "uuid": r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b",
            "hex": r"(?<![A-Za-z0-9])[0-9a-f]{16,64}(?![A-Za-z0-9])",
            "token": r"(?<![\w-])(?=[\w-]*[A-Z])(?=[\w-]*[a-z])[A-Za-z0-9_-]{22}"
            r"(?![\w-])",
            "wiki": r"\bwik[0-9a-f]{24}\b",
            "ms": r"(?<![\w.])1[789]\d{11}(?!\w)",
            "seconds": r"(?<![\w.])1[789]\d{8}(?!\w)",
            "number": r"(?<![\w.])7\d{18}(?!\w)",
            "iso": _ISO,
            "day": r"\b\d{4}-\d\d-\d\d\b",
            "zh": r"(?:\d{4} ?年 ?)?\d{1,2} ?月 ?\d{1,2} ?日",
            "en": rf"\b(?:\d{{1,2}} {_MONTH}|{_MONTH} \d{{1,2}})\b(?:,? \d{{4}}\b)?",
            "weekday": r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b"
            r"|\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b|(?:星期|周)[一二三四五六日天]",
            "clock": r"(?<![\d:.])\d\d:\d\d(?::\d\d)?(?!:?\d)",
            "took": r"Took \d+(?:\.\d+)? s\b|under 1 s\b|用时 ?\d+(?:\.\d+)? ?秒|不到 ?1 ?秒"
            r"|(?<=\"content\":\")\d+(?:\.\d+)? ?(?:s|秒)(?=[\" ])",
        }.items()
    )
)


def _without_repeats(found: re.Match[str]) -> str:
    return found["comma"].join(dict.fromkeys(found[0].split(found["comma"])))


def _in_order(found: re.Match[str]) -> str:
    return ",".join(sorted(found[0].split(",")))


def noon_zone(now: datetime) -> ZoneInfo:
    """The zone in which it is between noon and one o'clock, far from any midnight."""
    ahead = (_HOUR_OF_DAY - now.astimezone(UTC).hour + 12) % 24 - 12
    return ZoneInfo("Etc/GMT" if not ahead else f"Etc/GMT{-ahead:+d}")


class Placeholders:
    """The placeholders of one scene. An id is named after the step in which it first appears, so
    that one more id in a step leaves the names of all later steps alone."""

    def __init__(self, zone: tzinfo, known: Mapping[str, str]) -> None:
        self.step = 0
        self._zone = zone
        self._start = datetime.now(zone)
        self._known = dict(known)
        self._names: dict[str, str] = {}
        self._counts: dict[tuple[str, int], int] = {}

    def know(self, text: str, name: str) -> None:
        """From now on `text` is shown as `name`."""
        self._known[text] = name

    def call(self, name: str, alias: str) -> None:
        """From now on `name`, wherever it stands, is shown as `alias`."""
        self._names[name] = alias

    def of(self, text: str) -> str:
        """The text with placeholders."""
        shown = _SOURCES.sub(_without_repeats, _PATTERN.sub(self._replace, text))
        for name, alias in self._names.items():
            shown = shown.replace(name, alias)
        return _READ.sub(_in_order, _LOCAL.sub(r"\g<before><local>", shown))

    def _replace(self, found: re.Match[str]) -> str:
        kind, text = str(found.lastgroup), found[0]
        if kind in ("id", "uuid", "hex", "token", "wiki", "number"):
            return self._id(kind, text)
        if kind in _PLAIN:
            return f"<{kind}>"
        shown = {
            "iso": self._iso,
            "day": self._day,
            "zh": self._chinese_day,
            "en": self._english_day,
            "clock": self._clock,
        }
        return shown[kind](text)

    def _id(self, kind: str, text: str) -> str:
        if text not in self._known:
            prefix = text.split("_")[0] if kind == "id" else kind
            count = self._counts[prefix, self.step] = self._counts.get((prefix, self.step), 0) + 1
            self._known[text] = f"<{prefix}:{self.step}.{count}>"
        return self._known[text]

    def _iso(self, text: str) -> str:
        at = datetime.fromisoformat(text)
        local = at.astimezone(self._zone) if at.tzinfo else at.replace(tzinfo=self._zone)
        now = datetime.now(self._zone)
        if self._is_now(local, now):
            return "<now>"
        if not (local.second or local.microsecond):
            return f"{self._days(local)} {local:%H:%M}"
        quarters = round((local - now) / timedelta(minutes=15))
        return f"<now{quarters / 4:+g} h>"

    def _is_now(self, at: datetime, now: datetime) -> bool:
        return self._start - _NEAR <= at <= now + _NEAR

    def _clock(self, text: str) -> str:
        now = datetime.now(self._zone)
        hour, minute = int(text[:2]), int(text[3:5])
        if hour > 23 or minute > 59:
            return text
        at = now.replace(hour=hour, minute=minute)
        return "<now>" if self._is_now(at, now) else text

    def _days(self, at: datetime) -> str:
        """The day as a distance, as far as it is the same on every day of the week."""
        days = (at.date() - datetime.now(self._zone).date()).days
        return f"<day{days:+d}>" if abs(days) <= 2 else f"<{'later' if days > 0 else 'earlier'}>"

    def _day(self, text: str) -> str:
        return self._days(datetime.fromisoformat(text))

    def _chinese_day(self, text: str) -> str:
        *year, month, day = map(int, re.findall(r"\d+", text))
        return self._of_month(text, month, day, *year)

    def _english_day(self, text: str) -> str:
        month = next(n for n, name in enumerate(_MONTHS, 1) if name in text)
        day, *year = map(int, re.findall(r"\d+", text))
        return self._of_month(text, month, day, *year)

    def _of_month(self, text: str, month: int, day: int, year: int = 0) -> str:
        now = datetime.now(self._zone)
        try:
            days = [datetime(one, month, day, tzinfo=self._zone)
                    for one in ([year] if year else range(now.year - 1, now.year + 2))]  # fmt: skip
        except ValueError:
            return text
        return self._days(min(days, key=lambda one: abs(one - now)))
