"""The commands about a chat's rules: shown to everybody, changed by who manages the chat."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bot.features.chat_settings import form as settings_form
from bot.features.chat_settings import texts
from bot.features.digests.schedules import plan_of
from bot.features.digests.texts import wanted
from bot.features.feature import CommandTurn, FeatureTurn, PressTurn
from bot.features.help.group_access import hears_all, with_limits
from bot.features.history_import.refusals import reason_against
from bot.features.managers import explain_refusal, learn_managers
from bot.listening.chat_rules import MAX_INSTRUCTIONS, RULES, ChatRule, ChatRules
from bot.listening.conversation_store import ChatConversations
from bot.outbox.buttons import Reply, chosen
from bot.services import Services
from bot.text.slash_commands import Command
from memory.errors import AccessDenied
from memory.tables.digests import DigestStore

SAVE = "settings.save"
_SEPARATOR = re.compile(r"[\s,，:：]+")


async def answer_rule_command(services: Services, here: CommandTurn) -> Reply:
    """Changes a rule, or shows all with a form to change them. Raises `StoreUnavailable`."""
    rule, said = find_rule(here.command)
    if rule is None:
        return await _shown(services, here)
    if not _is_there(services, here, rule):
        return Reply(texts.say(f"absent-{rule.name}", here.language))
    only = rule.name if rule.choices else None
    if not said:
        return await _shown(services, here, only=only)
    value = rule.read(said)
    if value is None or (not rule.choices and len(value) > MAX_INSTRUCTIONS):
        return Reply(texts.explain_usage(rule, here.language))
    if refusal := await _change(services, here, {rule.name: value}):
        return Reply(refusal)
    return await _shown(services, here, _changed(here), form=False, only=only)


def find_rule(command: Command) -> tuple[ChatRule | None, str]:
    """The rule that a command is about, and what it is to be: `/mode all`, `/settings mode all`."""
    if rule := RULES.get(command.name.value):
        return rule, command.words
    word, *rest = _SEPARATOR.split(command.words, maxsplit=1)
    named = (rule for rule in RULES.values() if word.casefold() in (rule.name, rule.chinese))
    return next(named, None), "".join(rest)


async def save_settings(services: Services, here: PressTurn) -> Reply:
    """What was chosen in the form becomes the rules, if the sender may; shown with a form again.
    Saving again after a crash finds it saved, and says so. Raises `StoreUnavailable`."""
    form = here.press.payload["form"]
    rules = await _rules(services, here)
    digest = await DigestStore(services.rpc).schedule(here.context)
    changes = settings_form.changes(chosen(form, here.values), rules, digest)
    if changes and (refusal := await _change(services, here, changes)):
        return Reply(refusal)
    note = _changed(here) if changes else texts.say("unchanged", here.language)
    only = form[0]["name"] if len(form) == 1 else None
    return await _shown(services, here, note, only=only)


async def _shown(
    services: Services,
    here: FeatureTurn,
    note: str = "",
    *,
    form: bool = True,
    only: str | None = None,
) -> Reply:
    """The rules as they are; the form has `only` that one, or all."""
    rules = await _rules(services, here)
    usable = [rule for rule in RULES.values() if _is_there(services, here, rule)]
    in_group = here.chat_type != "p2p"
    shown = texts.shown_rules(
        rules,
        usable,
        here.language,
        in_group=in_group,
        imports=await _imports(services, here, only),
        muted=in_group and await ChatConversations(services.rpc, here.context).is_quiet(),
    )
    text = "\n\n".join(part for part in (note, shown) if part)
    if only is None or only == settings_form.DIGEST or RULES[only].needs_hearing:
        text = await with_limits(services, here.chat_type, text, here.language)
    if not form:
        return Reply(text)
    every = [*(rule.name for rule in usable if rule.choices), settings_form.DIGEST]
    digest = await DigestStore(services.rpc).schedule(here.context) if not only else None
    button = settings_form.settings_form(
        rules, here.language, here.chat_type, names=[only] if only else every, digest=digest
    )
    return Reply(text, (button,))


async def _imports(services: Services, here: FeatureTurn, only: str | None) -> bool:
    """Whether to name the command that imports the history: with all rules, and with its own."""
    if only not in (None, "history") or reason_against(services.settings):
        return False
    return await hears_all(services, here.chat_type)


async def _rules(services: Services, here: FeatureTurn) -> ChatRules:
    return await ChatConversations(services.rpc, here.context).rules(services.settings)


def _is_there(services: Services, here: FeatureTurn, rule: ChatRule) -> bool:
    return rule.is_there(services.settings, in_group=here.chat_type != "p2p")


def _changed(here: FeatureTurn) -> str:
    return texts.say("changed", here.language)


async def _change(services: Services, here: FeatureTurn, values: Mapping[str, str]) -> str:
    """Changes rules, and the schedule of the digest; returns why the sender may not, or ""."""
    language, context = here.language, here.context
    if not context.speaks_for_self:
        return explain_refusal(language)
    readable = await learn_managers(services, context, here.chat_type)
    store = ChatConversations(services.rpc, context)
    try:
        for name, value in values.items():
            if name == settings_form.DIGEST:
                await _schedule_digest(services, here, value)
            else:
                await store.set_rule(name, value)
    except AccessDenied:
        return explain_refusal(language, managers_known=readable)
    return ""


async def _schedule_digest(services: Services, here: FeatureTurn, value: str) -> None:
    """Raises `AccessDenied` unless the sender manages the chat."""
    asked = wanted(value)
    plan = plan_of(services, asked, here.language) if asked.kind == "schedule" else None
    await DigestStore(services.rpc).set_schedule(here.context, here.turn_id, plan)
