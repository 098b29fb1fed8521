"""What people are told of the results of the tools for reminders. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bot.text.languages import Language

_WHEN = (
    r"\(ID: (?P<id>tm_\w+)\) on (?P<at>\d{4}-\d\d-\d\d \d\d:\d\d) (?P<day>\w+)"
    r"(?:, (?P<often>daily|weekdays|weekly|monthly))?, for (?P<whom>.*?): (?P<text>.*)"
)
LISTED = re.compile(rf"^\d+\. {_WHEN}$", re.MULTILINE)
_DONE = re.compile(rf"Successfully (?P<done>set|changed|cancelled) reminder {_WHEN}")
_SKIPS = " The clock skips "
_EVERYBODY = "everybody here"
_ANOTHER = "another person"

_DAYS_ZH = {
    "Monday": "周一", "Tuesday": "周二", "Wednesday": "周三", "Thursday": "周四",
    "Friday": "周五", "Saturday": "周六", "Sunday": "周日",
}  # fmt: skip
_OFTEN: Mapping[Language, Mapping[str, str]] = {
    "zh": {"daily": "每天", "weekdays": "工作日", "weekly": "每周", "monthly": "每月"},
    "en": {
        "daily": "every day",
        "weekdays": "on weekdays",
        "weekly": "every week",
        "monthly": "every month",
    },
}
_SAID: Mapping[Language, Mapping[str, str]] = {
    "zh": {
        "set": "好的，{line}",
        "changed": "已更改：{line}",
        "cancelled": "已取消提醒：{text}",
        "line": "{at}（{day}）{often}提醒{whom}：{text}",
        "none": "这里还没有提醒。",
        "intro": "还有 {} 条提醒：",
        "skips": "那一天的钟会跳过这个时刻，所以会在调钟之后提醒。",
    },
    "en": {
        "set": "All right: {line}",
        "changed": "Changed: {line}",
        "cancelled": "Cancelled: {text}",
        "line": "on {day} {at}{often} I remind {whom}: {text}",
        "none": "There are no reminders here.",
        "intro": "{} to come:",
        "skips": "The clock skips that time on that day, so it comes after the change.",
    },
}


def done(result: str, language: Language) -> str:
    """What was set, changed or cancelled."""
    skips = _SKIPS in result
    match = _DONE.match(result.partition(_SKIPS)[0])
    if not match:
        return re.sub(r" ?\(ID: [^()\s]*\)", "", result)
    words = _SAID[language]
    said = words[match["done"]].format(line=_line(match, language), text=match["text"])
    return f"{said}\n\n{words['skips']}" if skips else said


def listed(result: str, language: Language) -> str:
    """All that are to come, numbered."""
    words = _SAID[language]
    lines = [f"{n}. {_line(match, language)}" for n, match in enumerate(LISTED.finditer(result), 1)]
    return "\n".join((words["intro"].format(len(lines)), "", *lines)) if lines else words["none"]


def _line(match: re.Match[str], language: Language) -> str:
    often = _OFTEN[language].get(match["often"] or "", "")
    if often:
        often = f"，{often}" if language == "zh" else f", {often},"
    whom = match["whom"]
    if language == "zh":
        whom = whom.replace(_EVERYBODY, "大家").replace(_ANOTHER, "另一个人").replace(", ", "、")
    day = _DAYS_ZH.get(match["day"], "") if language == "zh" else match["day"]
    line = _SAID[language]["line"]
    return line.format(at=match["at"], day=day, often=often, whom=whom, text=match["text"])
