"""The texts about a chat's rules, in both languages. Pure.

The catalogues have the words of every rule in `RULES`; `keys_of` says under which keys.
"""

from __future__ import annotations

from collections.abc import Iterable

from bot.listening.chat_rules import MAX_INSTRUCTIONS, ChatRule, ChatRules
from bot.text.catalogues import Catalogue
from bot.text.languages import Language, join_list
from bot.text.slash_commands import WORDS

say = Catalogue(__file__).say


def keys_of(rule: ChatRule) -> list[str]:
    """The texts that a rule needs, beside those of all rules."""
    absent = [f"absent-{rule.name}"] if rule.only_in_groups else []
    if not rule.choices:
        return [f"rule-{rule.name}", f"too-long-{rule.name}", *absent]
    choices = () if rule.is_switch else rule.choices
    named = (f"choice-{rule.name}-{choice}" for choice in choices)
    return [f"rule-{rule.name}", f"select-{rule.name}", *absent, *named]


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


def shown_rules(
    rules: ChatRules,
    shown: Iterable[ChatRule],
    language: Language,
    *,
    in_group: bool,
    imports: bool = False,
    muted: bool = False,
) -> str:
    """What holds, where it comes from, and who can change it. `imports`: whether the history of the
    chat can be imported. `muted`: somebody muted the bot, which counts more than its mode."""
    where = "in-group" if in_group else "in-p2p"
    lines = [_line(rules, rule, language, muted=muted) for rule in shown]
    if imports:
        lines.append(say(f"import-{where}", language))
    return "\n".join(
        (say(f"intro-{where}", language), "", *lines, "", say(f"who-{where}", language))
    )


def _line(rules: ChatRules, rule: ChatRule, language: Language, *, muted: bool) -> str:
    choice = rules.choice(rule.name)
    name = say(f"rule-{rule.name}", language)
    if muted and rule.name == "mode":
        return say("shown-muted", language, name=name, value=_meaning(rule, choice, language))
    source = say("own" if rule.name in rules.chosen else "usual", language)
    meaning = _meaning(rule, choice, language)
    return say("shown-value", language, name=name, value=meaning, source=source)


def _meaning(rule: ChatRule, value: str, language: Language) -> str:
    if not rule.choices:
        return " ".join(value.replace("`", "'").split()) or say("none", language)
    key = f"now-{value}" if rule.is_switch else f"choice-{rule.name}-{value}"
    return say(key, language)
