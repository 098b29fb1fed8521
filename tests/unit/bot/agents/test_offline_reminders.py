"""What the offline model understands about reminders, in both languages."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from bot.agents.offline.notes import Call
from bot.agents.offline.reminder_wishes import reminder_wish
from bot.agents.offline.reminders import next_reminder_step
from bot.agents.prompts.prompt import circumstances
from bot.text.languages import language_of
from tests.support.rows import every_row

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
    "question",
    [
        "why did you remind us?",
        "你刚才提醒了谁？",
        "the launch is on 3 March",
        "别忘了",
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
