"""What people are told of a tool's result when no language model tells them, in both languages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from bot.agenda.times import Reason as AgendaReason
from bot.agents.tool_types import COMMON, Fields, ToolOutcome, Wording
from bot.agents.tools.note_texts import WORDING as NOTES
from bot.features.calendar.wording import WORDING as AGENDA
from bot.features.reminders.tools import WORDING as REMINDERS
from bot.feishu.markup import with_marks
from bot.text.languages import Language
from memory.text import has_han
from tests.support.rows import every_row

BOT = Path(__file__).parents[4] / "bot"
KIND = re.compile(r"[a-z]+(-[a-z]+)+")

NOTE = {"id": "note_aaaa", "title": "Pasta", "tags": ["quick", "dinner"]}
BARE = {"id": "note_bbbb", "title": "Pizza", "tags": []}
LISTED = {
    "notes": [
        {**NOTE, "by_another": False, "by_meaning": False},
        {**BARE, "by_another": True, "by_meaning": True},
    ]
}
CHANGE = {
    **NOTE,
    "old_title": "Noodles",
    "added": ["quick"],
    "removed": ["slow", "old"],
    "body_changed": True,
}
REMINDER = {
    "id": "tm_aaaa",
    "at": "2026-11-26T09:00",
    "repeats": "weekly",
    "now": "2026-11-20T10:00",
    "for_all": False,
    "for_author": False,
    "people": ["Ann", ""],
    "text": "ship it",
}
MOST = {"most": 20}
AGENDA_REFUSAL = {
    "name": "Bob", "at": "2026-11-20 09:00", "day": "2026-11-20", "minutes": 60, "most": 20,
    "scopes": "task:task:read",
}  # fmt: skip
DAY = {
    "name": "Bob",
    "is_asker": False,
    "day": "2026-11-26",
    "busy": ["10:00-11:00"],
    "free": ["09:00-10:00"],
    "events": [],
}
OWN_DAY = {
    **DAY,
    "is_asker": True,
    "events": [{"when": "10:00-11:00", "title": "launch", "place": "room 9"}],
}
AGENDA_NOW = {"zone": "Asia/Shanghai", "now": "2026-11-26T08:00"}
TASK = {"day": "2026-11-25", "overdue": True, "title": "slides", "guid": "g"}

DONE: tuple[tuple[Wording, str, Fields], ...] = (
    (COMMON, "waits-for-press", {}),
    (COMMON, "facts-kept", {}),
    (COMMON, "fact-forgotten", {"facts": [("name", "Ann"), ("our_desk", "our desk is in room 4")]}),
    (NOTES, "note-created", NOTE),
    (NOTES, "note-read", {**NOTE, "body": "Boil it."}),
    (NOTES, "note-tags", NOTE),
    (NOTES, "note-updated", CHANGE),
    (NOTES, "note-unchanged", NOTE),
    (NOTES, "note-deleted", {"title": "Pasta"}),
    (NOTES, "note-shared", NOTE),
    (NOTES, "note-not-shared", NOTE),
    (NOTES, "notes-listed", LISTED),
    (NOTES, "notes-found", LISTED),
    (NOTES, "no-notes", {}),
    (NOTES, "no-notes-tagged", {"tags": ["quick"]}),
    (NOTES, "no-note-matches", {}),
    (REMINDERS, "reminder-set", {**REMINDER, "skips": True}),
    (REMINDERS, "reminder-changed", {**REMINDER, "skips": False}),
    (REMINDERS, "reminder-cancelled", REMINDER),
    (REMINDERS, "reminders-listed", {"reminders": [REMINDER, {**REMINDER, "for_all": True}]}),
    (REMINDERS, "no-reminders", {}),
    (AGENDA, "agenda-told", {**AGENDA_NOW, "days": [DAY, OWN_DAY], "is_alone": True}),
    (AGENDA, "agenda-told", {**AGENDA_NOW, "days": [DAY], "is_alone": False}),
    (AGENDA, "tasks-told", {**AGENDA_NOW, "tasks": [TASK, TASK], "is_alone": False}),
    (AGENDA, "tasks-told", {**AGENDA_NOW, "tasks": [], "is_alone": True}),
)
REFUSED: tuple[tuple[Wording, str, Fields], ...] = (
    (COMMON, "no-facts", {}),
    (COMMON, "facts-of-another", {}),
    (COMMON, "no-such-fact", {}),
    (COMMON, "nothing-to-search", {}),
    (COMMON, "memory-away", {}),
    (COMMON, "memory-full", {}),
    (COMMON, "memory-refused", {}),
    (COMMON, "not-theirs", {}),
    (COMMON, "reads-only", {}),
    (COMMON, "too-many-to-confirm", {}),
    (COMMON, "too-long-to-confirm", {}),
    (NOTES, "no-such-note", {}),
    (NOTES, "note-does-not-fit", {}),
    (NOTES, "nothing-to-change", {}),
    (NOTES, "not-the-owner", {}),
    (NOTES, "closed-document", {}),
    (REMINDERS, "time-past", {"at": "2026-11-20T09:00", "now": "2026-11-20T10:00"}),
    (REMINDERS, "time-far", {}),
    (REMINDERS, "no-time-of-day", {}),
    (REMINDERS, "no-such-time", {}),
    (REMINDERS, "time-several", {}),
    (REMINDERS, "time-often", {}),
    (REMINDERS, "time-halves", {}),
    (REMINDERS, "time-zone", {"zone": "Asia/Shanghai"}),
    (REMINDERS, "time-lunar", {}),
    (REMINDERS, "nothing-to-remind", {}),
    (REMINDERS, "reminder-too-long", MOST),
    (REMINDERS, "nobody-called", {"name": "Bob"}),
    (REMINDERS, "several-called", {"name": "Bob"}),
    (REMINDERS, "too-many-named", MOST),
    (REMINDERS, "only-yourself", {}),
    (REMINDERS, "too-many-of-person", MOST),
    (REMINDERS, "too-many-of-chat", MOST),
    (REMINDERS, "not-yours-to-change", {}),
    (REMINDERS, "not-yours-to-cancel", {}),
    (REMINDERS, "no-such-reminder", {}),
    (REMINDERS, "no-reminders-kept", {}),
    *((AGENDA, f"why-{reason}", AGENDA_REFUSAL) for reason in get_args(AgendaReason)),
)

# What these tools give and refuse only a language model reads: no rule calls them, no button.
FOR_MODELS = {
    "agents/loop.py",
    "agents/mcp/servers.py",
    "agents/mcp/translation.py",
    "features/documents.py",
    "features/files.py",
}
ALSO_FOR_MODELS = {"suggest_follow_ups", "current_time"}


def _sources() -> Iterator[tuple[str, ast.AST]]:
    """The functions that make outcomes, with the names of their modules."""
    for path in sorted(BOT.rglob("*.py")):
        name = str(path.relative_to(BOT))
        text = path.read_text(encoding="utf-8")
        if name in FOR_MODELS or name.startswith("agents/offline/"):
            continue  # what the offline model says itself has keys of the form of a kind
        if "ToolFailed(" in text or "ToolOutcome(" in text:
            for node in ast.parse(text).body:
                if getattr(node, "name", "") not in ALSO_FOR_MODELS:
                    yield name, node


def _calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == name:
            yield node


def test_no_refusal_is_without_a_kind() -> None:
    bare = {
        f"{name}:{call.lineno}"
        for name, tree in _sources()
        for call in _calls(tree, "ToolFailed")
        if len(call.args) < 2
    }
    assert not bare


def test_every_kind_that_a_tool_gives_has_an_example_here() -> None:
    written = {
        node.value
        for _, tree in _sources()
        for made in ("ToolFailed", "ToolOutcome", "refusal", "failed")
        for call in _calls(tree, made)
        for argument in call.args[1:]
        for node in ast.walk(argument)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and KIND.fullmatch(node.value)
    }
    assert len(written) > 40
    assert written <= {kind for _, kind, _ in DONE + REFUSED}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("wording", "outcome"),
    [
        *((wording, ToolOutcome("…", kind, fields)) for wording, kind, fields in DONE),
        *((wording, ToolOutcome("…", kind, fields, ok=False)) for wording, kind, fields in REFUSED),
    ],
    ids=lambda one: one.kind if isinstance(one, ToolOutcome) else "",
)
def test_every_outcome_is_told_in_both_languages(
    wording: Wording, outcome: ToolOutcome, language: Language
) -> None:
    told = wording.tell(outcome, language)
    assert has_han(told) == (language == "zh")
    assert not re.search(r"[{}…]|note_|tm_", told)
    assert told.endswith(
        (".", "。", ")", "）", "”", "related", "可能相关", "Boil it.", "everyone", "大家")
    )
    refused = told.startswith({"en": "I couldn't do that: ", "zh": "没能完成："}[language])
    assert refused == (not outcome.ok and wording is not AGENDA)


@every_row(
    ("kind", "fields", "en", "zh"),
    [
        ("note-created", BARE, "I created the note “Pizza”.", "好的，已创建笔记“Pizza”。"),
        (
            "note-read",
            {**BARE, "body": ""},
            "“Pizza” (no tags) has no text yet.",
            "“Pizza”（没有标签）还没有正文。",
        ),
        ("note-tags", BARE, "The note “Pizza” has no tags.", "笔记“Pizza”没有标签。"),
        (
            "note-updated",
            CHANGE,
            "I updated the note “Noodles”: added the tag “quick”; removed the tags “slow”, “old”; "
            "it's now called “Pasta”; changed its text.",
            "已更新笔记“Noodles”：加上了标签“quick”；去掉了标签“slow”、“old”；"
            "标题改为“Pasta”；内容已修改。",
        ),
        (
            "notes-found",
            LISTED,
            "2 notes found:\n\n1. “Pasta” (tags: quick, dinner)\n"
            "2. “Pizza”, by someone else, possibly related",
            "找到 2 条笔记：\n\n1. “Pasta”（标签：quick、dinner）\n2. “Pizza”，别人写的，可能相关",
        ),
    ],
)
def test_a_note_is_told_of_as_it_is(kind: str, fields: Fields, en: str, zh: str) -> None:
    outcome = ToolOutcome("…", kind, fields)
    assert (NOTES.tell(outcome, "en"), NOTES.tell(outcome, "zh")) == (en, zh)


@every_row(
    ("change", "en", "zh"),
    [
        (
            {},
            "OK, I'll remind Ann, someone else every Thursday at 09:00 (starting 26 Nov): "
            "“ship it”",
            "好的，每周四 09:00（首次：11月26日）提醒 Ann、其他人：“ship it”",
        ),
        (
            {"repeats": "once", "for_all": True, "skips": True},
            "OK, I'll remind everyone on Thu 26 Nov at 09:00: “ship it”\n\n"
            "The clocks go forward that day and skip this time, so the reminder comes right after.",
            "好的，11月26日（周四）09:00 提醒大家：“ship it”\n\n"
            "那天时钟会拨快，正好跳过这个时间，所以提醒会在拨快之后发出。",
        ),
    ],
)
def test_a_reminder_is_told_of_as_it_is(change: dict[str, Any], en: str, zh: str) -> None:
    outcome = ToolOutcome("…", "reminder-set", {**REMINDER, "skips": False, **change})
    assert (REMINDERS.tell(outcome, "en"), REMINDERS.tell(outcome, "zh")) == (en, zh)


def test_what_a_person_wrote_is_no_field_of_a_text() -> None:
    note = {**NOTE, "title": "{tags}", "body": "{title}"}
    told = with_marks(NOTES.tell(ToolOutcome("…", "note-read", note), "en"))
    assert told == "“{tags}” (tags: quick, dinner)\n\n{title}"


@every_row("wording", [COMMON, NOTES, REMINDERS])
def test_a_result_that_was_stored_without_a_kind_is_told_as_it_is_without_ids(
    wording: Wording,
) -> None:
    result = 'Successfully created note "Pasta" (ID: note_aaaa). Remember this.'
    assert wording.tell(ToolOutcome(result), "en") == (
        'Successfully created note "Pasta". Remember this.'
    )
    refused = wording.tell(ToolOutcome("no note (ID: note_aaaa).", ok=False), "zh")
    assert refused == "没能完成：no note."
