"""What people read about their reminders, in both languages. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, tzinfo

from bot.text.languages import Language
from memory.kept.timers import Repeats, Timer
from memory.text import one_line

_TEXT_CHARS = 200

Texts = Mapping[Language, str]

CANCEL: Texts = {"zh": "取消", "en": "Cancel"}
NONE: Texts = {
    "zh": "这里还没有提醒。可以说“明天下午 3 点提醒我们开会”。",
    "en": "There are no reminders here. Try “remind us tomorrow at 3 pm to meet”.",
}
NOT_YOURS: Texts = {
    "zh": "只有设置提醒的人、被提醒的人，或者群主和群管理员可以取消它。什么都没有改动。",
    "en": "Only who set a reminder, whom it is for, or who manages the group can cancel it. "
    "Nothing was changed.",
}
GONE_ALREADY: Texts = {
    "zh": "这条提醒已经不在了，什么都没有改动。",
    "en": "That reminder is not there any more; nothing was changed.",
}
_CANCELLED: Texts = {"zh": "已取消提醒：{}", "en": "Cancelled: {}"}
_INTRO: Texts = {"zh": "**提醒**（共 {} 条）", "en": "**Reminders** ({})"}
_REPEATS: Mapping[Language, Mapping[Repeats, str]] = {
    "zh": {"once": "", "daily": "每天", "weekdays": "工作日", "weekly": "每周", "monthly": "每月"},
    "en": {
        "once": "",
        "daily": "every day",
        "weekdays": "on weekdays",
        "weekly": "every week",
        "monthly": "every month",
    },
}
_DAYS: Mapping[Language, str] = {"zh": "一二三四五六日", "en": "Mon Tue Wed Thu Fri Sat Sun"}
_ALL: Texts = {"zh": "大家", "en": "everybody"}
_LINE: Texts = {
    "zh": "{number}. {when}{often}，提醒{whom}：{text}{by}",
    "en": "{number}. {when}{often}, for {whom}: {text}{by}",
}
_BY: Texts = {"zh": "（{} 设置）", "en": " (set by {})"}


def named_in(timer: Timer) -> tuple[str, ...]:
    """The open_ids whose names its line shows."""
    return (*timer.plan.for_people, timer.context.actor_id)


def listed(
    timers: Sequence[Timer],
    total: int,
    name: Callable[[str], str],
    zone: tzinfo,
    language: Language,
) -> str:
    """Numbered, the next one first; times are those of `zone`."""
    if not timers:
        return NONE[language]
    lines = [_line(number, one, name, zone, language) for number, one in enumerate(timers, 1)]
    return "\n".join((_INTRO[language].format(total), "", *lines))


def cancelled(timer: Timer, language: Language) -> str:
    return _CANCELLED[language].format(_text(timer))


def moment(at: datetime, language: Language) -> str:
    """A day with its weekday, and the time."""
    if language == "zh":
        return f"{at:%Y-%m-%d}（周{_DAYS['zh'][at.weekday()]}）{at:%H:%M}"
    return f"{_DAYS['en'].split()[at.weekday()]} {at:%Y-%m-%d %H:%M}"


def _line(
    number: int, timer: Timer, name: Callable[[str], str], zone: tzinfo, language: Language
) -> str:
    plan, author = timer.plan, timer.context.actor_id
    often = _REPEATS[language][plan.repeats]
    people = ("、" if language == "zh" else ", ").join(one_line(name(p)) for p in plan.for_people)
    return _LINE[language].format(
        number=number,
        when=moment(datetime.fromtimestamp(plan.due_ms / 1000, zone), language),
        often=(("，" if language == "zh" else ", ") + often) if often else "",
        whom=_ALL[language] if plan.for_all else people,
        text=_text(timer),
        by="" if plan.for_people == (author,) else _BY[language].format(one_line(name(author))),
    )


def _text(timer: Timer) -> str:
    line = one_line(timer.plan.content).replace("`", "'")
    return line if len(line) <= _TEXT_CHARS else line[: _TEXT_CHARS - 1] + "…"
