"""One reminder of several is named by number, day, time or words, in both languages."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from bot.agents.offline.choosing import ListedItem, choose_items
from bot.agents.offline.reminder_wishes import reminder_wish

NOW = datetime(2026, 11, 28, 8, 0, tzinfo=ZoneInfo("Asia/Shanghai"))  # a Saturday
THERE = (
    ListedItem("stand-up", "stand-up", datetime(2026, 11, 30, 9, tzinfo=NOW.tzinfo)),
    ListedItem("report", "send the report", datetime(2026, 12, 4, 15, tzinfo=NOW.tzinfo)),
    ListedItem("plants", "water the plants 浇花", datetime(2026, 12, 9, 10, tzinfo=NOW.tzinfo)),
)


@pytest.mark.parametrize(
    ("question", "meant"),
    [
        ("cancel the Friday reminder", "report"),
        ("cancel Friday's reminder", "report"),
        ("取消周五的提醒", "report"),
        ("取消周五那个", "report"),
        ("cancel the one on Friday", "report"),
        ("cancel the 4 December reminder", "report"),
        ("cancel the second one", "report"),
        ("cancel the third", "plants"),
        ("取消第二个提醒", "report"),
        ("取消提醒 2", "report"),
        ("cancel 2", "report"),
        ("cancel the reminder at 15:00", "report"),
        ("取消下午三点的提醒", "report"),
        ("cancel the one about plants", "plants"),
        ("取消浇花的提醒", "plants"),
        ("cancel the next reminder", "stand-up"),
        ("取消下一个提醒", "stand-up"),
        ("cancel the last one", "plants"),
        ("取消明天的提醒", ""),
    ],
)
def test_it_is_the_one_that_is_meant(question: str, meant: str) -> None:
    wanted = reminder_wish(question)
    assert wanted
    assert wanted.kind == "cancel"
    assert [one.id for one in choose_items(wanted.about, THERE, NOW)] == [meant][: bool(meant)]
