"""What a feature brings is whole: a finding names what was forgotten, and where it belongs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import get_args

import pytest

from bot.agents.specialists import TOOL_NAMES
from bot.card_actions.confirmation import press_name
from bot.features.feature import CommandSpec, CommandTurn, Feature, HelpLine, SetUp
from bot.features.help import available_commands, help_text
from bot.features.registry import COMMANDS, FEATURES, HOOKS, TIMERS, hooks_of
from bot.hooks import MissingHook
from bot.outbox.buttons import Reply
from bot.services import Services
from bot.text.languages import Sentence
from memory.tables.cards import PressResult
from memory.tables.timers import TimerKind
from tests.support.feature_parts import (
    ROOT,
    brought_twice,
    buttons_without_feature,
    missing_of_command,
    missing_of_settings,
)
from tests.support.guide_rows import generated
from tests.support.rows import every_row

ANSWERED = {*HOOKS.cards.presses, *HOOKS.cards.deleting_presses}


async def no_answer(services: Services, asked: CommandTurn) -> Reply | None:
    return None


JUGGLE = CommandSpec(
    words=("juggle", "杂耍"),
    run=no_answer,
    help=(HelpLine("`/juggle`: throws balls", "`/杂耍`：抛球"),),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command.name))
def test_a_command_has_all_its_parts(command: CommandSpec) -> None:
    assert missing_of_command(command, COMMANDS, dict(generated())) == []


def test_a_command_is_known_everywhere_by_its_declaration_alone() -> None:
    commands = (*COMMANDS, JUGGLE)
    files = dict(generated(commands))
    words = json.loads(files[ROOT / "bot/text/command_words.json"])
    pages = [files[ROOT / folder / "commands.md"] for folder in ("docs", "docs/zh")]
    here = SetUp("group")

    assert missing_of_command(JUGGLE, commands, files) == []
    assert words["juggle"] == ["杂耍"]
    assert "| `/juggle` | `/杂耍` | throws balls | `/juggle`, `/杂耍` |" in pages[0]
    assert "| `/杂耍` | `/juggle` | 抛球 | `/杂耍`, `/juggle` |" in pages[1]
    assert "- `/juggle`: throws balls" in help_text(commands, here, "en")
    assert "- `/杂耍`：抛球" in help_text(commands, here, "zh")
    assert Sentence("/juggle", "/杂耍") in [word for word, _ in available_commands(commands, here)]


def test_what_a_new_command_lacks_is_named() -> None:
    bare = CommandSpec(words=("juggle",), run=no_answer)
    lacks = missing_of_command(bare, (*COMMANDS, bare), dict(generated()))
    assert [lack.partition(": ")[0] for lack in lacks] == [
        "/juggle has no Chinese word",
        *["/juggle is not in the help", "/juggle has no docs"] * 2,
    ]
    circus = Feature(name="circus", commands=(JUGGLE,))
    assert brought_twice([*FEATURES, circus, circus]) == [
        "/juggle is brought by two features",
        "/杂耍 is brought by two features",
    ]


def test_nothing_is_brought_twice() -> None:
    assert brought_twice(FEATURES) == []


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: str(feature.name))
def test_a_feature_is_named_as_its_room_and_tells_its_settings(feature: Feature) -> None:
    rooms = ROOT / "bot/features"
    assert (rooms / feature.name / "feature.py").is_file() or (
        rooms / f"{feature.name}.py"
    ).is_file()
    assert missing_of_settings(feature) == []
    assert {tool.name for tool in feature.tools} <= TOOL_NAMES


def test_what_a_new_setting_lacks_is_named() -> None:
    lacks = missing_of_settings(Feature(name="circus", settings=frozenset({"balls_in_the_air"})))
    places = ["bot/settings.py", ".env.example", "docs/settings.md", "docs/zh/settings.md"]
    assert [place in finding for finding, place in zip(lacks, places, strict=True)] == [True] * 4


def test_every_room_of_a_feature_is_registered() -> None:
    rooms = ROOT / "bot/features"
    written = {file.parent.name for file in rooms.glob("*/feature.py")}
    written |= {
        file.stem for file in rooms.glob("*.py") if " = Feature(" in file.read_text("utf-8")
    }
    assert written == {feature.name for feature in FEATURES}


def test_every_button_of_a_feature_is_answered() -> None:
    files = [*(ROOT / "bot/features").rglob("*.py"), *(ROOT / "bot/card_actions").rglob("*.py")]
    for file in files:
        source = file.read_text(encoding="utf-8")
        assert buttons_without_feature(source, str(file.relative_to(ROOT)), ANSWERED) == []


@every_row(
    "source",
    [
        'THROW = "circus.throw"',
        'def shown():\n    return {"tool": "circus.throw", "arguments": {}}',
    ],
)
def test_a_new_button_that_nothing_answers_is_named(source: str) -> None:
    (finding,) = buttons_without_feature(source, "bot/features/circus/balls.py", ANSWERED)
    assert "circus.throw" in finding
    assert "bot/features/<room>/feature.py" in finding


@every_row("kind", get_args(TimerKind))
def test_every_kind_of_timer_is_fired(kind: str) -> None:
    assert kind in TIMERS, f"add {kind!r} to `timers` of a Feature (bot/features/<room>/feature.py)"


def test_a_button_is_answered_by_its_tool_or_asks_a_question() -> None:
    save = {"text": "x", "tool": "settings.save"}
    assert press_name(PressResult("accepted", "follow_up", payload=save)) == "settings.save"
    assert (
        press_name(PressResult("accepted", "share", payload={"answer_id": "t"}))
        in HOOKS.cards.presses
    )
    assert press_name(PressResult("accepted", "follow_up", payload={"text": "What else?"})) == ""


def test_what_is_cancelled_has_no_function() -> None:
    payload = {"tool": "memory.delete", "decision": "cancel", "arguments": {}}
    assert press_name(PressResult("accepted", "confirm", payload=payload)) == ""
    payload["decision"] = "confirm"
    assert press_name(PressResult("accepted", "confirm", payload=payload)) == "memory.delete"


def test_nothing_starts_without_a_required_check() -> None:
    with pytest.raises(MissingHook, match="sources"):
        hooks_of([replace(feature, checks={}) for feature in FEATURES])


def test_nothing_starts_without_the_functions_that_card_actions_call() -> None:
    without = [replace(feature, card_hooks={}) for feature in FEATURES]
    with pytest.raises(MissingHook, match="answer_beside, answer_privately, list_items, may_show"):
        hooks_of(without)
