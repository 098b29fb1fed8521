"""Whether Feishu lets the bot hear and read a group, and what is said where it does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.features.help.capabilities import SetUp, set_up
from bot.features.help.texts import say
from bot.feishu.denials import lacks
from bot.feishu.manifest import GROUP_MESSAGES
from bot.services import Services
from bot.text.languages import Language
from memory.scope import ChatType


async def hears_all(services: Services, chat_type: ChatType) -> bool:
    """Whether all that is said in such a chat reaches the bot, as far as Feishu says."""
    return chat_type == "p2p" or not await lacks(services.feishu, services.denials, GROUP_MESSAGES)


async def set_up_here(services: Services, chat_type: ChatType, rules: Mapping[str, Any]) -> SetUp:
    """What the bot can do there; `rules` is a row of `get_chat_rules`."""
    hears = await hears_all(services, chat_type)
    return set_up(services.settings, chat_type, rules, hears=hears)


async def with_limits(
    services: Services, chat_type: ChatType, text: str, language: Language
) -> str:
    """`text`, with what the bot cannot hear there below it."""
    if await hears_all(services, chat_type):
        return text
    return f"{text}\n\n{say('mentions-only', language)}"
