"""What `/digest …` asks for."""

from __future__ import annotations

import asyncio
from datetime import datetime
from zoneinfo import ZoneInfo

from bot.features.digests.digesting import (
    attachment_line,
    choose_lines,
    chosen_lines,
    limit_notes,
)
from bot.features.digests.feature import DigestRequest, first_time, parse_argument, period_of
from memory.summary import SummaryLine
from tests.support.rows import every_row

BERLIN = ZoneInfo("Europe/Berlin")


@every_row(
    ("argument", "expected"),
    [
        ("", DigestRequest("here")),
        ("today", DigestRequest("today")),
        ("今天", DigestRequest("today")),
        ("yesterday", DigestRequest("yesterday")),
        ("this week", DigestRequest("week")),
        ("本周", DigestRequest("week")),
        ("上周", DigestRequest("last week")),
        ("thread", DigestRequest("thread")),
        ("off", DigestRequest("off")),
        ("关闭", DigestRequest("off")),
        ("daily 18:00", DigestRequest("schedule", "daily", None, (18, 0))),
        ("daily at 9", DigestRequest("schedule", "daily", None, (9, 0))),
        ("every day 18:30", DigestRequest("schedule", "daily", None, (18, 30))),
        ("weekdays 8:05", DigestRequest("schedule", "weekdays", None, (8, 5))),
        ("weekly mon 9:00", DigestRequest("schedule", "weekly", 0, (9, 0))),
        ("weekly sunday 9:00", DigestRequest("schedule", "weekly", 6, (9, 0))),
        ("每天 18:00", DigestRequest("schedule", "daily", None, (18, 0))),
        ("每天18点", DigestRequest("schedule", "daily", None, (18, 0))),
        ("工作日 18:00", DigestRequest("schedule", "weekdays", None, (18, 0))),
        ("每周五 17:30", DigestRequest("schedule", "weekly", 4, (17, 30))),
        ("每周日 17:30", DigestRequest("schedule", "weekly", 6, (17, 30))),
        ("daily 6pm", DigestRequest("schedule", "daily", None, (18, 0))),
        ("every friday at 5:30 pm", DigestRequest("schedule", "weekly", 4, (17, 30))),
        ("daily 3", DigestRequest("schedule", "daily", None, (3, 0))),
        ("weekdays noon", DigestRequest("schedule", "weekdays", None, (12, 0))),
        ("每天下午六点", DigestRequest("schedule", "daily", None, (18, 0))),
        ("每礼拜五 晚上8点半", DigestRequest("schedule", "weekly", 4, (20, 30))),
        ("周五9点30分", DigestRequest("schedule", "weekly", 4, (9, 30))),
        ("daily 18:00 or 19:00", DigestRequest("unclear")),
        ("每天晚上12点", DigestRequest("schedule", "daily", None, (0, 0))),
        ("daily at midnight", DigestRequest("schedule", "daily", None, (0, 0))),
        ("每周五晚上12点", DigestRequest("unclear")),
        ("每周一凌晨2点", DigestRequest("schedule", "weekly", 0, (2, 0))),
        ("weekdays at midnight", DigestRequest("unclear")),
        ("every friday 0:00", DigestRequest("schedule", "weekly", 4, (0, 0))),
        ("daily 25:00", DigestRequest("unclear")),
        ("daily 18:75", DigestRequest("unclear")),
        ("daily", DigestRequest("unclear")),
        ("sometimes", DigestRequest("unclear")),
    ],
)
def test_arguments(argument: str, expected: DigestRequest) -> None:
    assert parse_argument(argument) == expected


def test_a_week_begins_on_its_day() -> None:
    now = datetime(2026, 11, 25, 10, 0, tzinfo=BERLIN)
    assert first_time(parse_argument("weekly mon 9:00"), now) == datetime(2026, 11, 23, 9)  # noqa: DTZ001
    assert first_time(parse_argument("daily 18:00"), now) == datetime(2026, 11, 25, 18)  # noqa: DTZ001


@every_row(
    ("argument", "since", "until"),
    [
        ("today", (25, 0), (25, 10)),
        ("yesterday", (24, 0), (25, 0)),
        ("week", (23, 0), (25, 10)),
        ("last week", (16, 0), (23, 0)),
    ],
)
def test_a_digest_covers_the_period_that_is_named(
    argument: str, since: tuple[int, int], until: tuple[int, int]
) -> None:
    now = datetime(2026, 11, 25, 10, tzinfo=BERLIN)  # a Wednesday
    period = period_of(parse_argument(argument), now)
    assert [(one.day, one.hour) for one in period] == [since, until]


def test_without_a_model_a_digest_leaves_out_what_the_bot_was_only_asked_to_do() -> None:
    def said(author: str, *texts: str) -> list[SummaryLine]:
        return [SummaryLine(author, text, "", by_bot=author == "Bot") for text in texts]

    errands = ("hello", "cancel the Friday one", "我的提醒", "list my notes", "what are my tasks?")
    exchanges = [line for text in errands for line in (*said("Bob", text), *said("Bot", "Done."))]
    talk = said("Alice", "we decided to launch on 3 March", "let's drop the Friday one")
    told = asyncio.run(choose_lines([*exchanges, *talk]))
    assert told == "- Alice: we decided to launch on 3 March\n- Alice: let's drop the Friday one"
    assert asyncio.run(choose_lines(exchanges[:2])) == "- Bob: hello"


def test_lines_that_rules_chose_are_written_in_the_readers_language() -> None:
    now = datetime(2026, 11, 25, 10, tzinfo=BERLIN)
    lines = "- 2026-11-24 Alice: at 9: tea\n- Bob: 2026-11-24 is fine"
    assert chosen_lines(lines, "en", now) == "- 24 Nov, Alice: at 9: tea\n- Bob: 2026-11-24 is fine"
    assert (
        chosen_lines(lines, "zh", now) == "- 11月24日 Alice：at 9: tea\n- Bob：2026-11-24 is fine"
    )


def test_files_are_named_and_pictures_counted() -> None:
    said = [("Bob", "[file: plan.pdf]"), ("Alice", "see [image] and [image]"), ("Bob", "hello")]
    assert attachment_line(said, "en") == "📎 plan.pdf (Bob), 2 pictures"
    assert attachment_line(said[:1], "zh") == "📎 plan.pdf（Bob）"
    assert attachment_line([("Bob", "[image]")], "zh") == "📎 图片 1 张"
    assert attachment_line(said[2:], "en") == ""
    many = [("Bob", f"[file: {n}.pdf]") for n in range(12)]
    assert attachment_line(many, "en").endswith("9.pdf (Bob), +2")


def test_what_is_not_known_is_said() -> None:
    assert limit_notes("all", 0, "en", follows=True) == []
    (heard, wordless) = limit_notes("heard", 2, "en", follows=True)
    assert "im:message.group_msg" in heard
    assert wordless.startswith("2 more messages have no text")
    assert "not to follow" in limit_notes("heard", 0, "en", follows=False)[0]
    assert "未包括" in limit_notes("newest", 0, "zh", follows=True)[0]
