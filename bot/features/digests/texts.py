"""What people write and read about digests, in both languages. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from bot.text import times
from bot.text.catalogues import Catalogue
from bot.text.languages import Language, join_list
from bot.text.times import read_time_alone, repetition_text
from memory.dates import WEEK_ZH, WEEKDAY_STEMS, read_weekday
from memory.tables.timers import Repeats, Timer

_OFF = frozenset({"off", "stop", "none", "关闭", "关", "取消"})
_THREAD = frozenset({"thread", "this thread", "话题", "本话题", "这个话题"})
_TODAY = frozenset({"today", "now", "今天", "今日", "现在"})
_PERIODS: Mapping[str, Literal["yesterday", "week", "last week"]] = {
    **dict.fromkeys(("yesterday", "昨天", "昨日"), "yesterday"),
    **dict.fromkeys(("week", "this week", "本周", "这周", "这个星期", "本星期"), "week"),
    **dict.fromkeys(("last week", "上周", "上个星期", "上星期"), "last week"),
}
_SCHEDULE = re.compile(
    r"(?:(?P<daily>daily|every ?day|每天|每日)|(?P<weekdays>weekdays|每?个?工作日)"
    rf"|(?:weekly|every|每)\s*(?P<day>{'|'.join(WEEKDAY_STEMS)})[a-z]*"
    rf"|每?{WEEK_ZH}(?P<zh>[一二三四五六日天]))"
    r"[\s,，]*(?:at\s*)?(?P<time>.+)"
)

say = Catalogue(__file__).say
_FILE = re.compile(r"\[(?:file|video): ([^\]\n]+)\]")
_MOST_FILES = 10
_CHOSEN_LINE = re.compile(
    r"^- (?:(?P<day>\d{4}-\d\d-\d\d) )?(?P<name>[^:\n]{1,80}): ", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class DigestRequest:
    """What `/digest …` asks for. `repeats` and `at` (hour, minute) of a schedule; `weekday` counts
    from Monday, None: any day."""

    kind: Literal[
        "today", "yesterday", "week", "last week", "thread", "here", "schedule", "off", "unclear"
    ]
    repeats: Repeats = "daily"
    weekday: int | None = None
    at: tuple[int, int] = (0, 0)


def parse_argument(argument: str) -> DigestRequest:
    """From the command's argument, in lower case."""
    if argument in _OFF:
        return DigestRequest("off")
    if argument in _THREAD:
        return DigestRequest("thread")
    if not argument or argument in _TODAY:
        return DigestRequest("today" if argument else "here")
    if argument in _PERIODS:
        return DigestRequest(_PERIODS[argument])
    match = _SCHEDULE.fullmatch(argument)
    clock = read_time_alone(match["time"]) if match else None
    if not match or not clock:
        return DigestRequest("unclear")
    at = (clock.hour, clock.minute)
    if match["daily"] or match["weekdays"]:
        return DigestRequest("schedule", "daily" if match["daily"] else "weekdays", None, at)
    return DigestRequest("schedule", "weekly", read_weekday(match["day"] or match["zh"]), at)


def period_of(request: DigestRequest, asked_at: datetime) -> tuple[datetime, datetime]:
    """The period that a digest covers, today unless another one is asked for."""
    midnight = asked_at.replace(hour=0, minute=0, second=0, microsecond=0)
    monday = midnight - timedelta(days=midnight.weekday())
    match request.kind:
        case "yesterday":
            return midnight - timedelta(days=1), midnight
        case "week":
            return monday, asked_at
        case "last week":
            return monday - timedelta(days=7), monday
        case _:
            return midnight, asked_at


def first_time(request: DigestRequest, now: datetime) -> datetime:
    """The wall clock time, naive, from which a schedule counts: today, or that day of this week."""
    hour, minute = request.at
    today = now.replace(tzinfo=None, hour=hour, minute=minute, second=0, microsecond=0)
    if request.weekday is None:
        return today
    return today + timedelta(days=request.weekday - today.weekday())


def schedule_line(timer: Timer, language: Language) -> str:
    """“Scheduled: every day at 18:00”."""
    return say(
        "scheduled",
        language,
        when=repetition_text(timer.plan.repeats, timer.plan.local_at, language),
    )


def schedule_set_text(repeats: Repeats, local_at: datetime, language: Language) -> str:
    return say("was-set", language, when=repetition_text(repeats, local_at, language))


def schedule_words(argument: str, language: Language) -> str:
    """When a schedule comes, as the command's argument names it: “every day at 18:00”."""
    request = parse_argument(argument)
    monday = datetime(2024, 1, 1, tzinfo=UTC)
    return repetition_text(request.repeats, first_time(request, monday), language)


def heading(
    since: datetime, until: datetime, count: int, language: Language, *, of_thread: bool
) -> str:
    key = "heading-of-thread" if of_thread else "heading"
    return say(key, language, span=_span(since, until, language), n=count)


def _span(since: datetime, until: datetime, language: Language) -> str:
    """“23 Nov, 09:00–18:00”."""
    if since.date() == until.date():
        day = times.day_text(since, language, now=until)
        return say("span-of-day", language, day=day, since=f"{since:%H:%M}", until=f"{until:%H:%M}")
    since_said, until_said = (times.moment_text(at, language, now=until) for at in (since, until))
    return say("span", language, since=since_said, until=until_said)


def chosen_lines(text: str, language: Language, now: datetime) -> str:
    """Lines `- 2026-11-24 Alice: …`, with or without the day, as people write them."""

    def label(line: re.Match[str]) -> str:
        key = "line-of-day" if line["day"] else "line"
        at = datetime.fromisoformat(line["day"] or "2000-01-01")
        day = times.day_text(at, language, now=now)
        return say(key, language, day=day, name=line["name"])

    return _CHOSEN_LINE.sub(label, text)


def limit_notes(seen_part: str, wordless: int, language: Language, *, follows: bool) -> list[str]:
    """What the digest does not know. `follows`: the bot follows the talk of groups at all."""
    keys = {"heard": "only-heard" if follows else "only-to-me", "newest": "only-newest"}
    lines = [say(keys[seen_part], language)] if seen_part in keys else []
    return lines + ([say("without-words", language, n=wordless)] if wordless else [])


def attachment_line(lines: Iterable[tuple[str, str]], language: Language) -> str:
    """“📎 plan.pdf (Bob), 2 pictures”, of what people wrote as (name, text); "" where there is
    nothing of the kind."""
    files, pictures = dict[str, str](), 0
    for name, text in lines:
        pictures += text.count("[image]")
        files |= dict.fromkeys(_FILE.findall(text), name)
    file_lines = [say("file-by", language, file=file, name=name) for file, name in files.items()]
    more = [f"+{len(file_lines) - _MOST_FILES}"] if len(file_lines) > _MOST_FILES else []
    images = [say("pictures", language, n=pictures)] if pictures else []
    parts = [*file_lines[:_MOST_FILES], *more, *images]
    return f"📎 {join_list(parts, language)}" if parts else ""
