"""What a chat's settings bring."""

from __future__ import annotations

from bot.features.chat_settings.settings import SAVE, answer_rule_command, save_settings
from bot.features.feature import Feature
from bot.text.slash_commands import CommandName

_RULES = (
    CommandName.MODE,
    CommandName.LANGUAGE,
    CommandName.INSTRUCTIONS,
    CommandName.PROACTIVE,
    CommandName.SETTINGS,
)

CHAT_SETTINGS = Feature(
    name="chat_settings",
    commands=dict.fromkeys(_RULES, answer_rule_command),
    presses={SAVE: save_settings},
    settings=frozenset({"chat_mode", "chat_language"}),
)
