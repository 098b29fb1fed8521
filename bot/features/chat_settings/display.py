"""Renders a chat's settings as text and as a form, and reads the form back. Pure.

The catalogues have the words of every rule in `RULES`; `keys_of` lists their keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.features.digests import texts as digest_texts
from bot.features.feature import FeatureTurn
from bot.listening.chat_rules import MAX_INSTRUCTIONS, RULES, ChatRule, ChatRules
from bot.outbox.buttons import FOLLOW_UP_LIVES_S
from bot.text.catalogues import Catalogue
from bot.text.languages import Language, join_list
from bot.text.slash_commands import COMMAND_WORDS
from bot.text.times import repetition_text
from memory.tables.cards import NewButton
from memory.tables.timers import Timer

DEFAULT = "default"
AS_IT_IS = "as it is"
DIGEST_OFF = "off"
_DIGESTS = ("daily 18:00", "weekdays 18:00", "weekly mon 9:00", "weekly fri 17:00")
Options = Sequence[tuple[str, str]]

DIGEST = "digest"
say = Catalogue(__file__).say


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
        "tool": "settings.save",
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
    of_settings = rule.setting and rule.name not in rules.chosen
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
    schedules = ((value, digest_texts.schedule_words(value, language)) for value in _DIGESTS)
    return [*options, *((value, text) for value, text in schedules if text not in shown_texts)]


def keys_of(rule: ChatRule) -> list[str]:
    """The texts that a rule needs, beside those of all rules."""
    absent = [f"absent-{rule.name}"] if rule.only_in_groups else []
    if not rule.choices:
        return [f"rule-{rule.name}", f"too-long-{rule.name}", f"how-{rule.name}", *absent]
    choices = () if rule.is_switch else rule.choices
    choice_keys = (f"choice-{rule.name}-{choice}" for choice in choices)
    return [f"rule-{rule.name}", *absent, *choice_keys]


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
    `imports`: whether the history of the chat can be imported. `muted`: somebody muted the bot,
    which counts more than its mode. `only`: the one rule that was asked for."""

    rules: ChatRules
    usable: Sequence[ChatRule]
    digest: Timer | None = None
    imports: bool = False
    muted: bool = False
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
        and not (form and rule.choices and not (settings_shown.muted and rule.name == "mode"))
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
    text_line = rule_line(settings_shown.rules, rule, language, is_muted=settings_shown.muted)
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
