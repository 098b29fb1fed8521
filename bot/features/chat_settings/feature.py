"""Shows a chat's rules to anyone who asks, and changes them for those who manage the chat."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from bot.features import commands as command_texts
from bot.features.chat_settings import display
from bot.features.commands import explain_refusal, learn_managers
from bot.features.digests.feature import plan_of
from bot.features.digests.texts import parse_argument
from bot.features.feature import CommandTurn, Feature, FeatureTurn, PressTurn
from bot.features.help import hears_all, with_limits
from bot.features.history_import.standing import reason_against
from bot.features.private_answers.ephemeral_answer import tell_asker
from bot.listening.chat_rules import MAX_INSTRUCTIONS, RULES, ChatRule, ChatRules
from bot.listening.conversation_store import ChatConversations
from bot.outbox.buttons import Reply, chosen_values
from bot.services import Services
from bot.text.slash_commands import Command, CommandName
from memory.errors import AccessDenied
from memory.models import apology_outcome
from memory.scope import MAIN_ROOT, memory_context
from memory.tables.timers import DigestStore

SAVE = "settings.save"
_SEPARATOR = re.compile(r"[\s,，:：]+")

_RULES = (
    CommandName.MODE,
    CommandName.LANGUAGE,
    CommandName.INSTRUCTIONS,
    CommandName.PROACTIVE,
    CommandName.SETTINGS,
)


async def answer_rule_command(services: Services, here: CommandTurn) -> Reply:
    """Changes a rule and says so in one line to the chat. Everything else, the settings themselves
    included, only the sender sees. Raises `StoreUnavailable`."""
    if here.opened.degraded:
        away = command_texts.say("memory-away", here.language)
        return Reply(away, means=apology_outcome("memory_away"))
    rule, value = find_rule(here.command)
    if rule is None or not (value or _why_absent(services, here, rule)):
        show = partial(_settings_reply, services, only=rule.name if rule else None)
    elif refusal := await _set(services, here, rule, value):
        show = partial(_plain_reply, refusal)
    else:
        return await _saved_reply(services, here, rule)
    return await tell_asker(services, here, show)


async def _plain_reply(text: str, _: FeatureTurn) -> Reply:
    return Reply(text)


async def _set(services: Services, here: CommandTurn, rule: ChatRule, written_value: str) -> str:
    """Sets the rule to what was written; returns why that is not possible, or ""."""
    if absent := _why_absent(services, here, rule):
        return absent
    value = rule.read(written_value)
    if value is None or (not rule.choices and len(value) > MAX_INSTRUCTIONS):
        return display.explain_usage(rule, here.language)
    return await _change(services, here, {rule.name: value})


def find_rule(command: Command) -> tuple[ChatRule | None, str]:
    """The rule that a command is about, and what it is to be: `/mode all`, `/settings mode all`."""
    if rule := RULES.get(command.name.value):
        return rule, command.words
    word, *rest = _SEPARATOR.split(command.words, maxsplit=1)
    candidates = (rule for rule in RULES.values() if word.casefold() in (rule.name, rule.chinese))
    return next(candidates, None), "".join(rest)


async def save_settings(services: Services, here: PressTurn) -> Reply:
    """What was chosen in the form becomes the rules, if the sender may; shown with a form again.
    Saving again after a crash finds it saved, and says so. Raises `StoreUnavailable`."""
    form, of = here.press.payload["form"], _in_their_chat(here)
    rules = await _rules(services, of)
    digest = await DigestStore(services.rpc).schedule(of.context)
    changes = display.changed_values(chosen_values(form, here.values), rules, digest)
    if changes and (refusal := await _change(services, of, changes)):
        return Reply(refusal)
    note = display.say("changed" if changes else "unchanged", here.language)
    only = form[0]["name"] if len(form) == 1 else None
    return await _settings_reply(services, of, note, only=only)


def _in_their_chat(here: PressTurn) -> FeatureTurn:
    """The turn in the group whose settings the form shows: the form itself is private."""
    context = here.context
    group = memory_context(
        chat_id=here.press.payload.get("group") or context.chat_id,
        root=MAIN_ROOT,
        subject=context.user_id,
        actor=context.actor_id,
        tenant_key=context.tenant_key,
        chat_type="group",
        actor_tenant=context.actor_tenant,
    )
    if group.chat_id == context.chat_id:
        return here
    return FeatureTurn(group, "group", here.language, here.turn_id, here.beside, here.asked_ms)


async def _saved_reply(services: Services, here: FeatureTurn, rule: ChatRule) -> Reply:
    line = display.rule_line(await _rules(services, here), rule, here.language)
    text = f"{display.say('changed', here.language)} {line}"
    if rule.needs_hearing:
        text = await with_limits(services, here.chat_type, text, here.language)
    return Reply(text)


async def _settings_reply(
    services: Services, here: FeatureTurn, note: str = "", *, only: str | None = None
) -> Reply:
    """The settings, or `only` one of them: a form for those who can change them, else a list."""
    in_group = here.chat_type != "p2p"
    conversations = ChatConversations(services.rpc, here.context)
    if in_group:
        await learn_managers(services, here.context, here.chat_type)
    manages = not in_group or await conversations.is_managed()
    settings_shown = display.ShownSettings(
        rules=await _rules(services, here),
        usable=[rule for rule in RULES.values() if _is_there(services, here, rule)],
        digest=await DigestStore(services.rpc).schedule(here.context),
        imports=await _imports(services, here, only),
        muted=in_group and await conversations.is_quiet(),
        only=only,
    )
    place = "in-p2p" if not in_group else "in-group" if here.beside else "of-group"
    settings_text = display.settings_text(settings_shown, here.language, place=place, form=manages)
    text = "\n\n".join(part for part in (note, settings_text) if part)
    if only not in RULES or RULES[only].needs_hearing:
        text = await with_limits(services, here.chat_type, text, here.language)
    has_form = manages and settings_shown.names_with_choices()
    return Reply(text, (display.settings_form(settings_shown, here),) if has_form else ())


async def _imports(services: Services, here: FeatureTurn, only: str | None) -> bool:
    """Whether to name the command that imports the history: with all rules, and with its own."""
    if only not in (None, "history") or reason_against(services.settings):
        return False
    return await hears_all(services, here.chat_type)


async def _rules(services: Services, here: FeatureTurn) -> ChatRules:
    return await ChatConversations(services.rpc, here.context).rules(services.settings)


def _why_absent(services: Services, here: FeatureTurn, rule: ChatRule) -> str:
    if _is_there(services, here, rule):
        return ""
    return display.say(f"absent-{rule.name}", here.language)


def _is_there(services: Services, here: FeatureTurn, rule: ChatRule) -> bool:
    return rule.is_there(services.settings, in_group=here.chat_type != "p2p")


async def _change(services: Services, here: FeatureTurn, values: Mapping[str, str]) -> str:
    """Changes rules, and the schedule of the digest; returns why the sender may not, or ""."""
    language, context = here.language, here.context
    if not context.speaks_for_self:
        return explain_refusal(language)
    readable = await learn_managers(services, context, here.chat_type)
    store = ChatConversations(services.rpc, context)
    try:
        for name, value in values.items():
            if name == display.DIGEST:
                await _schedule_digest(services, here, value)
            else:
                await store.set_rule(name, value)
    except AccessDenied:
        return explain_refusal(language, managers_known=readable)
    return ""


async def _schedule_digest(services: Services, here: FeatureTurn, value: str) -> None:
    """Raises `AccessDenied` unless the sender manages the chat."""
    request = parse_argument(value)
    plan = plan_of(services, request, here.language) if request.kind == "schedule" else None
    await DigestStore(services.rpc).set_schedule(here.context, here.turn_id, plan)


CHAT_SETTINGS = Feature(
    name="chat_settings",
    commands=dict.fromkeys(_RULES, answer_rule_command),
    presses={SAVE: save_settings},
    settings=frozenset({"chat_mode", "chat_language"}),
)
