"""The commands about a chat's rules: shown to everybody, changed by who manages the chat."""

from __future__ import annotations

import asyncio

from bot.commands import rule_texts as texts
from bot.feishu.errors import FeishuError, FeishuFailure
from bot.group.rules import LANGUAGES, MAX_INSTRUCTIONS, MODES, ChatRules
from bot.group.store import ChatConversations
from bot.languages import Language
from bot.reply.buttons import Reply, offered
from bot.services import Services
from bot.slash import Command, CommandName
from memory.errors import AccessDenied
from memory.kept.chats import ChatStore
from memory.scope import AgentMemoryContext, ChatType

_LOOK_UP_S = 5.0
_CHAT_INFO = "chat info"
_DEFAULT = frozenset({"default", "默认", "none", "off", "无"})
_ON_OFF = {"on": "on", "开": "on", "开启": "on", "off": "off", "关": "off", "关闭": "off"}
_CHOICES = {CommandName.MODE: MODES, CommandName.LANGUAGE: LANGUAGES}
_SHOWN_AS = {
    CommandName.MODE: {"zh": "/模式", "en": "/mode"},
    CommandName.LANGUAGE: {"zh": "/语言", "en": "/language"},
}


async def answer_rule_command(
    services: Services,
    command: Command,
    context: AgentMemoryContext,
    chat_type: ChatType,
    language: Language,
) -> Reply:
    """Changes a rule, or shows all with a button for each choice. Raises `StoreUnavailable`."""
    name = command.name
    can_proactive = services.settings.proactive and chat_type != "p2p"
    store = ChatConversations(services.rpc, context)
    note = ""
    if name is CommandName.INSTRUCTIONS and command.words:
        value = "" if command.argument in _DEFAULT else command.words
        if len(value) > MAX_INSTRUCTIONS:
            return Reply(texts.TOO_LONG[language])
        note = await _change(services, context, chat_type, name, value, language)
    elif name in _CHOICES and command.argument:
        value = "" if command.argument in _DEFAULT else command.argument
        if value and value not in _CHOICES[name]:
            return Reply(texts.NO_SUCH[language][name.value])
        note = await _change(services, context, chat_type, name, value, language)
    elif name is CommandName.PROACTIVE and not can_proactive:
        return Reply(texts.NO_PROACTIVE[language])
    elif name is CommandName.PROACTIVE and command.argument:
        wanted = _ON_OFF.get(command.argument)
        if not wanted:
            return Reply(texts.NO_SUCH[language][name.value])
        note = await _change(services, context, chat_type, name, wanted, language)
    if note not in ("", texts.CHANGED[language]):
        return Reply(note)
    usual = ChatRules(services.settings.chat_mode, services.settings.chat_language)
    shown = texts.shown_rules(await store.rules(usual), language, proactive=can_proactive)
    buttons = [
        f"{words[language]} {value}"
        for which, words in _SHOWN_AS.items()
        for value in _CHOICES[which]
        if name in (which, CommandName.SETTINGS)
    ]
    text = "\n\n".join(part for part in (note, shown) if part)
    return Reply(text, () if note else offered(buttons, chat_type, again=True))


async def _change(
    services: Services,
    context: AgentMemoryContext,
    chat_type: ChatType,
    name: CommandName,
    value: str,
    language: Language,
) -> str:
    """Changes a rule if the sender may; returns what to say about it."""
    if not context.speaks_for_self:
        return texts.REFUSED[language]
    readable = await learn_managers(services, context, chat_type)
    try:
        await ChatConversations(services.rpc, context).set_rule(name.value, value)
    except AccessDenied:
        return (texts.REFUSED if readable else texts.UNREADABLE)[language]
    return texts.CHANGED[language]


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
        except (TimeoutError, FeishuFailure) as exc:
            if isinstance(exc, FeishuError):
                services.denials.note(_CHAT_INFO)
            return False
    await ChatStore(services.rpc).save_managers(context.tenant_key, context.chat_id, managers)
    return bool(managers)
