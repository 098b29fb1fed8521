"""The features of the bot: one line adds one."""

from __future__ import annotations

from bot.features.calendar.feature import CALENDAR
from bot.features.chat_settings.feature import CHAT_SETTINGS
from bot.features.commands.feature import COMMANDS
from bot.features.connect.feature import CONNECT
from bot.features.digests.feature import DIGESTS
from bot.features.documents.feature import DOCUMENTS
from bot.features.feature import Feature
from bot.features.files.feature import FILES
from bot.features.help.feature import HELP
from bot.features.history_import.feature import HISTORY_IMPORT
from bot.features.own_memory.feature import OWN_MEMORY
from bot.features.private_answers.feature import PRIVATE_ANSWERS
from bot.features.reminders.feature import REMINDERS
from bot.features.unasked.feature import UNASKED
from memory.tables.buttons import Press

FEATURES: tuple[Feature, ...] = (
    HELP,
    COMMANDS,
    CHAT_SETTINGS,
    HISTORY_IMPORT,
    CONNECT,
    OWN_MEMORY,
    PRIVATE_ANSWERS,
    REMINDERS,
    DIGESTS,
    UNASKED,
    FILES,
    DOCUMENTS,
    CALENDAR,
)

COMMAND_FUNCTIONS = {
    name: function for feature in FEATURES for name, function in feature.commands.items()
}
PERSONAL_COMMANDS = frozenset(name for feature in FEATURES for name in feature.personal)
TOOLS = tuple(tool for feature in FEATURES for tool in feature.tools)
PRESSES = {name: press for feature in FEATURES for name, press in feature.presses.items()}
DELETING_PRESSES = {
    name: press for feature in FEATURES for name, press in feature.deleting_presses.items()
}
TIMERS = {kind: fire for feature in FEATURES for kind, fire in feature.timers.items()}


def press_name(press: Press) -> str:
    """The name by which a feature brings what the button does; "" where it asks a question or
    cancels."""
    payload = press.payload
    if press.kind == "confirm":
        return str(payload["tool"]) if payload["decision"] == "confirm" else ""
    if press.kind == "share":
        return "private.share"
    return str(payload.get("tool") or "")
