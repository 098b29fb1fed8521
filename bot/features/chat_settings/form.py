"""The form below `/settings`: a select for each rule, and what was chosen in it. Pure.

What stands in it is kept with its button, so that a choice is checked against what was offered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.features.chat_settings import texts
from bot.features.chat_settings.texts import DIGEST
from bot.features.digests import texts as digest_texts
from bot.features.feature import FeatureTurn
from bot.listening.chat_rules import RULES, ChatRule, ChatRules
from bot.outbox.buttons import FOLLOW_UP_LIVES_S
from bot.text.dates.spoken import often
from bot.text.languages import Language
from memory.tables.buttons import NewButton
from memory.tables.timers import Timer

DEFAULT = "default"
AS_IT_IS = "as it is"
DIGEST_OFF = "off"
_DIGESTS = ("daily 18:00", "weekdays 18:00", "weekly mon 9:00", "weekly fri 17:00")

Options = Sequence[tuple[str, str]]


def settings_form(settings_shown: texts.Shown, here: FeatureTurn) -> NewButton:
    """The button that saves a select for each setting with choices. It stands where only the person
    reads, so its payload names the group whose settings these are."""
    language, save = here.language, texts.say("save", here.language)
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
        label = texts.say(f"rule-{name}", language)
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


def changes(values: Mapping[str, str], rules: ChatRules, digest: Timer | None) -> dict[str, str]:
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
    usual = [(DEFAULT, texts.usual_option(rule, rules, language))] if rule.setting else []
    return [*usual, *((one, texts.option(rule, one, language)) for one in rule.choices)]


def _digest_now(digest: Timer | None) -> str:
    return AS_IT_IS if digest else DIGEST_OFF


def _digest_options(digest: Timer | None, language: Language) -> Options:
    options = [(DIGEST_OFF, texts.say("switch-off", language))]
    if digest:
        plan = digest.plan
        options.append((AS_IT_IS, often(plan.repeats, plan.local_at, language)))
    shown_texts = {text for _, text in options}
    schedules = ((value, digest_texts.when_wanted(value, language)) for value in _DIGESTS)
    return [*options, *((value, text) for value, text in schedules if text not in shown_texts)]
