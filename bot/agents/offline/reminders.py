"""Sets, lists, moves and cancels reminders for the offline model: the next call, or the answer.
Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from bot.agents.offline.choosing import ListedItem, choose_items, choose_together
from bot.agents.offline.notes import Call, Returned, each_in_turn, say
from bot.agents.offline.prompt_reading import now_of
from bot.agents.offline.reminder_wishes import (
    DAYS,
    ReminderWish,
    without_clause_before,
    words_to_remind_of,
)
from bot.text.languages import Language
from bot.text.moments import SpokenMoment, read_moment
from bot.text.times import PERIOD_PATTERN
from bot.text.usual_times import with_month_ends
from memory.dates import named_days

_HALVES = {True: ("in the morning", "in the evening"), False: ("早上", "下午")}
_SAYS_HALF = re.compile(r"\d ?[ap]\.?m\b|\bnoon\b|midnight|\b0\d:", re.IGNORECASE)
_NOON = 12


def next_reminder_step(
    reminder_wish: ReminderWish, results: Sequence[Returned], instructions: str, language: Language
) -> Call | str:
    """The next tool to call, or the answer."""
    last = results[-1] if results else None
    if results and reminder_wish.kind == "cancel":
        items = _listed_items(results[0])
        if chosen_items := choose_together(reminder_wish.about, items, now_of(instructions)):
            calls = [Call("cancel_reminder", {"reminder_id": one.id}) for one in chosen_items]
            return each_in_turn(calls, results[1:], Call("list_reminders", {}), language)
    if last and last.ok and reminder_wish.kind == "list":
        return _narrow_list(reminder_wish, last, now_of(instructions)).tell(language)
    if last and (not last.ok or last.tool != "list_reminders"):
        return last.tell(language)
    if reminder_wish.kind == "set":
        return _set(reminder_wish, now_of(instructions), language)
    if not last:
        return Call("list_reminders", {})
    return _on_one(reminder_wish, last, now_of(instructions), language)


def _set(reminder_wish: ReminderWish, now: datetime, language: Language) -> Call | str:
    time = read_moment(reminder_wish.text, now)
    if time.problem == "several":
        time = read_moment(without_clause_before(reminder_wish.text), now)
    text = words_to_remind_of(time.rest)
    days = named_days(with_month_ends(reminder_wish.text, now.date()), DAYS, now.date())
    if time.problem == "missing" and any(days):
        return say("ask-clock", language)
    if time.problem:
        return say(f"ask-{time.problem}", language, zone=str(now.tzinfo))
    if not text:
        return say("ask-what", language)
    arguments = {"text": text, "at": time.at, "repeats": time.repeats}
    return Call("set_reminder", {**arguments, "for_whom": list(reminder_wish.whom)})


def _on_one(
    reminder_wish: ReminderWish, list_result: Returned, now: datetime, language: Language
) -> Call | str:
    """The one reminder that is named by number, day or words, or the only one there is."""
    there = _listed_items(list_result)
    if not there:
        return list_result.tell(language)
    matching = choose_together(reminder_wish.about, there, now)
    choices = choose_items(reminder_wish.about, there, now) if matching is None else []
    if len(choices) != 1:
        return f"{say('ask-which', language)}\n\n{list_result.tell(language)}"
    if reminder_wish.kind == "cancel":
        return Call("cancel_reminder", {"reminder_id": choices[0].id})
    if reminder_wish.kind == "later":
        time = read_moment(reminder_wish.text, choices[0].at or now)
    else:
        time = _moved_time(reminder_wish.text, choices[0].at, now)
    if time.problem:
        return say(f"ask-{time.problem}", language, zone=str(now.tzinfo))
    often = {"repeats": time.repeats} if time.repeats != "once" else {}
    return Call("change_reminder", {"reminder_id": choices[0].id, "at": time.at, **often})


def _listed_items(list_result: Returned) -> list[ListedItem]:
    rows = list_result.outcome.fields.get("reminders", ())
    return [
        ListedItem(one["id"], " ".join((one["text"], *one["people"])), _due_time(one))
        for one in rows
    ]


def _narrow_list(wish: ReminderWish, list_result: Returned, now: datetime) -> Returned:
    """The list, of the day or with the words that are named only, if there are any; the reminders
    keep their numbers."""
    rows = list_result.outcome.fields.get("reminders", ())
    numbered_rows = {one["id"]: {**one, "number": n} for n, one in enumerate(rows, 1)}
    day = next(named_days(wish.text, DAYS, now.date()), None)
    about = wish.about or (wish.text[day.start : day.end] if day else "")
    shown_rows = [
        numbered_rows[one.id] for one in choose_items(about, _listed_items(list_result), now)
    ]
    if not about or not shown_rows:
        return list_result
    return replace(
        list_result, outcome=replace(list_result.outcome, fields={"reminders": shown_rows})
    )


def _due_time(row: Mapping[str, Any]) -> datetime | None:
    return datetime.fromisoformat(row["at"]) if row.get("at") else None


def _moved_time(words: str, old: datetime | None, now: datetime) -> SpokenMoment:
    """When a reminder is to come now: a day alone keeps its time of day, a time alone its day."""
    time = read_moment(words, now)
    if old is None or time.problem not in ("", "missing", "halves"):
        return time
    is_day = any(named_days(words, DAYS, now.date()))
    if time.problem == "missing":
        return read_moment(f"{words} {old:%H:%M}", now) if is_day else time
    if time.problem == "halves":
        first, second = _HALVES[words.isascii()]
        marks = (
            (f"{words} {first}", f"{words} {second}")
            if words.isascii()
            else (first + words, second + words)
        )
        return min((_moved_time(one, old, now) for one in marks), key=lambda one: _apart(one, old))
    same_day = read_moment(f"{old:%Y-%m-%d} {words}", now)
    is_coming = not same_day.problem and same_day.at > f"{now:%Y-%m-%dT%H:%M}"
    moment = time if is_day or time.rest.strip() or not is_coming else same_day
    return _in_nearer_half(words, moment, old)


def _in_nearer_half(words: str, moment: SpokenMoment, old: datetime) -> SpokenMoment:
    """“9:30” of a reminder at nine in the evening is in the evening."""
    at = datetime.fromisoformat(moment.at)
    if at.hour >= _NOON or PERIOD_PATTERN.search(words) or _SAYS_HALF.search(words):
        return moment
    evening = replace(moment, at=f"{at + timedelta(hours=_NOON):%Y-%m-%dT%H:%M}")
    return min(moment, evening, key=lambda one: _apart(one, old))


def _apart(moment: SpokenMoment, old: datetime) -> float:
    """Hours between the times of day."""
    at = datetime.fromisoformat(moment.at) if moment.at else old
    return abs(at.hour - old.hour) + abs(at.minute - old.minute) / 60
