"""The form below `/settings`: a select for each rule, and what was chosen in it. Pure.

What stands in it is kept with its button, so that a choice is checked against what was offered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bot.features.chat_settings.texts import HISTORY_MEANS, LANGUAGE_MEANS, MODE_MEANS, NAMES, Texts
from bot.features.digests import texts as digest_texts
from bot.listening.chat_rules import HISTORIES, LANGUAGES, MODES, ChatRules
from bot.outbox.buttons import FOLLOW_UP_LIVES_S
from bot.text.languages import Language
from memory.kept.buttons import NewButton
from memory.kept.timers import Timer
from memory.scope import ChatType

DEFAULT = "default"
AS_IT_IS = "as it is"
DIGEST_OFF = "off"
_DIGESTS = ("daily 18:00", "weekdays 18:00", "weekly mon 9:00", "weekly fri 17:00")

SAVE: Texts = {"zh": "保存设置", "en": "Save settings"}
_DEFAULT: Texts = {"zh": "默认（{value}）", "en": "Default ({value})"}
_ON_OFF: Mapping[Language, Mapping[str, str]] = {
    "zh": {"on": "开", "off": "关"},
    "en": {"on": "On", "off": "Off"},
}

Options = Sequence[tuple[str, str]]


def settings_form(
    rules: ChatRules,
    usual: ChatRules,
    language: Language,
    chat_type: ChatType,
    *,
    names: Sequence[str],
    digest: Timer | None = None,
) -> NewButton:
    """The button that saves a select for each of `names` (mode, language, proactive, digest,
    history)."""
    selects = []
    for name in names:
        initial, options = _offered(name, rules, usual, digest, language)
        label = NAMES[language][name]
        selects.append({"name": name, "label": label, "initial": initial, "options": options})
    payload = {"text": SAVE[language], "again": True, "language": language, "form": selects}
    return NewButton(SAVE[language], "follow_up", payload, chat_type, FOLLOW_UP_LIVES_S)


def chosen(form: Sequence[Mapping[str, Any]], values: Mapping[str, Any]) -> dict[str, str]:
    """What a submitted form says, name → value, as far as it was offered."""
    offered = {one["name"]: {value for value, _ in one["options"]} for one in form}
    return {
        name: values[name]
        for name, known in offered.items()
        if isinstance(values.get(name), str) and values[name] in known
    }


def changes(values: Mapping[str, str], rules: ChatRules, digest: Timer | None) -> dict[str, str]:
    """Those of `values` that are not so already; a rule "" is given back to the environment."""
    now = {
        "mode": rules.mode if "mode" in rules.own else DEFAULT,
        "language": rules.language if "language" in rules.own else DEFAULT,
        "proactive": "on" if rules.proactive else "off",
        "digest": AS_IT_IS if digest else DIGEST_OFF,
        "history": rules.history,
    }
    return {
        name: "" if value in (DEFAULT, "shown") else value
        for name, value in values.items()
        if value not in (now[name], AS_IT_IS)
    }


def _offered(
    name: str, rules: ChatRules, usual: ChatRules, digest: Timer | None, language: Language
) -> tuple[str, Options]:
    """What is so now, and what can be chosen."""
    match name:
        case "mode":
            return _rule(rules, usual, name, MODES, MODE_MEANS[language], language)
        case "language":
            return _rule(rules, usual, name, LANGUAGES, LANGUAGE_MEANS[language], language)
        case "proactive":
            return "on" if rules.proactive else "off", tuple(_ON_OFF[language].items())
        case "history":
            return rules.history, tuple((one, HISTORY_MEANS[language][one]) for one in HISTORIES)
        case _:
            return _digest(digest, language)


def _rule(
    rules: ChatRules,
    usual: ChatRules,
    name: str,
    values: Sequence[str],
    means: Mapping[str, str],
    language: Language,
) -> tuple[str, Options]:
    initial = getattr(rules, name) if name in rules.own else DEFAULT
    usually = _DEFAULT[language].format(value=means[getattr(usual, name)])
    return initial, ((DEFAULT, usually), *((value, means[value]) for value in values))


def _digest(digest: Timer | None, language: Language) -> tuple[str, Options]:
    options = [(DIGEST_OFF, _ON_OFF[language]["off"])]
    if digest:
        plan = digest.plan
        options.append((AS_IT_IS, digest_texts.when(plan.repeats, plan.local_at, language).strip()))
    shown = {text for _, text in options}
    options += [
        (value, text)
        for value in _DIGESTS
        if (text := digest_texts.when_wanted(value, language).strip()) not in shown
    ]
    return AS_IT_IS if digest else DIGEST_OFF, options
