"""What the offline model understands about reminders, in both languages."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from bot.agents.offline.notes import Call
from bot.agents.offline.reminders import next_reminder_step, reminder_wish
from bot.agents.prompts.prompt import circumstances
from bot.text.languages import language_of
from tests.support.rows import every_row

WHEN = "Which day, and what time? For example “remind us tomorrow at 3 pm to meet”."
NOW = "Now:\n2026-11-25 10:00 Wednesday (Asia/Shanghai)"


def call(question: str) -> tuple[str, str, str, list[str]] | str:
    """Text, time, repetition and addressees that would be set; else what is answered."""
    wanted = reminder_wish(question)
    assert wanted, question
    step = next_reminder_step(wanted, [], NOW, language_of([question]))
    if isinstance(step, str):
        return step
    assert isinstance(step, Call)
    given: dict[str, Any] = step.arguments
    return given["text"], given["at"], given["repeats"], given["for_whom"]


@every_row("question", ["remind me tomorrow at 9:00 to call the bank", "明天9点提醒我给银行打电话"])
def test_days_count_from_when_it_was_asked(question: str) -> None:
    zone = ZoneInfo("Asia/Shanghai")
    now, asked = (
        datetime(2026, 11, day, hour, 33, tzinfo=zone) for day, hour in ((28, 1), (27, 20))
    )
    told = circumstances("Alice", now, memory_away=False, asked_at=asked)
    wanted = reminder_wish(question)
    assert wanted
    step = next_reminder_step(wanted, [], told, language_of([question]))
    assert isinstance(step, Call)
    assert step.arguments["at"] == "2026-11-28T09:00"


@every_row("question", ["remind Friday at 9", "remind people to eat at 3"])
def test_a_day_is_nobodys_name(question: str) -> None:
    assert reminder_wish(question) is None


@every_row(
    ("question", "expected"),
    [
        ("remind us on Thursday at 3 to ship it", ("ship it", "2026-11-26T15:00", "once", ["us"])),
        ("please remind me in 5 minutes to rest", ("rest", "2026-11-25T10:05", "once", ["me"])),
        ("remind me in half an hour to stretch", ("stretch", "2026-11-25T10:30", "once", ["me"])),
        ("can you remind @Bob tomorrow at 9am to go", ("go", "2026-11-26T09:00", "once", ["@Bob"])),
        ("every day at 18:00 remind us to report", ("report", "2026-11-25T18:00", "daily", ["us"])),
        ("remind me every Monday at 9:30 of tea", ("tea", "2026-11-30T09:30", "weekly", ["me"])),
        ("remind us next Friday at 10 to plan", ("plan", "2026-12-04T10:00", "once", ["us"])),
        ("remind me on 3 March at noon to fly", ("fly", "2027-03-03T12:00", "once", ["me"])),
        ("remind me on 30 February at 9 to jump", ("jump", "2027-02-30T09:00", "once", ["me"])),
        ("remind us at 9:00 to meet", ("meet", "2026-11-26T09:00", "once", ["us"])),
        ("明天上午9点提醒我交周报", ("交周报", "2026-11-26T09:00", "once", ["me"])),
        ("提醒我们周四下午3点开会", ("开会", "2026-11-26T15:00", "once", ["us"])),
        ("每天18:00提醒大家写日报", ("写日报", "2026-11-25T18:00", "daily", ["us"])),
        ("3分钟后提醒我喝水", ("喝水", "2026-11-25T10:03", "once", ["me"])),
        ("一个半小时后提醒我关火", ("关火", "2026-11-25T11:30", "once", ["me"])),
        ("每周五下午五点半提醒我们写周报", ("写周报", "2026-11-27T17:30", "weekly", ["us"])),
        ("每月1号上午十点提醒我付房租", ("付房租", "2026-12-01T10:00", "monthly", ["me"])),
        ("每个工作日早上9点提醒大家站会", ("站会", "2026-11-25T09:00", "weekdays", ["us"])),
        ("下周一10点提醒@小李 交材料", ("交材料", "2026-11-30T10:00", "once", ["@小李"])),
        ("今晚8点提醒我看球", ("看球", "2026-11-25T20:00", "once", ["me"])),
        ("12月31日晚上十一点提醒大家倒数", ("倒数", "2026-12-31T23:00", "once", ["us"])),
        (
            "remind 陈晨 tomorrow at 9 to call the bank",
            ("call the bank", "2026-11-26T09:00", "once", ["陈晨"]),
        ),
        ("remind Bob at 3 pm to eat", ("eat", "2026-11-25T15:00", "once", ["Bob"])),
        ("remind Ada Lovelace on Friday at 9 of tea",
         ("tea", "2026-11-27T09:00", "once", ["Ada Lovelace"])),
        ("提醒 Bob 明天9点开会", ("开会", "2026-11-26T09:00", "once", ["Bob"])),
        ("明天9点提醒Ada Lovelace交周报", ("交周报", "2026-11-26T09:00", "once", ["Ada Lovelace"])),
        ("明天9点提醒 PR 合并", ("PR 合并", "2026-11-26T09:00", "once", ["me"])),
        ("remind me to drink", WHEN),
        ("remind me at 25:99 to drink", WHEN),
        ("明天9点提醒我", "要提醒什么？"),
    ],
)  # fmt: skip
def test_when_what_and_whom(question: str, expected: object) -> None:
    assert call(question) == expected


@every_row(
    "question",
    [
        "why did you remind us?",
        "what did I ask you to remind me of?",
        "你刚才提醒了谁？",
        "the launch is on 3 March",
        "别提醒我",
    ],
)
def test_talk_about_reminding_sets_nothing(question: str) -> None:
    assert reminder_wish(question) is None


@every_row(
    ("question", "kind", "about"),
    [
        ("list our reminders", "list", ""),
        ("有哪些提醒？", "list", ""),
        ("cancel the reminder about the deck", "cancel", "the deck"),
        ("取消开会的提醒", "cancel", "开会"),
        ("move the reminder about the deck to Friday at 4pm", "change", "the deck"),
        ("把开会的提醒改到周五下午4点", "change", "开会"),
    ],
)
def test_what_is_there_is_listed_changed_and_cancelled(
    question: str, kind: str, about: str
) -> None:
    wanted = reminder_wish(question)
    assert wanted
    assert (wanted.kind, wanted.about) == (kind, about)
