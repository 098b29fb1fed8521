"""From what a model asks for to a reminder that can be kept: when, how often, for whom. Pure.

What cannot be kept is refused with a sentence that says what to ask the person.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from bot.agents.tool_types import ToolFailed
from bot.text.roster import Person, Roster, bare_name, means_asker, means_everybody
from bot.text.times import is_skipped, next_occurrence, real_day
from memory.tables.timers import LONGEST_CONTENT, MOST_PEOPLE, Repeats
from memory.text import one_line, storable

_FARTHEST = timedelta(days=3660)
_LONGEST_WORDS = 300
_UNCLEAR = {  # by problem: what a model is told, and the kind of the outcome
    "several": (
        "is more than one time, or only before or after one. Nothing was set. Ask the "
        "person for one day and one time of day.",
        "time-several",
    ),
    "often": (
        "is no repetition there is: once, daily, on weekdays, weekly, monthly, at one time "
        "of day. Nothing was set. Say so, and ask the person what they would like instead.",
        "time-often",
    ),
    "halves": ("may be morning or evening. Nothing was set. Ask the person which.", "time-halves"),
    "zone": (
        "is by another clock. Nothing was set. Give the same moment in local time, or ask the "
        "person what time that is here.",
        "time-zone",
    ),
    "lunar": (
        "is a day of the lunar calendar. Nothing was set. Give its date in the common calendar if "
        "you know it for certain, or ask the person.",
        "time-lunar",
    ),
}


def due_moment(
    at: str, repeats: Repeats, now: datetime, asked_at: datetime | None = None
) -> tuple[datetime, int, Repeats]:
    """The wall clock time `at` (ISO 8601, with an offset turned into the zone of `now`; or words
    such as “next Friday at 3 pm”), naive, its first time after `now` in ms since epoch, and how
    often it is, as the words may say. Words count from when they were `asked_at`, which is now
    unless it is given. Raises `ToolFailed`."""
    local, repeats = _read_moment(at, repeats, asked_at or now)
    first = next_occurrence(local, repeats, _zone(now), now)
    if first is None:
        raise ToolFailed(
            f"{local:%Y-%m-%d %H:%M} is in the past: now it is {now:%Y-%m-%d %H:%M %A}. Nothing "
            "was set. Ask the person which day and time they mean.",
            "time-past",
            at=f"{local:%Y-%m-%dT%H:%M}",
            now=f"{now:%Y-%m-%dT%H:%M}",
        )
    if first - now > _FARTHEST:
        raise ToolFailed(
            f"{local:%Y-%m-%d} is more than ten years away. Nothing was set. Ask the person for an "
            "earlier day.",
            "time-far",
        )
    return local, int(first.timestamp() * 1000), repeats


def skipped_remark(local: datetime, now: datetime) -> str:
    """What to say of a time that the clock leaves out that day; "" for every other."""
    if not is_skipped(local, _zone(now)):
        return ""
    return f" The clock skips {local:%H:%M} that day, so it comes after the change."


def content_of(text: str) -> str:
    """What the reminder says. Raises `ToolFailed`."""
    content = one_line(storable(text))
    if not content:
        raise ToolFailed(
            "It does not say what to remind of. Ask the person. Nothing was set.",
            "nothing-to-remind",
        )
    if len(content) > LONGEST_CONTENT:
        raise ToolFailed(
            f"The text has {len(content)} characters, at most {LONGEST_CONTENT} are kept. "
            "Nothing was set. Shorten it.",
            "reminder-too-long",
            most=LONGEST_CONTENT,
        )
    return content


def addressees(
    names_wanted: Sequence[str] | None, people: Roster, asker: str, *, in_p2p: bool
) -> tuple[tuple[str, ...], bool]:
    """The open_ids of those meant, and whether the whole chat is. Nobody named: the asker. Raises
    `ToolFailed` for who cannot be told."""
    names = [bare_name(name) for name in names_wanted or ()]
    names = [name for name in names if name] or ["me"]
    if in_p2p:
        names = ["me" if means_everybody(name) else name for name in names]
    if any(means_everybody(name) for name in names):
        return (), True
    if in_p2p and not all(_is_asker(name, people, asker) for name in names):
        raise ToolFailed(
            "In this private chat only the person themselves can be reminded. Nothing was set. "
            "Tell them to ask in a group where the other person is.",
            "only-yourself",
        )
    person_ids = dict.fromkeys(_person(name, people, asker) for name in names)
    if len(person_ids) > MOST_PEOPLE:
        raise ToolFailed(
            f"At most {MOST_PEOPLE} people can be named; use “us” for the chat.",
            "too-many-named",
            most=MOST_PEOPLE,
        )
    return tuple(person_ids), False


def _is_asker(name: str, people: Roster, asker: str) -> bool:
    named_people = {one.open_id for one in people.people_named(name)}
    return means_asker(name) or name == asker or named_people == {asker}


def _person(name: str, people: Roster, asker: str) -> str:
    if means_asker(name):
        return asker
    if name in people.names():
        return name
    people_named = [one for one in people.people_named(name) if not one.is_bot]
    if len({one.open_id for one in people_named}) == 1:
        return people_named[0].open_id
    if people_named:
        raise ToolFailed(
            f"Several people here are called {name!r}. Nothing was set. Ask the person to mention "
            "with @ the one they mean.",
            "several-called",
            name=name,
        )
    raise ToolFailed(
        f"Nobody called {name!r} is known here. Nothing was set. Ask the person to mention them "
        "with @." + _known_people(people.people),
        "nobody-called",
        name=name,
    )


def _known_people(people: Iterable[Person]) -> str:
    names = ", ".join(one.name for one in people if not one.is_bot)
    return f" Known here: {names}." if names else ""


def _read_moment(at: str, repeats: Repeats, now: datetime) -> tuple[datetime, Repeats]:
    text = at.strip()
    try:
        local_time = datetime.fromisoformat(text)
    except ValueError:
        return _in_words(text, repeats, now)
    if "T" not in text.upper() and ":" not in text:
        raise ToolFailed(
            f"{text[:40]!r} has no time of day. Nothing was set. Ask the person at what time.",
            "no-time-of-day",
        )
    return _as_local(local_time, now).replace(microsecond=0), repeats


def _as_local(at: datetime, now: datetime) -> datetime:
    return at if at.tzinfo is None else at.astimezone(_zone(now)).replace(tzinfo=None)


def _in_words(text: str, repeats: Repeats, now: datetime) -> tuple[datetime, Repeats]:
    from bot.text.moments import read_moment  # for models that hand over words

    moment_read = read_moment(text[:_LONGEST_WORDS], now)
    if moment_read.problem in _UNCLEAR:
        unclear, kind = _UNCLEAR[moment_read.problem]
        raise ToolFailed(f"{text[:40]!r} {unclear}", kind, zone=str(now.tzinfo))
    try:
        day, _, clock = moment_read.at.partition("T")
        day = real_day(day) if repeats == "monthly" else day
        local_time = _as_local(datetime.fromisoformat(f"{day}T{clock}"), now)
    except ValueError as exc:
        raise ToolFailed(
            f"{text[:40]!r} is no date and time that exists. Nothing was set. Ask the person "
            "which day and time they mean (“at” looks like 2026-11-23T15:00).",
            "no-such-time",
        ) from exc
    return local_time, repeats if moment_read.repeats == "once" else moment_read.repeats


def _zone(now: datetime) -> ZoneInfo:
    zone = now.tzinfo
    return zone if isinstance(zone, ZoneInfo) else ZoneInfo("UTC")
