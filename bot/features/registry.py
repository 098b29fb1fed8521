"""The features of the bot: one line adds one."""

from __future__ import annotations

from bot.features.feature import Feature
from bot.features.files.feature import FILES
from bot.features.reminders.feature import REMINDERS

FEATURES: tuple[Feature, ...] = (REMINDERS, FILES)

TOOLS = tuple(tool for feature in FEATURES for tool in feature.tools)
