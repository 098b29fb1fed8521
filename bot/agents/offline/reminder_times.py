"""Divides a wish for reminders at several times into one request for each, for the offline model.
Pure.

“Remind me tomorrow at 9 to call the bank, and at 11 to send the draft”: a later time begins a part
if a word or mark that joins stands right before it. What a part does not say it has from its
neighbour: whom to remind, the day or repetition, the half of the day, and if only the time is said,
the text. Unless each part then is a whole request, the wish stays as it is, and is asked about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.agents.offline.reminder_wishes import (
    ANY_DAY,
    DAYS,
    call_in,
    reminder_wish,
    words_to_remind_of,
)
from bot.text.moments import REPETITION, mark_quoted_times, read_moment
from bot.text.times import PERIOD_PATTERN, TIME_PATTERN, read_time
from bot.text.usual_times import normalise_time_words
from memory.dates import named_days
from memory.text import has_han

_MOST = 4
_NOON = 12
_USUALLY_LATE = 6  # “at 5” is in the afternoon (`read_moment`)
_SOON = re.compile(
    r"\bin (?:an?|half an|\d{1,4}|one|two|three|four|five|ten|twenty|thirty) ?"
    r"(?:min(?:ute)?s?|hours?|hrs?|h|days?|weeks?)\b"
    r"|再?过?(?:\d{1,4}|[一两二三四五六七八九十半]{1,3})个?半?(?:分钟|小时|钟头|天|周)之?以?后",
    re.IGNORECASE,
)
_PREPOSITION = re.compile(r"(?:\b(?:on|at|by)\s+)?$", re.IGNORECASE)
_SAME_TIME = re.compile(r"\s{0,3}(?:\b(?:on|at|by)\b)?\s{0,3}", re.IGNORECASE)
_DAY_THEN_TIME = re.compile(r"\s{0,3}[,，]?\s{0,3}(?:\b(?:at|by)\b)?\s{0,3}", re.IGNORECASE)
_JOINING = re.compile(
    r"(?:\s{0,9}(?:[,;.，；。、&]|\b(?:and|then|also|plus|again|another)\b"
    r"|然后|另外|还有|以及|并且|[再和跟及])){1,4}(?:分别)?\s{0,9}$",
    re.IGNORECASE,
)
_STOPPED = re.compile(r"[.;。；]\s{0,9}$")
_OF_A_REMINDER = "的提醒"  # one there is
# “at 9 and 11”, “at 8, 13:00 and 18:00”
_HOURS = re.compile(
    r"\bat \d{1,2}(?::\d\d)?(?: ?[ap]m)?"
    r"(?:(?:,| and|, and| &) (?:at )?\d{1,2}(?::\d\d)?(?: ?[ap]m)?){1,4}"
    r"(?=\s*(?:$|[,.;!?]|(?:to|that|about|on|and|remind|please|today|tomorrow|every)\b))",
    re.IGNORECASE,
)
_BARE_HOUR = re.compile(r"(?<=[\s])(?<!at )(?=\d)", re.IGNORECASE)
_NO_DEED = re.compile(r"(?:is|are|was|were|will)\b|[是的]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Part:
    """A piece of the wish and what it says of the time, "" where it says nothing. `clock` has its
    half of the day with it where that is said."""

    text: str
    day: str = ""
    period: str = ""
    clock: str = ""

    @property
    def hour(self) -> int:
        match = TIME_PATTERN.search(self.clock)
        time = read_time(match, "") if match else None
        return time.hour % _NOON if time else 0


def requests_for_each_time(question: str) -> list[str]:
    """A request for each time of one wish, or `question` alone."""
    wish, call = reminder_wish(question), call_in(question)
    if not wish or wish.kind != "set" or not call or _OF_A_REMINDER in question:
        return [question]
    usual = _HOURS.sub(
        lambda hours: _BARE_HOUR.sub("at ", hours[0]), normalise_time_words(question)
    )
    plain, put_back = mark_quoted_times(usual)
    parts = [_read(text) for text in _divided(plain)]
    if not 2 <= len(parts) <= _MOST:
        return [question]
    parts = _with_days(_with_clocks(parts))
    requests = [one.text if call_in(one.text) else f"{call} {one.text}" for one in parts]
    whole = [put_back(one) for one in _with_texts(requests)]
    return whole if all(map(_is_whole, whole)) else [question]


def _divided(text: str) -> list[str]:
    """The text from each time to the next that a joining word leads up to."""
    times = _starts_of_times(text)[1:]
    starts = [0, *(start for start in times if _goes_on(text[:start]))]
    pieces = [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    return [_JOINING.sub("", piece).strip() for piece in pieces]


def _goes_on(before: str) -> bool:
    """Whether the wish goes on with another time after `before`; over the end of a sentence only if
    that asked already."""
    return bool(_JOINING.search(before) and (call_in(before) or not _STOPPED.search(before)))


def _starts_of_times(text: str) -> list[int]:
    """Where each time begins: “tomorrow at 9” is one, and “4 December, 10:00”."""
    patterns = (TIME_PATTERN, PERIOD_PATTERN, REPETITION, _SOON)
    spans = [(*match.span(), False) for one in patterns for match in one.finditer(text)]
    spans += [(day.start, day.end, True) for day in named_days(text, DAYS, ANY_DAY.date())]
    starts: list[int] = []
    end, after_day = -1, False
    for start, span_end, is_day in sorted(spans):
        gap = text[end:start] if start > end else ""
        same = _DAY_THEN_TIME if after_day and not is_day else _SAME_TIME
        if end < 0 or not same.fullmatch(gap):
            before = _PREPOSITION.search(text[:start])
            starts.append(before.start() if before else start)
        end, after_day = max(end, span_end), is_day
    return starts


def _read(text: str) -> _Part:
    named = next(named_days(text, DAYS, ANY_DAY.date()), None)
    often = REPETITION.search(text)
    day = text[named.start : named.end] if named else ""
    if often:
        day = f"{often[0]} {day}".strip()
    if soon := _SOON.search(text):
        return _Part(text, day=soon[0], clock=soon[0])  # nothing of it is to be completed
    clock, period = TIME_PATTERN.search(text), PERIOD_PATTERN.search(text)
    return _Part(text, day, period[0] if period else "", clock[0] if clock else "")


def _with_clocks(parts: Sequence[_Part]) -> list[_Part]:
    """“On Monday and Tuesday at 9”: a day alone has the time of its neighbour. “At 7 pm …, at 9 …”
    is in the evening, too."""
    done: list[_Part] = []
    for number, part in enumerate(parts):
        before = done[-1] if done else None
        if not part.clock and not _own_text(part.text):
            near = [*parts[number + 1 :], *reversed(done)]
            other = next((one for one in near if one.clock and not _SOON.search(one.clock)), part)
            time = f"{_half(other)}{other.clock}" if has_han(other.clock) else other.clock
            text = f"{part.text} {time}"
            part = replace(part, text=text, period=other.period, clock=other.clock)
        elif before and not part.day and not part.period and before.hour < part.hour:
            part = _in_same_half(part, before)
        done.append(part)
    return done


def _in_same_half(part: _Part, before: _Part) -> _Part:
    match, other = TIME_PATTERN.search(part.text), TIME_PATTERN.search(before.clock)
    if not match or not other or not (time := read_time(match, "")) or time.sure:
        return part
    said, usual = read_time(other, before.period.lower()), 1 <= before.hour <= _USUALLY_LATE
    is_late = usual if said and not said.sure else bool(said and said.hour >= _NOON)
    if has_han(match[0]):
        clock = f"{_half(before) or ('下午' if is_late else '')}{match[0]}"
    else:
        clock = f"{match[0]} pm" if is_late else match[0]
    text = f"{part.text[: match.start()]}{clock}{part.text[match.end() :]}"
    return replace(part, text=text, period=before.period, clock=clock)


def _half(part: _Part) -> str:
    """明天早 has its half without 上, which only stands after a day."""
    return {"早": "早上", "晚": "晚上"}.get(part.period, part.period)


def _with_days(parts: Sequence[_Part]) -> list[_Part]:
    """A part without a day is for that of the one before; or for a later one, if only the time is
    said, or if the day ends what says only times: “at 8 am and at 8 pm every day”."""
    done: list[_Part] = []
    for number, part in enumerate(parts):
        day = part.day or (done[-1].day if done else "")
        later = next((one for one in parts[number + 1 :] if one.day), None)
        if not day and later and (not _own_text(part.text) or _ends_in_day(later)):
            day = later.day
        if day != part.day:
            text = f"{day}{part.text}" if has_han(day) else f"{part.text} {day}"
            part = replace(part, text=text, day=day)
        done.append(part)
    return done


def _own_text(part: str) -> str:
    """What the part says besides the time and the words that ask."""
    return _text_of(part) if call_in(part) else _text_of(f"remind me {part}")


def _ends_in_day(part: _Part) -> bool:
    """Whether the part is a time and then a day, and nothing else."""
    day_last = part.text.find(part.clock) < part.text.find(part.day.split()[-1])
    return day_last and not _own_text(part.text)


def _with_texts(requests: Sequence[str]) -> list[str]:
    """A request that says only the time is about what the next one says, or the one before."""
    texts = [_text_of(request) for request in requests]
    done: list[str] = []
    for number, request in enumerate(requests):
        near = (text for text in (*texts[number:], *reversed(texts[:number])) if text)
        text = next(near, "")
        missing = "" if texts[number] else (text if has_han(request) else f" to {text}")
        done.append(f"{request}{missing}")
    return done


def _text_of(request: str) -> str:
    wish = reminder_wish(request)
    return words_to_remind_of(read_moment(wish.text, ANY_DAY).rest) if wish else ""


def _is_whole(request: str) -> bool:
    wish = reminder_wish(request)
    if (
        not wish
        or wish.kind != "set"
        or read_moment(wish.text, ANY_DAY).problem not in ("", "halves")
    ):
        return False
    text = _text_of(request)
    return bool(text) and not _NO_DEED.match(text)
