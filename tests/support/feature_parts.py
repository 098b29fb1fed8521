"""What a feature's part needs beside its function; each finding says what to add where."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import get_type_hints

from bot.features.feature import CommandSpec, Feature
from bot.listening.requests import has_han
from bot.settings import Settings
from bot.text.languages import Language

ROOT = Path(__file__).parents[2]
LANGUAGES: tuple[Language, ...] = ("en", "zh")
_PRESS_NAME = re.compile(r"[a-z_]+\.[a-z_]+")
_PAGES = {"en": "docs/{}", "zh": "docs/zh/{}"}


def missing_of_command(
    command: CommandSpec, commands: Sequence[CommandSpec], files: Mapping[Path, str]
) -> list[str]:
    """What the command lacks. `files`: the texts of generated files."""
    found = []
    chinese = [word for word in command.words if has_han(word)]
    if not chinese:
        found.append(f"/{command.name} has no Chinese word: add it to `words` of its CommandSpec")
    for language, words in zip(LANGUAGES, ([command.name], chinese), strict=True):
        lines = [line.text.said(language) for one in commands for line in one.help]
        if not any(_is_in(word, line) for word in words for line in lines):
            found.append(f"/{command.name} is not in the help: add a HelpLine to its CommandSpec")
        page = ROOT / _PAGES[language].format("commands.md")
        found += _missing_of_docs(command.name, words, files[page])
    return found


def _missing_of_docs(name: str, words: Sequence[str], page: str) -> Iterator[str]:
    rows = [line for line in page.splitlines() if line.startswith("| `/")]
    row = next((row for row in rows for word in words if row.startswith(f"| `/{word}`")), "")
    if not row:
        yield f"/{name} has no docs: run python -m tests.support.guide_rows"
        return
    examples = re.findall("`(.+?)`", row.rsplit("|", 2)[1])
    if not any(_is_in(word, f"`{example}`") for word in words for example in examples):
        yield f"/{name} has no example in the last column of its row"


def _is_in(word: str, text: str) -> bool:
    return re.search(rf"`/{re.escape(word)}\b", text) is not None


def missing_of_settings(feature: Feature) -> list[str]:
    """What the settings of the feature lack."""
    found, known = [], get_type_hints(Settings)
    for field in sorted(feature.settings):
        if field not in known:
            found.append(f"{feature.name} reads {field!r}: add the field to bot/settings.py")
        for page in (".env.example", "docs/settings.md", "docs/zh/settings.md"):
            if field.upper() not in _text(page):
                found.append(f"{field.upper()} of {feature.name} has no docs: add it to {page}")
    return found


def buttons_without_feature(source: str, path: str, presses: Collection[str]) -> list[str]:
    """The buttons that a module names and that no feature answers."""
    tree = ast.parse(source)
    named = {name for node in ast.walk(tree) for name in _names_of_buttons(node)}
    named |= {
        node.value
        for statement in tree.body
        if isinstance(statement, ast.Assign)
        for node in ast.walk(statement.value)
        if isinstance(node, ast.Constant) and _is_press_name(node.value)
    }
    return [
        f"{path} shows a button {name!r} that no feature answers: add it to `presses` of a "
        "Feature (bot/features/<room>/feature.py)"
        for name in sorted(named - set(presses))
    ]


def _names_of_buttons(node: ast.AST) -> Iterator[str]:
    """The tools of payloads that are written out."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            is_tool = isinstance(key, ast.Constant) and key.value == "tool"
            if is_tool and isinstance(value, ast.Constant):
                yield str(value.value)


def _is_press_name(value: object) -> bool:
    return isinstance(value, str) and _PRESS_NAME.fullmatch(value) is not None


def brought_twice(features: Sequence[Feature]) -> list[str]:
    """What two features bring: only one of them would be called."""
    names = [
        name
        for feature in features
        for name in (
            *(f"/{word}" for command in feature.commands for word in command.words),
            *(f"tool {tool.name}" for tool in feature.tools),
            *(f"press {press}" for press in (*feature.presses, *feature.deleting_presses)),
            *(f"timer {kind}" for kind in feature.timers),
            *(f"check {check}" for check in feature.checks),
            *(f"event {event}" for event in feature.events),
            *(f"job {task}" for task in feature.jobs),
        )
    ]
    return [
        f"{name} is brought by two features" for name, times in Counter(names).items() if times > 1
    ]


def _text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")
