"""What reminders bring."""

from __future__ import annotations

from bot.features.feature import Feature
from bot.features.reminders.tools import reminder_tools

REMINDERS = Feature(name="reminders", tools=reminder_tools())
