"""Shows a chat's rules to anyone who asks, and changes them for those who manage the chat."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from bot.features import commands as command_texts
from bot.features.commands import explain_refusal, learn_managers
from bot.features.digests.feature import parse_argument, plan_of, schedule_words
from bot.features.feature import CommandSpec, CommandTurn, Feature, HelpLine
from bot.features.help import hears_all, with_limits
from bot.features.history_import.reporting import reason_against
from bot.features.private_answers.feature import tell_asker, tell_asker_text
from bot.hooks import FeatureTurn, PressTurn
from bot.listening.chat_rules import MAX_INSTRUCTIONS, RULES, ChatRule, ChatRules
from bot.listening.conversation_store import ChatConversations
from bot.outbox.buttons import FOLLOW_UP_LIVES_S, Reply, chosen_values
from bot.services import Services
from bot.text.languages import Catalogue, Language, join_list
from bot.text.slash_commands import COMMAND_WORDS, Command
from bot.text.times import repetition_text
from memory.errors import AccessDenied
from memory.models import apology_outcome
from memory.scope import MAIN_ROOT, memory_context
from memory.tables.cards import NewButton
from memory.tables.timers import DigestStore, Timer

SAVE = "settings.save"
_SEPARATOR = re.compile(r"[\s,，:：]+")

DEFAULT = "default"
AS_IT_IS = "as it is"
DIGEST_OFF = "off"
_DIGESTS = ("daily 18:00", "weekdays 18:00", "weekly mon 9:00", "weekly fri 17:00")
Options = Sequence[tuple[str, str]]

DIGEST = "digest"
say = Catalogue(__file__).say


async def answer_rule_command(services: Services, here: CommandTurn) -> Reply:
    """Changes a rule and says so in one line to the chat. Everything else, the settings themselves
    included, only the sender sees. Raises `StoreUnavailable`."""
    if here.open_turn.degraded:
        away = command_texts.say("memory-away", here.language)
        return Reply(away, means=apology_outcome("memory_away"))
    rule, value = find_rule(here.command)
    if rule is None or not (value or _why_absent(services, here, rule)):
        show = partial(_settings_reply, services, only=rule.name if rule else None)
    elif refusal := await _set(services, here, rule, value):
        return await tell_asker_text(services, here, refusal)
    else:
        return await _saved_reply(services, here, rule)
    return await tell_asker(services, here, show)


async def _set(services: Services, here: CommandTurn, rule: ChatRule, written_value: str) -> str:
    """Sets the rule to what was written; returns why that is not possible, or ""."""
    if absent := _why_absent(services, here, rule):
        return absent
    value = rule.read(written_value)
    if value is None or (not rule.choices and len(value) > MAX_INSTRUCTIONS):
        return explain_usage(rule, here.language)
    return await _change(services, here, {rule.name: value})


def find_rule(command: Command) -> tuple[ChatRule | None, str]:
    """The rule that a command is about, and what it is to be: `/mode all`, `/settings mode all`."""
    if rule := RULES.get(command.name):
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
    changes = changed_values(chosen_values(form, here.values), rules, digest)
    if changes and (refusal := await _change(services, of, changes)):
        return Reply(refusal)
    note = say("changed" if changes else "unchanged", here.language)
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
    line = rule_line(await _rules(services, here), rule, here.language)
    text = say("changed-rule", here.language, line=line)
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
    settings_shown = ShownSettings(
        rules=await _rules(services, here),
        usable=[rule for rule in RULES.values() if _is_there(services, here, rule)],
        digest=await DigestStore(services.rpc).schedule(here.context),
        imports=await _imports(services, here, only),
        is_muted=in_group and await conversations.is_quiet(),
        only=only,
    )
    place = "in-p2p" if not in_group else "in-group" if here.beside else "of-group"
    rules_text = settings_text(settings_shown, here.language, place=place, form=manages)
    text = "\n\n".join(part for part in (note, rules_text) if part)
    if only not in RULES or RULES[only].needs_hearing:
        text = await with_limits(services, here.chat_type, text, here.language)
    has_form = manages and settings_shown.names_with_choices()
    return Reply(text, (settings_form(settings_shown, here),) if has_form else ())


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
    return say(f"absent-{rule.name}", here.language)


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
            if name == DIGEST:
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


def settings_form(settings_shown: ShownSettings, here: FeatureTurn) -> NewButton:
    """The button that saves a select for each setting with choices. It stands where only the person
    reads, so its payload names the group whose settings these are."""
    language, save = here.language, say("save", here.language)
    selects = []
    for name in settings_shown.names_with_choices():
        if name == DIGEST:
            initial, options = (
                _digest_now(settings_shown.digest),
                _digest_options(settings_shown.digest, language),
            )
        else:
            initial = _now(RULES[name], settings_shown.rules)
            options = _options(RULES[name], settings_shown.rules, language)
        label = say(f"rule-{name}", language)
        options_offered = [(value, text[:1].upper() + text[1:]) for value, text in options]
        selects.append(
            {"name": name, "label": label, "initial": initial, "options": options_offered}
        )
    payload = {
        "tool": SAVE,
        "text": save,
        "again": True,
        "language": language,
        "form": selects,
        "group": here.context.chat_id if here.chat_type != "p2p" else "",
        "beside": here.beside,
    }
    return NewButton(save, "follow_up", payload, "p2p", FOLLOW_UP_LIVES_S)


def changed_values(
    values: Mapping[str, str], rules: ChatRules, digest: Timer | None
) -> dict[str, str]:
    """Those of `values` that are not so already, as they are stored."""
    changed_values = {
        name: "" if values[name] == DEFAULT else rule.value_of(values[name])
        for name, rule in RULES.items()
        if values.get(name, _now(rule, rules)) != _now(rule, rules)
    }
    if values.get(DIGEST, AS_IT_IS) not in (AS_IT_IS, _digest_now(digest)):
        changed_values[DIGEST] = values[DIGEST]
    return changed_values


def _now(rule: ChatRule, rules: ChatRules) -> str:
    """What is selected in the form as it is shown."""
    of_settings = rule.setting and rule.name not in rules.own_values
    return DEFAULT if of_settings else rules.choice(rule.name)


def _options(rule: ChatRule, rules: ChatRules, language: Language) -> Options:
    usual = [(DEFAULT, usual_choice_label(rule, rules, language))] if rule.setting else []
    return [*usual, *((one, choice_label(rule, one, language)) for one in rule.choices)]


def _digest_now(digest: Timer | None) -> str:
    return AS_IT_IS if digest else DIGEST_OFF


def _digest_options(digest: Timer | None, language: Language) -> Options:
    options = [(DIGEST_OFF, say("switch-off", language))]
    if digest:
        plan = digest.plan
        options.append((AS_IT_IS, repetition_text(plan.repeats, plan.local_at, language)))
    shown_texts = {text for _, text in options}
    schedules = ((value, schedule_words(value, language)) for value in _DIGESTS)
    return [*options, *((value, text) for value, text in schedules if text not in shown_texts)]


def explain_usage(rule: ChatRule, language: Language) -> str:
    """What to write instead of something that is no value of the rule."""
    if not rule.choices:
        return say(f"too-long-{rule.name}", language, most=MAX_INSTRUCTIONS)
    choices = join_list(
        (rule.word(one, chinese=language == "zh") for one in rule.choices), language
    )
    key = "usage-of-switch" if rule.is_switch else "usage"
    return say(key, language, command=_command(rule, language), choices=choices)


def _command(rule: ChatRule, language: Language) -> str:
    """`/mode`, or `/settings` with the rule where it has no slash word of its own."""
    word = rule.chinese if language == "zh" else rule.name
    return f"/{word}" if word in COMMAND_WORDS else say("in-settings", language, word=word)


def choice_label(rule: ChatRule, choice: str, language: Language) -> str:
    """A choice in the form."""
    return say(f"switch-{choice}", language) if rule.is_switch else _meaning(rule, choice, language)


def usual_choice_label(rule: ChatRule, rules: ChatRules, language: Language) -> str:
    """The choice of what is usual, in the form."""
    return say("default", language, value=choice_label(rule, rules.usual[rule.name], language))


@dataclass(frozen=True, slots=True)
class ShownSettings:
    """The settings of a chat as they are shown. `usable`: the rules that such a chat can have.
    `imports`: whether the history of the chat can be imported. `is_muted`: somebody muted the bot,
    which counts more than its mode. `only`: the one rule that was asked for."""

    rules: ChatRules
    usable: Sequence[ChatRule]
    digest: Timer | None = None
    imports: bool = False
    is_muted: bool = False
    only: str | None = None

    def names_with_choices(self) -> list[str]:
        """The settings of which one is chosen from a list."""
        names = [*(rule.name for rule in self.usable if rule.choices), DIGEST]
        return [name for name in names if self.only in (None, name)]


def settings_text(
    settings_shown: ShownSettings, language: Language, *, place: str, form: bool
) -> str:
    """One line for each setting. `form`: the reader can change them, and a form below shows those
    that have choices. `place`: `in-group`, `of-group` (shown elsewhere) or `in-p2p`."""
    lines = [
        _line_of(settings_shown, rule, language, form=form)
        for rule in settings_shown.usable
        if settings_shown.only in (None, rule.name)
        and not (form and rule.choices and not (settings_shown.is_muted and rule.name == "mode"))
    ]
    if settings_shown.only is None and not form:
        lines.append(_digest_line(settings_shown.digest, language))
    if settings_shown.imports:
        lines.append(say("import-in-p2p" if place == "in-p2p" else "import-in-group", language))
    if place == "in-p2p":
        lines += ["", say("who-in-p2p", language)]
    elif not form:
        lines += ["", say("who-in-group", language)]
    return "\n".join((say(f"intro-{place}", language), "", *lines)).strip()


def _line_of(
    settings_shown: ShownSettings, rule: ChatRule, language: Language, *, form: bool
) -> str:
    text_line = rule_line(settings_shown.rules, rule, language, is_muted=settings_shown.is_muted)
    return text_line if rule.choices or not form else text_line + say(f"how-{rule.name}", language)


def rule_line(
    rules: ChatRules, rule: ChatRule, language: Language, *, is_muted: bool = False
) -> str:
    """What holds of one rule."""
    key = "shown-muted" if is_muted and rule.name == "mode" else "shown-value"
    value = _meaning(rule, rules.choice(rule.name), language)
    return say(key, language, name=say(f"rule-{rule.name}", language), value=value)


def _digest_line(digest: Timer | None, language: Language) -> str:
    when = repetition_text(digest.plan.repeats, digest.plan.local_at, language) if digest else ""
    value = when or say("now-off", language)
    return say("shown-value", language, name=say(f"rule-{DIGEST}", language), value=value)


def _meaning(rule: ChatRule, value: str, language: Language) -> str:
    if not rule.choices:
        return " ".join(value.replace("`", "'").split()) or say("none", language)
    key = f"now-{value}" if rule.is_switch else f"choice-{rule.name}-{value}"
    return say(key, language)


CHAT_SETTINGS = Feature(
    name="chat_settings",
    commands=(
        CommandSpec(words=("mode", "模式"), run=answer_rule_command),
        CommandSpec(words=("language", "语言"), run=answer_rule_command),
        CommandSpec(words=("instructions", "要求"), run=answer_rule_command),
        CommandSpec(
            words=("proactive", "主动"),
            run=answer_rule_command,
            help=(
                HelpLine(
                    "`/proactive on`: I also answer questions nobody has answered, if the "
                    "answer was given here before; `/proactive off` turns this off",
                    "`/主动 开`：没有人回答的问题，如果以前有人在群里说过答案，我会主动回答；"
                    "`/主动 关` 关闭",
                    lambda here: here.in_group and here.proactive and here.hears,
                ),
            ),
        ),
        CommandSpec(
            words=("settings", "设置"),
            run=answer_rule_command,
            help=(
                HelpLine(
                    "`/settings`: my settings in this group; the group owner, admins and "
                    "whoever added me can change them here or with `/mode`, `/language` "
                    "and `/instructions`",
                    "`/设置`：我在这个群的设置；群主、群管理员和把我加进群的人可以修改，"
                    "也可以用 `/模式`、`/语言`、`/要求` 修改",
                    lambda here: here.in_group,
                ),
                HelpLine(
                    "`/settings`: my settings in our private chat; you can also change them "
                    "with `/language`, `/instructions`",
                    "`/设置`：我在单聊里的设置；也可以用 `/语言`、`/要求` 修改",
                    lambda here: not here.in_group,
                ),
            ),
        ),
    ),
    presses={SAVE: save_settings},
    settings=frozenset({"chat_mode", "chat_language"}),
)
