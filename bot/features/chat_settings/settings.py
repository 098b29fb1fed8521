"""The commands about a chat's rules: shown to everybody, changed by who manages the chat."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bot.features.chat_settings import form as settings_form
from bot.features.chat_settings import texts
from bot.features.chat_settings.group_access import with_limits
from bot.features.chat_settings.managers import learn_managers
from bot.features.digests.schedules import plan_of
from bot.features.digests.texts import wanted
from bot.features.own_memory.items import Looking
from bot.listening.chat_rules import MAX_INSTRUCTIONS, RULES, ChatRule, ChatRules
from bot.listening.conversation_store import ChatConversations
from bot.outbox.buttons import Reply
from bot.services import Services
from bot.text.slash_commands import Command
from memory.errors import AccessDenied
from memory.kept.digests import DigestStore

_SEPARATOR = re.compile(r"[\s,，:：]+")


async def answer_rule_command(services: Services, command: Command, looking: Looking) -> Reply:
    """Changes a rule, or shows all with a form to change them. Raises `StoreUnavailable`."""
    rule, said = find_rule(command)
    if rule is None:
        return await _shown(services, looking)
    if not _is_there(services, looking, rule):
        return Reply(texts.say(f"absent-{rule.name}", looking.language))
    only = rule.name if rule.choices else None
    if not said:
        return await _shown(services, looking, only=only)
    value = rule.read(said)
    if value is None or (not rule.choices and len(value) > MAX_INSTRUCTIONS):
        return Reply(texts.explain_usage(rule, looking.language))
    if refusal := await _change(services, looking, {rule.name: value}):
        return Reply(refusal)
    return await _shown(services, looking, _changed(looking), form=False, only=only)


def find_rule(command: Command) -> tuple[ChatRule | None, str]:
    """The rule that a command is about, and what it is to be: `/mode all`, `/settings mode all`."""
    if rule := RULES.get(command.name.value):
        return rule, command.words
    word, *rest = _SEPARATOR.split(command.words, maxsplit=1)
    named = (rule for rule in RULES.values() if word.casefold() in (rule.name, rule.chinese))
    return next(named, None), "".join(rest)


async def save_settings(
    services: Services,
    looking: Looking,
    form: Sequence[Mapping[str, Any]],
    values: Mapping[str, Any],
) -> Reply:
    """What was chosen in the form becomes the rules, if the sender may; shown with a form again.
    Raises `StoreUnavailable`."""
    rules = await _rules(services, looking)
    digest = await DigestStore(services.rpc).schedule(looking.context)
    changes = settings_form.changes(settings_form.chosen(form, values), rules, digest)
    if changes and (refusal := await _change(services, looking, changes)):
        return Reply(refusal)
    note = _changed(looking) if changes else texts.say("unchanged", looking.language)
    only = form[0]["name"] if len(form) == 1 else None
    return await _shown(services, looking, note, only=only)


async def _shown(
    services: Services,
    looking: Looking,
    note: str = "",
    *,
    form: bool = True,
    only: str | None = None,
) -> Reply:
    """The rules as they are; the form has `only` that one, or all."""
    rules = await _rules(services, looking)
    here = [rule for rule in RULES.values() if _is_there(services, looking, rule)]
    shown = texts.shown_rules(rules, here, looking.language)
    text = "\n\n".join(part for part in (note, shown) if part)
    if only is None or only == settings_form.DIGEST or RULES[only].needs_hearing:
        text = await with_limits(services, looking.chat_type, text, looking.language)
    if not form:
        return Reply(text)
    every = [*(rule.name for rule in here if rule.choices), settings_form.DIGEST]
    digest = await DigestStore(services.rpc).schedule(looking.context) if not only else None
    button = settings_form.settings_form(
        rules, looking.language, looking.chat_type, names=[only] if only else every, digest=digest
    )
    return Reply(text, (button,))


async def _rules(services: Services, looking: Looking) -> ChatRules:
    return await ChatConversations(services.rpc, looking.context).rules(services.settings)


def _is_there(services: Services, looking: Looking, rule: ChatRule) -> bool:
    return rule.is_there(services.settings, in_group=looking.chat_type != "p2p")


def _changed(looking: Looking) -> str:
    return texts.say("changed", looking.language)


async def _change(services: Services, looking: Looking, values: Mapping[str, str]) -> str:
    """Changes rules, and the schedule of the digest; returns why the sender may not, or ""."""
    language, context = looking.language, looking.context
    if not context.speaks_for_self:
        return texts.explain_refusal(language)
    readable = await learn_managers(services, context, looking.chat_type)
    store = ChatConversations(services.rpc, context)
    try:
        for name, value in values.items():
            if name == settings_form.DIGEST:
                await _schedule_digest(services, looking, value)
            else:
                await store.set_rule(name, value)
    except AccessDenied:
        return texts.explain_refusal(language, managers_known=readable)
    return ""


async def _schedule_digest(services: Services, looking: Looking, value: str) -> None:
    """Raises `AccessDenied` unless the sender manages the chat."""
    asked = wanted(value)
    plan = plan_of(services, asked, looking.language) if asked.kind == "schedule" else None
    await DigestStore(services.rpc).set_schedule(looking.context, looking.turn_id, plan)
