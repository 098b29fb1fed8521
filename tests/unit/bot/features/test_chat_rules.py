"""The table of a chat's rules: every rule has its words, and a rule is read as people write it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import get_args, get_type_hints

import polib
import pytest

from bot.features import chat_settings
from bot.features.chat_settings import find_rule
from bot.listening.chat_rules import (
    MAX_INSTRUCTIONS,
    RULES,
    ChatRule,
    Mode,
    RuleLanguage,
    owner_instructions,
    rules_of,
)
from bot.settings import Settings
from bot.text.languages import Language
from bot.text.slash_commands import COMMAND_WORDS, parse_command

SETTINGS = Settings()
SAMPLE = ChatRule("sample", "示例", {"follow": "yes 跟随", "ignore": "no 忽略"}, "follow")


def keys_of(rule: ChatRule) -> list[str]:
    """The texts that a rule needs, beside those of all rules."""
    absent = [f"absent-{rule.name}"] if rule.only_in_groups else []
    if not rule.choices:
        return [f"rule-{rule.name}", f"too-long-{rule.name}", f"how-{rule.name}", *absent]
    choices = () if rule.is_switch else rule.choices
    choice_keys = (f"choice-{rule.name}-{choice}" for choice in choices)
    return [f"rule-{rule.name}", *absent, *choice_keys]


def forgotten(rules: Mapping[str, ChatRule]) -> list[str]:
    """What a rule lacks in a catalogue, and where it belongs."""
    found = []
    for key in (key for rule in rules.values() for key in keys_of(rule)):
        for language in get_args(Language):
            try:
                chat_settings.say(key, language, most=MAX_INSTRUCTIONS)
            except KeyError:
                found.append(f'add msgid "{key}" to chat_settings/texts.{language}.po')
    return found


def test_every_rule_has_its_words() -> None:
    assert not (lacks := forgotten(RULES)), "\n".join(lacks)


def test_no_words_are_left_of_a_rule_that_is_gone() -> None:
    catalogue = polib.pofile(
        str(Path(chat_settings.__file__).with_suffix(".en.po")), encoding="utf-8"
    )
    kinds = ("rule-", "select-", "choice-", "absent-", "too-long-")
    of_rules = {entry.msgid for entry in catalogue if entry.msgid.startswith(kinds)}
    needed = {key for rule in RULES.values() for key in keys_of(rule)}

    assert of_rules - needed == {f"rule-{chat_settings.DIGEST}"}


def test_a_rule_without_words_is_told_which_ones_to_add() -> None:
    lacks = forgotten({**RULES, "sample": SAMPLE})

    assert len(lacks) == 6
    assert 'add msgid "rule-sample" to chat_settings/texts.en.po' in lacks
    assert 'add msgid "choice-sample-ignore" to chat_settings/texts.zh.po' in lacks
    of_groups = forgotten({"sample": replace(SAMPLE, only_in_groups=True)})
    assert 'add msgid "absent-sample" to chat_settings/texts.en.po' in of_groups


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.name)
def test_a_rule_of_the_table_is_whole(rule: ChatRule) -> None:
    assert re.fullmatch("[a-z][a-z_]*", rule.name), "the database takes no other names"
    assert COMMAND_WORDS.get(rule.name) == COMMAND_WORDS.get(rule.chinese), (
        "a word of another command"
    )
    assert rule.usual(SETTINGS) in rule.choices or not rule.choices
    assert rule.prompts.keys() <= rule.choices.keys()
    written = [word for one, more in rule.choices.items() for word in (one, *more.split())]
    assert len(written) == len(set(written)), "a word for two choices"


@pytest.mark.parametrize(
    ("name", "literal"), [("mode", Mode), ("language", RuleLanguage)], ids=["mode", "language"]
)
def test_types_and_settings_have_the_choices_of_the_table(name: str, literal: object) -> None:
    rule = RULES[name]

    assert set(get_args(literal)) == rule.choices.keys()
    assert set(get_args(get_type_hints(Settings)[rule.setting])) == rule.choices.keys()


@pytest.mark.parametrize(
    ("name", "written", "stored"),
    [
        ("mode", "Mentions.", "mention"),
        ("mode", "都回答！", "all"),
        ("mode", "恢复默认", ""),
        ("mode", "loud", None),
        ("language", "  Chinese ", "zh"),
        ("proactive", "开", "on"),
        ("proactive", "off", ""),
        ("history", "Hidden", "hidden"),
        ("history", "shown", "shown"),
        ("history", "可见", "shown"),
        ("history", "unstated", ""),
        ("history", "default", ""),
        ("instructions", "Be brief. 默认", "Be brief. 默认"),
        ("instructions", "默认", ""),
    ],
)
def test_a_value_is_read_in_either_language(name: str, written: str, stored: str | None) -> None:
    assert RULES[name].read(written) == stored


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("/mode All", "mode", "All"),
        ("/设置 历史 隐藏", "history", "隐藏"),
        ("/settings History: hidden", "history", "hidden"),
        ("/settings instructions Be brief, please", "instructions", "Be brief, please"),
        ("/settings history", "history", ""),
    ],
)
def test_a_command_names_a_rule_by_its_own_word_or_below_settings(
    text: str, name: str, said: str
) -> None:
    command = parse_command(text)
    assert command

    assert find_rule(command) == (RULES[name], said)


@pytest.mark.parametrize("text", ["/settings", "/设置", "/settings please", "/settings 42 mode"])
def test_settings_without_a_rule_are_all_of_them(text: str) -> None:
    command = parse_command(text)
    assert command

    assert find_rule(command)[0] is None


def test_a_stored_value_that_the_table_lacks_does_not_count() -> None:
    row = {"mode": "loud", "history": 1, "proactive": None, "gone": "on", "language": "zh"}
    rules = rules_of(row, SETTINGS)

    assert dict(rules.own_values) == {"language": "zh"}
    assert rules.mode == SETTINGS.chat_mode
    assert rules_of(None, SETTINGS).choice("history") == "unstated"
    with pytest.raises(KeyError):
        rules.choice("gone")


def test_a_select_of_a_rule_that_is_gone_changes_nothing() -> None:
    rules = rules_of({}, SETTINGS)

    assert chat_settings.changed_values({"gone": "on", "mode": "all"}, rules, None) == {
        "mode": "all"
    }


def test_the_model_reads_what_the_choices_ask_for() -> None:
    rules = rules_of({"language": "en", "instructions": "Say Ahoy."}, SETTINGS)
    told = owner_instructions("Be kind.", rules)

    assert told.startswith("Be kind.\n\nAnswer in English")
    assert told.index("The managers of this chat") < told.index("Say Ahoy.")
    assert owner_instructions("", rules_of({}, SETTINGS)) == ""
