"""What a message of several requests is split into, and how the offline model answers it."""

from __future__ import annotations

from bot.agents.offline.model import Situation, next_step
from bot.agents.offline.notes import Call, Returned
from bot.agents.offline.reminder_wishes import reminder_wish
from bot.agents.offline.reminders import next_reminder_step
from bot.agents.offline.request_forms import completed, requests_in
from bot.agents.tool_types import ToolOutcome
from bot.features.reminders.tools import WORDING
from bot.text.languages import Language
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


@every_row(
    ("wanted", "time", "text", "at"),
    [
        ("农历八月十五上午9点提醒我打电话", "9月25日上午9点", "打电话", "2027-09-25T09:00"),
        ("12月25日提醒我拆礼物", "早上9点", "拆礼物", "2026-12-25T09:00"),
        ("大年初一晚上7点提醒我拜年", "2月6日晚上8点", "拜年", "2027-02-06T20:00"),
        ("圣诞节早上9点提醒我拆礼物", "12月25日早上8点", "拆礼物", "2026-12-25T08:00"),
        ("伦敦时间下午3点提醒我打电话", "今天晚上11点", "打电话", "2026-11-28T23:00"),
        ("remind me tomorrow at 3pm London time to call Bob", "tomorrow at 11pm", "call Bob",
         "2026-11-29T23:00"),
        ("remind me at 6 pm ET to call", "Monday at 7 in the morning", "call", "2026-11-30T07:00"),
    ],
)  # fmt: skip
def test_a_time_that_was_asked_about_replaces_the_one_that_was_not_understood(
    wanted: str, time: str, text: str, at: str
) -> None:
    language: Language = "en" if wanted.isascii() else "zh"
    wish = reminder_wish(wanted)
    assert wish
    asked = next_reminder_step(wish, [], NOW, language)
    assert isinstance(asked, str)
    wish = reminder_wish(completed(time, wanted, asked))
    assert wish
    step = next_reminder_step(wish, [], NOW, language)
    assert isinstance(step, Call)
    assert (step.arguments["text"], step.arguments["at"]) == (text, at)
