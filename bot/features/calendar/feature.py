"""What calendars and tasks bring."""

from __future__ import annotations

from bot.features.calendar.tools import BOOK, MAKE_TASK, calendar_tools
from bot.features.calendar.writing import UNDO, press_book, press_task, press_undo
from bot.features.feature import Feature

CALENDAR = Feature(
    name="calendar",
    tools=calendar_tools(),
    presses={BOOK: press_book, MAKE_TASK: press_task, UNDO: press_undo},
)
