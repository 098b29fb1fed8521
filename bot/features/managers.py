"""Who manages a chat, as Feishu says, and what others are told who want to change it."""

from __future__ import annotations

import asyncio

from bot.feishu.errors import FeishuFailure
from bot.services import Services
from bot.text.catalogues import Catalogue
from bot.text.languages import Language
from memory.scope import AgentMemoryContext, ChatType
from memory.tables.chats import ChatStore

_LOOK_UP_S = 5.0
_TEXTS = Catalogue(__file__)


async def learn_managers(
    services: Services, context: AgentMemoryContext, chat_type: ChatType
) -> bool:
    """Stores who manages the chat as Feishu says now; False where it does not say. In p2p that is
    the person themselves."""
    managers: tuple[str, ...] = (context.actor_id,)
    if chat_type != "p2p":
        try:
            async with asyncio.timeout(_LOOK_UP_S):
                managers = (await services.feishu.chat_info(context.chat_id)).managers
        except (TimeoutError, FeishuFailure):
            return False
    await ChatStore(services.rpc).save_managers(context.tenant_key, context.chat_id, managers)
    return bool(managers)


def explain_refusal(language: Language, *, managers_known: bool = True) -> str:
    return _TEXTS.say("refused" if managers_known else "unreadable", language)
