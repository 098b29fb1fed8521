"""What people are told of the outcomes of the tools for calendars and tasks. Pure."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from bot.agenda.refusals import TEXTS
from bot.agents.tool_types.outcomes import Fields, Wording
from bot.features.calendar import texts
from bot.text.languages import Language
from memory.text import one_line


def _agenda_in_words(fields: Fields, language: Language) -> str:
    now = datetime.fromisoformat(fields["now"])
    lines = [texts.say("agenda-zone", language, zone=fields["zone"])]
    for one in fields["days"]:
        lines += [f"- {_day_in_words(one, language, now)}"]
        lines += [f"  - {_event_in_words(event, language)}" for event in one["events"]]
    if not fields["is_alone"]:
        lines += ["", texts.say("agenda-only-times", language)]
    return "\n".join(lines)


def _day_in_words(fields: Fields, language: Language, now: datetime) -> str:
    day = texts.due_on(datetime.fromisoformat(fields["day"]), language, now)
    name = texts.say("you", language) if fields["is_asker"] else one_line(fields["name"])
    busy, free = ", ".join(fields["busy"]), ", ".join(fields["free"])
    if busy and free:
        return texts.say("agenda-busy-and-free", language, name=name, day=day, busy=busy, free=free)
    if busy:
        return texts.say("agenda-busy", language, name=name, day=day, busy=busy)
    if free:
        return texts.say("agenda-free", language, name=name, day=day, free=free)
    return texts.say("agenda-nothing", language, name=name, day=day)


def _event_in_words(event: Fields, language: Language) -> str:
    when = event["when"] or texts.say("all-day", language)
    title = event["title"] or texts.say("untitled", language)
    if event["place"]:
        return texts.say("event-at-place", language, when=when, title=title, place=event["place"])
    return texts.say("event-at", language, when=when, title=title)


def _tasks_in_words(fields: Fields, language: Language) -> str:
    now, tasks = datetime.fromisoformat(fields["now"]), fields["tasks"]
    if not tasks:
        return texts.say("no-tasks-due", language)
    lines = [texts.say("tasks-due", language, n=len(tasks))]
    titles = [(_when_in_words(one, language, now), one["title"]) for one in tasks]
    if fields["is_alone"]:
        lines += [
            f"- {texts.say('task-line', language, when=when, title=title)}"
            for when, title in titles
        ]
        return "\n".join(lines)
    for when, n in Counter(when for when, _ in titles).items():
        lines.append(f"- {texts.say('task-count', language, when=when, n=n)}")
    return "\n".join([*lines, "", texts.say("tasks-only-counted", language)])


def _when_in_words(task: Fields, language: Language, now: datetime) -> str:
    day = texts.due_on(datetime.fromisoformat(task["day"]), language, now)
    return texts.say("overdue", language, day=day) if task["overdue"] else day


WORDING = Wording(TEXTS, {"agenda-told": _agenda_in_words, "tasks-told": _tasks_in_words})
