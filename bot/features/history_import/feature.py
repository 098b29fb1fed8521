"""What the import of a chat's history brings."""

from __future__ import annotations

from bot.features.feature import Feature
from bot.features.history_import.command import answer_import_command, press_import
from bot.features.history_import.import_buttons import TOOLS
from bot.text.slash_commands import CommandName

HISTORY_IMPORT = Feature(
    name="history_import",
    commands={CommandName.IMPORT: answer_import_command},
    presses=dict.fromkeys(TOOLS, press_import),
)
