"""The texts of the commands' answers, in both languages. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from bot.text.catalogues import Catalogue
from bot.text.dates import spoken
from bot.text.languages import Language
from bot.text.plain_results import as_lines
from memory.models import Overview
from memory.tables.notes import Note
from memory.text import one_line

_VALUE_CHARS = 200
_MESSAGE_CHARS = 120
_MESSAGES_SHOWN = 6

say = Catalogue(__file__).say


def forgets(tool: str, language: Language) -> str:
    """What `tool` (`forget.thread`, `forget.person`) would forget."""
    return say(f"forget-{_scope(tool)}", language)


def choose(tool: str, language: Language) -> str:
    """The button that chooses `tool` of several."""
    return say(f"choose-{_scope(tool)}", language)


def forgotten(tool: str, language: Language) -> str:
    return say(f"forgotten-{_scope(tool)}", language)


def _scope(tool: str) -> str:
    return tool.removeprefix("forget.")


def forget(choices: Iterable[str], language: Language) -> str:
    """What would be forgotten, before anything is."""
    lines = [f"- {forgets(tool, language)}" for tool in choices]
    return "\n".join((say("confirm-forget", language), "", *lines))


def memory(
    overview: Overview,
    messages: Sequence[tuple[str, str]],
    language: Language,
    now: datetime,
) -> str:
    """Counts, and the latest messages as (role, text); days are in the zone of `now`."""
    counts = say(
        "counts-since" if overview.since else "counts",
        language,
        here=overview.messages_here,
        conversations=overview.conversations,
        messages=overview.messages,
        notes=overview.notes,
        day=_day(overview.since, language, now) if overview.since else "",
    )
    with_text = [line for line in messages if line[1].strip()]
    latest = [_line(role, text, language) for role, text in with_text[-_MESSAGES_SHOWN:]]
    parts = [
        f"{say('memory', language)}\n{counts}",
        "\n".join((say("latest-messages", language), *latest)) if latest else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _line(role: str, text: str, language: Language) -> str:
    key = "line-by-me" if role == "assistant" else "line-by-you"
    return f"- {say(key, language, text=_one_line(text, _MESSAGE_CHARS))}"


def notes(all_notes: Sequence[Note], language: Language, *, in_group: bool = False) -> str:
    """Titles and tags, numbered in order of creation."""
    lines = [
        f"{number}. {_one_line(note.title, _VALUE_CHARS)}"
        + "".join(f" #{_one_line(tag, 40)}" for tag in note.tags)
        for number, note in enumerate(all_notes, 1)
    ]
    if not lines:
        return say("no-notes-here" if in_group else "no-notes", language)
    return "\n".join((say("notes", language), "", *lines))


def result(text: str, *, succeeded: bool, language: Language) -> str:
    """Tells how a confirmed action went, and what of the tool's result people can read."""
    lines = as_lines(text).strip()
    if not lines:
        return say("done-without-words" if succeeded else "failed-without-words", language)
    result_text = f"\n{lines}" if "\n" in lines else lines
    return say("done" if succeeded else "failed", language, text=result_text)


def _day(at: str, language: Language, now: datetime) -> str:
    return spoken.day(datetime.fromisoformat(at).astimezone(now.tzinfo), language, now=now)


def _one_line(text: str, limit: int) -> str:
    """`text` on one line, without marks that would open code in the card."""
    line = one_line(text).replace("`", "'")
    return line if len(line) <= limit else line[: limit - 1] + "…"
