"""What reminders bring."""

from __future__ import annotations

from bot.features.feature import Feature
from bot.features.reminders.firing import fire_reminder
from bot.features.reminders.listing import CANCEL_REMINDER, press_reminder, show_reminders
from bot.features.reminders.tools import reminder_tools
from bot.text.slash_commands import CommandName

REMINDERS = Feature(
    name="reminders",
    commands={CommandName.REMINDERS: show_reminders},
    tools=reminder_tools(),
    presses={CANCEL_REMINDER: press_reminder},
    timers={"reminder": fire_reminder},
)
