"""What a message of several requests is split into, and how the offline model answers it."""

from __future__ import annotations

from bot.agents.offline.model import Situation, next_step
from bot.agents.offline.notes import Call, Returned
from bot.agents.offline.request_forms import requests_in
from bot.agents.tool_types import ToolOutcome
from bot.features.reminders.tools import WORDING
from tests.support.rows import every_row

NOW = "Now:\n2026-11-28 10:00 Saturday (Asia/Shanghai)"
TOOLS = frozenset({"update_working_memory", "set_reminder", "create_note", "list_notes"})


@every_row(
    ("question", "parts"),
    [
        (
            "remember that the code is 42 and remind me tomorrow at 10 to change it",
            ["remember that the code is 42", "remind me tomorrow at 10 to change it"],
        ),
        ("list my notes and my reminders", ["list my notes", "my reminders"]),
        ("记住密码是 42，顺便明天10点提醒我改", ["记住密码是 42", "明天10点提醒我改"]),
        (
            "明天9点提醒我打给老王，11点提醒我打给老李",
            ["明天9点提醒我打给老王", "明天11点提醒我打给老李"],
        ),
        (
            "remind me on Friday at 9 to pay and remind Bob at 11 to call",
            ["remind me on Friday at 9 to pay", "remind Bob at 11 to call on Friday"],
        ),
        ("列出我的笔记，还有我的提醒", ["列出我的笔记", "我的提醒"]),
        ("delete the first note. list my notes", ["delete the first note", "list my notes"]),
    ],
)
def test_each_request_stands_by_itself(question: str, parts: list[str]) -> None:
    assert requests_in(question) == parts


@every_row(
    "question",
    [
        "remind me tomorrow at 9 to call Bob and delete the first note",
        "create a note: call Tom and delete note 1",
        "记住要删除第一条笔记，再删除第二条笔记",
        "remember that Ann likes tea and Bob likes coffee",
        "明天9点提醒我买牛奶，面包",
        "add the tag quick to that note, please",
    ],
)
def test_what_a_reminder_or_a_note_says_is_not_carried_out(question: str) -> None:
    assert requests_in(question) == [question]


def test_both_requests_are_carried_out_and_answered() -> None:
    question = "remember that the code is 42 and remind me tomorrow at 10 to change it"
    kept = Returned("update_working_memory", ToolOutcome("…", "facts-kept"))
    reminder = {"repeats": "once", "for_author": True, "text": "change it", "skips": False}
    times = {"at": "2026-11-29T10:00", "now": "2026-11-28T10:00"}
    was_set = ToolOutcome("…", "reminder-set", {**reminder, **times, "for_all": False})
    results: tuple[Returned, ...] = ()
    situation = Situation(question, tools=TOOLS, instructions=NOW)
    first = next_step(situation)
    assert isinstance(first, Call)
    assert first.tool == "update_working_memory"
    results = (kept,)
    second = next_step(Situation(question, tools=TOOLS, instructions=NOW, results=results))
    assert isinstance(second, Call)
    assert second.tool == "set_reminder"
    assert second.arguments["at"] == "2026-11-29T10:00"
    results = (kept, Returned("set_reminder", was_set, WORDING))
    answer = next_step(Situation(question, tools=TOOLS, instructions=NOW, results=results))
    assert isinstance(answer, str)
    assert "the code is 42" in answer
    assert "“change it”" in answer
