"""The commands about a chat's rules: shown to everybody, changed by who manages the chat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bot.features.chat_settings import form as settings_form
from bot.features.chat_settings import texts
from bot.features.chat_settings.group_access import with_limits
from bot.features.chat_settings.managers import learn_managers
from bot.features.digests.schedules import plan_of
from bot.features.digests.texts import wanted
from bot.features.own_memory.items import Looking
from bot.listening.chat_rules import MAX_INSTRUCTIONS, ChatRules, is_default, rule_said
from bot.listening.conversation_store import ChatConversations
from bot.outbox.buttons import Reply
from bot.services import Services
from bot.text.slash_commands import Command, CommandName
from memory.errors import AccessDenied
from memory.kept.digests import DigestStore

_ON_OFF = {"on": "on", "开": "on", "开启": "on", "off": "off", "关": "off", "关闭": "off"}
_NEED_HEARING = ("mode", "proactive", "digest")
_CHOICES = (CommandName.MODE, CommandName.LANGUAGE)


async def answer_rule_command(services: Services, command: Command, looking: Looking) -> Reply:
    """Changes a rule, or shows all with a form to change them. Raises `StoreUnavailable`."""
    name, language = command.name, looking.language
    note = ""
    if name is CommandName.INSTRUCTIONS and command.words:
        value = "" if is_default(command.argument) else command.words
        if len(value) > MAX_INSTRUCTIONS:
            return Reply(texts.TOO_LONG[language])
        note = await _change(services, looking, {name.value: value})
    elif name in _CHOICES and command.argument:
        wanted_rule = rule_said(name.value, command.argument)
        if not wanted_rule and not is_default(command.argument):
            return Reply(texts.NO_SUCH[language][name.value])
        note = await _change(services, looking, {name.value: wanted_rule or ""})
    elif name is CommandName.PROACTIVE and not _can_proactive(services, looking):
        return Reply(texts.NO_PROACTIVE[language])
    elif name is CommandName.PROACTIVE and command.argument:
        switched = _ON_OFF.get(command.argument)
        if not switched:
            return Reply(texts.NO_SUCH[language][name.value])
        note = await _change(services, looking, {name.value: switched})
    if note not in ("", texts.CHANGED[language]):
        return Reply(note)
    only = None if name in (CommandName.SETTINGS, CommandName.INSTRUCTIONS) else name.value
    return await _shown(services, looking, note, form=not note, only=only)


async def save_settings(
    services: Services,
    looking: Looking,
    form: Sequence[Mapping[str, Any]],
    values: Mapping[str, Any],
) -> Reply:
    """What was chosen in the form becomes the rules, if the sender may; shown with a form again.
    Raises `StoreUnavailable`."""
    language = looking.language
    rules, _ = await _rules(services, looking)
    digest = await DigestStore(services.rpc).schedule(looking.context)
    changed = settings_form.changes(settings_form.chosen(form, values), rules, digest)
    note = await _change(services, looking, changed) if changed else texts.UNCHANGED[language]
    if note not in (texts.CHANGED[language], texts.UNCHANGED[language]):
        return Reply(note)
    only = form[0]["name"] if len(form) == 1 else None
    return await _shown(services, looking, note, only=only)


async def _shown(
    services: Services, looking: Looking, note: str, *, form: bool = True, only: str | None = None
) -> Reply:
    """The rules as they are; the form has `only` that one, or all."""
    language, proactive = looking.language, _can_proactive(services, looking)
    rules, usual = await _rules(services, looking)
    group = looking.chat_type != "p2p"
    shown = texts.shown_rules(rules, language, proactive=proactive, group=group)
    text = "\n\n".join(part for part in (note, shown) if part)
    if only is None or only in _NEED_HEARING:
        text = await with_limits(services, looking.chat_type, text, language)
    if not form:
        return Reply(text)
    every = ["mode", "language", *["proactive"] * proactive, *["history"] * group, "digest"]
    names = [only] if only else every
    digest = await DigestStore(services.rpc).schedule(looking.context) if not only else None
    button = settings_form.settings_form(
        rules, usual, language, looking.chat_type, names=names, digest=digest
    )
    return Reply(text, (button,))


async def _rules(services: Services, looking: Looking) -> tuple[ChatRules, ChatRules]:
    """The rules of the chat, and those of the environment."""
    usual = ChatRules(services.settings.chat_mode, services.settings.chat_language)
    return await ChatConversations(services.rpc, looking.context).rules(usual), usual


def _can_proactive(services: Services, looking: Looking) -> bool:
    return services.settings.proactive and looking.chat_type != "p2p"


async def _change(services: Services, looking: Looking, values: Mapping[str, str]) -> str:
    """Changes rules, and the schedule of the digest, if the sender may; returns what to say."""
    language, context = looking.language, looking.context
    if not context.speaks_for_self:
        return texts.REFUSED[language]
    readable = await learn_managers(services, context, looking.chat_type)
    store = ChatConversations(services.rpc, context)
    try:
        for name, value in values.items():
            if name == "digest":
                await _schedule_digest(services, looking, value)
            else:
                await store.set_rule(name, value)
    except AccessDenied:
        return (texts.REFUSED if readable else texts.UNREADABLE)[language]
    return texts.CHANGED[language]


async def _schedule_digest(services: Services, looking: Looking, value: str) -> None:
    """Raises `AccessDenied` unless the sender manages the chat."""
    asked = wanted(value)
    plan = plan_of(services, asked, looking.language) if asked.kind == "schedule" else None
    await DigestStore(services.rpc).set_schedule(looking.context, looking.turn_id, plan)
