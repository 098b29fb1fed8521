"""What people write and read about digests, in both languages. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from bot.languages import Language
from memory.kept.timers import Repeats, Timer

_OFF = frozenset({"off", "stop", "none", "关闭", "关", "取消"})
_THREAD = frozenset({"thread", "this thread", "话题", "本话题", "这个话题"})
_TODAY = frozenset({"today", "now", "今天", "今日", "现在"})
_DAYS = "mon tue wed thu fri sat sun".split()
_DAYS_ZH = "一二三四五六日"
_SCHEDULE = re.compile(
    r"(?:(?P<daily>daily|every ?day|每天|每日)|(?P<weekdays>weekdays|工作日|每个?工作日)"
    r"|(?:weekly|every|每)\s*(?P<day>mon|tue|wed|thu|fri|sat|sun)[a-z]*"
    r"|每?(?:周|星期)(?P<zh>[一二三四五六日天]))"
    r"[\s,，]*(?:at\s*)?(?P<hour>\d{1,2})(?:[:：点](?P<minute>\d{2})?)?分?"
)

Texts = Mapping[Language, str]

NOTHING: Texts = {
    "zh": "这段时间里没有我能读到的内容，所以没有摘要。",
    "en": "Nothing that I can read was said in that time, so there is nothing to sum up.",
}
HOW: Texts = {
    "zh": "请写 `/摘要`（现在：今天的，或在话题里：本话题的）、`/摘要 每天 18:00`、"
    "`/摘要 工作日 18:00`、`/摘要 每周一 9:00` 或 `/摘要 关闭`。",
    "en": "Please write `/digest` (now: of today, in a thread: of the thread), "
    "`/digest daily 18:00`, `/digest weekdays 18:00`, `/digest weekly mon 9:00` or `/digest off`.",
}
STOPPED: Texts = {"zh": "好的，不再定时发摘要。", "en": "All right: no more digests by themselves."}
NONE_SET: Texts = {
    "zh": "这里没有定时摘要。",
    "en": "No digest is scheduled here.",
}
_SET: Texts = {
    "zh": "好的，{when}会在这里发一份摘要；没有内容的时候不发。",
    "en": "All right: {when} I post a digest here; when nothing was said, I post nothing.",
}
_WHEN: Mapping[Language, Mapping[str, str]] = {
    "zh": {"daily": "每天 {time} ", "weekdays": "工作日 {time} ", "weekly": "每周{day} {time} "},
    "en": {
        "daily": "every day at {time}",
        "weekdays": "on weekdays at {time}",
        "weekly": "every {day} at {time}",
    },
}
_HEAD: Mapping[Language, str] = {
    "zh": "📋 **{what}摘要**（{since} – {until}，{count} 条消息）",
    "en": "📋 **Digest{what}** ({since} – {until}, {count} messages)",
}
_HEARD: Texts = {
    "zh": "⚠️ 只包括对我说的，以及我参与讨论时听到的：群里其他的话，飞书没有让我读到"
    "（权限 `im:message.group_msg`）。",
    "en": "⚠️ Only what was said to me and what I heard while I took part: Feishu did not let me "
    "read the rest of the chat (scope `im:message.group_msg`).",
}
_TO_ME: Texts = {
    "zh": "只包括对我说的：这里的设置是不跟进群里的讨论。",
    "en": "Only what was said to me: I am set not to follow the talk of groups.",
}
_NEWEST: Texts = {
    "zh": "⚠️ 消息太多：更早的，以及部分话题里的，没有读。",
    "en": "⚠️ A lot was said: what came before, and some of the threads, I did not read.",
}
_WORDLESS: Texts = {
    "zh": "另有 {} 条没有文字的消息（表情、语音）。",
    "en": "{} more without words (stickers, voice).",
}
_PICTURES: Texts = {"zh": "图片 {} 张", "en": "{} pictures"}
_ONE_PICTURE: Texts = {"zh": "图片 1 张", "en": "1 picture"}
_FILE = re.compile(r"\[(?:file|video): ([^\]\n]+)\]")
_MOST_FILES = 10
_SCHEDULED: Texts = {"zh": "定时摘要：{when}", "en": "Scheduled: {when}"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What `/digest …` asks for. `repeats` and `at` (hour, minute) of a schedule; `weekday` counts
    from Monday, None: any day."""

    kind: Literal["today", "thread", "here", "schedule", "off", "unclear"]
    repeats: Repeats = "daily"
    weekday: int | None = None
    at: tuple[int, int] = (0, 0)


def wanted(argument: str) -> Wanted:
    """From the command's argument, in lower case."""
    if argument in _OFF:
        return Wanted("off")
    if argument in _THREAD:
        return Wanted("thread")
    if not argument or argument in _TODAY:
        return Wanted("today" if argument else "here")
    match = _SCHEDULE.fullmatch(argument)
    if not match:
        return Wanted("unclear")
    hour, minute = int(match["hour"]), int(match["minute"] or 0)
    if hour > 23 or minute > 59:
        return Wanted("unclear")
    if match["daily"] or match["weekdays"]:
        return Wanted("schedule", "daily" if match["daily"] else "weekdays", None, (hour, minute))
    if match["zh"]:
        day = _DAYS_ZH.index(match["zh"].replace("天", "日"))
    else:
        day = _DAYS.index(match["day"])
    return Wanted("schedule", "weekly", day, (hour, minute))


def first(asked: Wanted, now: datetime) -> datetime:
    """The wall clock time, naive, from which a schedule counts: today, or that day of this week."""
    hour, minute = asked.at
    today = now.replace(tzinfo=None, hour=hour, minute=minute, second=0, microsecond=0)
    if asked.weekday is None:
        return today
    return today + timedelta(days=asked.weekday - today.weekday())


def scheduled(timer: Timer, language: Language) -> str:
    """“Scheduled: every day at 18:00”."""
    return _SCHEDULED[language].format(when=when(timer.plan.repeats, timer.plan.local_at, language))


def was_set(repeats: Repeats, local_at: datetime, language: Language) -> str:
    return _SET[language].format(when=when(repeats, local_at, language))


def when(repeats: Repeats, at: datetime, language: Language) -> str:
    """“every day at 18:00”."""
    day = _DAYS_ZH[at.weekday()] if language == "zh" else f"{at:%A}"
    return _WHEN[language][repeats].format(time=f"{at:%H:%M}", day=day)


def when_wanted(argument: str, language: Language) -> str:
    """When a schedule comes, as the command's argument names it: “every day at 18:00”."""
    asked = wanted(argument)
    monday = datetime(2024, 1, 1, tzinfo=UTC)
    return when(asked.repeats, first(asked, monday), language)


def heading(
    since: datetime, until: datetime, count: int, language: Language, *, of_thread: bool
) -> str:
    what = {"zh": "话题" if of_thread else "", "en": " of this thread" if of_thread else ""}
    to = f"{until:%H:%M}" if until.date() == since.date() else f"{until:%Y-%m-%d %H:%M}"
    return _HEAD[language].format(
        what=what[language], since=f"{since:%Y-%m-%d %H:%M}", until=to, count=count
    )


def notes(seen: str, wordless: int, language: Language, *, follows: bool) -> list[str]:
    """What the digest does not know. `follows`: the bot follows the talk of groups at all."""
    heard = _HEARD if follows else _TO_ME
    said = {"heard": heard[language], "newest": _NEWEST[language]}.get(seen)
    told = [said] if said else []
    return told + ([_WORDLESS[language].format(wordless)] if wordless else [])


def attached(lines: Iterable[tuple[str, str]], language: Language) -> str:
    """“📎 plan.pdf (Bob), 2 pictures”, of what people wrote as (name, text); "" where there is
    nothing of the kind."""
    found, pictures = dict[str, str](), 0
    for name, text in lines:
        pictures += text.count("[image]")
        found |= dict.fromkeys(_FILE.findall(text), name)
    who = "{}（{}）" if language == "zh" else "{} ({})"
    named = [who.format(file, name) for file, name in found.items()]
    more = [f"+{len(named) - _MOST_FILES}"] if len(named) > _MOST_FILES else []
    counted = _ONE_PICTURE if pictures == 1 else _PICTURES
    images = [counted[language].format(pictures)] if pictures else []
    parts = [*named[:_MOST_FILES], *more, *images]
    return f"📎 {('、' if language == 'zh' else ', ').join(parts)}" if parts else ""
