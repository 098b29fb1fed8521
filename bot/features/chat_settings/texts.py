"""The texts about a chat's rules, in both languages. Pure.

The catalogues have the words of every rule in `RULES`; `keys_of` says under which keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.listening.chat_rules import MAX_INSTRUCTIONS, ChatRule, ChatRules
from bot.text.catalogues import Catalogue
from bot.text.dates.spoken import often
from bot.text.languages import Language, join_list
from bot.text.slash_commands import WORDS
from memory.tables.timers import Timer

DIGEST = "digest"

say = Catalogue(__file__).say


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
    return f"/{word}" if word in WORDS else say("in-settings", language, word=word)


def option(rule: ChatRule, choice: str, language: Language) -> str:
    """A choice in the form."""
    return say(f"switch-{choice}", language) if rule.is_switch else _meaning(rule, choice, language)


def usual_option(rule: ChatRule, rules: ChatRules, language: Language) -> str:
    """The choice of what is usual, in the form."""
    return say("default", language, value=option(rule, rules.usual[rule.name], language))


@dataclass(frozen=True, slots=True)
class Shown:
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


def told(settings_shown: Shown, language: Language, *, place: str, form: bool) -> str:
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


def _line_of(settings_shown: Shown, rule: ChatRule, language: Language, *, form: bool) -> str:
    text_line = line(settings_shown.rules, rule, language, is_muted=settings_shown.muted)
    return text_line if rule.choices or not form else text_line + say(f"how-{rule.name}", language)


def line(rules: ChatRules, rule: ChatRule, language: Language, *, is_muted: bool = False) -> str:
    """What holds of one rule."""
    key = "shown-muted" if is_muted and rule.name == "mode" else "shown-value"
    value = _meaning(rule, rules.choice(rule.name), language)
    return say(key, language, name=say(f"rule-{rule.name}", language), value=value)


def _digest_line(digest: Timer | None, language: Language) -> str:
    when = often(digest.plan.repeats, digest.plan.local_at, language) if digest else ""
    value = when or say("now-off", language)
    return say("shown-value", language, name=say(f"rule-{DIGEST}", language), value=value)


def _meaning(rule: ChatRule, value: str, language: Language) -> str:
    if not rule.choices:
        return " ".join(value.replace("`", "'").split()) or say("none", language)
    key = f"now-{value}" if rule.is_switch else f"choice-{rule.name}-{value}"
    return say(key, language)
