"""What help brings."""

from __future__ import annotations

from bot.features.feature import Feature
from bot.features.help.commands import explain, show_help
from bot.text.slash_commands import CommandName

HELP = Feature(
    name="help",
    commands={CommandName.HELP: show_help, CommandName.WHY: explain},
)
