"""Times of day as people write them in English and Chinese. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memory.dates.words import COUNT, number
from memory.text import one_line

PERIOD = re.compile(
    r"凌晨|清晨|早上|早晨|上午|中午|下午|傍晚|晚上|(?<=天)[早晚]"
    r"|(?:\bin the |\bthis |(?<=tomorrow )|(?<=day )|(?<=\d )|(?<=[ap]m )|(?<=every ))"
    r"(?P<en>morning|afternoon|evening|night)\b|\bat night\b|\btonight\b",
    re.IGNORECASE,
)
TIME = re.compile(
    r"(?:\bat |@ ?)?(?<!\d)(?P<h>\d{1,2})[:：](?P<m>\d{2})(?!\d)(?: ?(?P<ap>[ap])\.?m\b\.?)?"
    r"|(?:\bat )?\b(?P<h2>\d{1,2}) ?(?P<ap2>[ap])\.?m\b\.?"
    r"|\bat (?P<h3>\d{1,2})(?: o'?clock)?\b(?![/.]\d)|\b(?P<h4>\d{1,2}) o'?clock\b"
    r"|\b(?:at )?(?P<word>noon|midnight)\b"
    rf"|(?P<zh>{COUNT})[点时](?:钟|整)?(?P<zm>半|[一三]刻|{COUNT}分?)?",
    re.IGNORECASE,
)
_NIGHT = ("下午", "傍晚", "晚上", "晚", "afternoon", "evening", "night", "tonight")
_MORNING = ("凌晨", "清晨", "早上", "早晨", "上午", "早", "morning")
_QUARTERS = {"": 0, "半": 30, "一刻": 15, "三刻": 45}
_NOON = 12


@dataclass(frozen=True, slots=True)
class TimeOfDay:
    """`sure`: the half of the day is known. `is_midnight`: which of two nights is not known."""

    hour: int
    minute: int
    sure: bool = True
    is_midnight: bool = False


def time_alone(text: str) -> TimeOfDay | None:
    """The time of day that is all of `text`: `18:00`, `9`, “at 6 pm”, `下午六点`."""
    period = PERIOD.search(text)
    rest = one_line(text.replace(period[0], " ") if period else text)
    match = TIME.fullmatch(f"at {rest}" if rest.isdecimal() else rest)
    return read_time(match, period[0] if period else "") if match else None


def read_time(match: re.Match[str], period: str) -> TimeOfDay | None:
    """What a match of `TIME` shows in a `PERIOD` of the day ("": none is named); None for what no
    clock shows."""
    if word := match["word"]:
        return TimeOfDay(12, 0) if word.lower() == "noon" else TimeOfDay(0, 0, is_midnight=True)
    hour_text = match["zh"] or match["h"] or match["h2"] or match["h3"] or match["h4"]
    hour, minute = number(hour_text), _minute(match)
    half = (match["ap"] or match["ap2"] or "").lower()
    if hour is None or minute is None or hour > 24 or minute > 59:
        return None
    if half == "p" or period.endswith(_NIGHT) or (period == "中午" and hour < 6):
        if hour == _NOON and not half and period.endswith(("晚上", "晚", "night")):
            return None  # 晚上12点 is the next day's
        return TimeOfDay((hour + 12 if hour < _NOON else hour) % 24, minute)
    if half == "a" or period.endswith(_MORNING):
        return TimeOfDay(hour % _NOON, minute)
    exact = bool(match["h"]) and (hour_text.startswith("0") or hour >= 7)
    return TimeOfDay(hour % 24, minute, exact or not 0 < hour < _NOON)


def _minute(match: re.Match[str]) -> int | None:
    minute_text = match["m"] or match["zm"] or ""
    return (
        _QUARTERS[minute_text]
        if minute_text in _QUARTERS
        else number(minute_text.removesuffix("分"))
    )
