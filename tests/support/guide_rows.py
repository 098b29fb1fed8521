"""Writes what is generated from declarations: rows of the guides, and the words of commands.

    python -m tests.support.guide_rows

Scopes and events are written as `bot.feishu.manifest` declares them, words as the features do. A
row of a command can say more than its help does, so only commands without a row get one, made of
the help.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bot.features.feature import CommandSpec
from bot.features.registry import COMMANDS
from bot.feishu import manifest
from bot.text.languages import LANGUAGES, Language

_ROOT = Path(__file__).parents[2]
_DOCS = _ROOT / "docs"
_FOLDER = {"en": _DOCS, "zh": _DOCS / "zh"}
_WORDS = {
    "required": "必需", "wanted": "建议", "optional": "可选", "event": "事件", "callback": "回调",
}  # fmt: skip


def generated(commands: Sequence[CommandSpec] = COMMANDS) -> Iterator[tuple[Path, str]]:
    """Each file with generated parts, and its text as the code declares them."""
    yield _ROOT / "bot/text/command_words.json", _words_json(commands)
    for language in LANGUAGES:
        folder = _FOLDER[language]
        reference = (folder / "feishu-app.md").read_text(encoding="utf-8")
        reference = _with_rows(reference, "im:message.p2p_msg:readonly", _scope_rows(language))
        reference = _with_rows(reference, manifest.MESSAGE.name, _event_rows(language))
        yield folder / "feishu-app.md", reference
        by_hand = (folder / "setup-feishu.md").read_text(encoding="utf-8")
        yield (
            folder / "setup-feishu.md",
            _with_rows(by_hand, manifest.MESSAGE.name, _console_rows(language)),
        )
        page = (folder / "commands.md").read_text(encoding="utf-8")
        first = _first_words(commands[0], language)[0]
        rows = _command_rows(page, commands, language)
        yield folder / "commands.md", _with_rows(page, f"`/{first}` | ", rows)


def _words_json(commands: Sequence[CommandSpec]) -> str:
    lines = (f'  "{one.name}": {json.dumps(one.words[1:], ensure_ascii=False)}' for one in commands)
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _with_rows(page: str, first: str, rows: Sequence[str]) -> str:
    """The page with `rows` in place of the table whose first row has the words `first`."""
    lines = page.split("\n")
    start = next(n for n, one in enumerate(lines) if one.lstrip().startswith("| ") and first in one)
    end = next(n for n in range(start, len(lines)) if not lines[n].lstrip().startswith("| "))
    indent = lines[start][: len(lines[start]) - len(lines[start].lstrip())]
    return "\n".join([*lines[:start], *(indent + row for row in rows), *lines[end:]])


def _word(word: str, language: Language) -> str:
    return word if language == "en" else _WORDS[word]


def _scope_rows(language: Language) -> list[str]:
    return [
        f"| `{one.name}` | {getattr(one.purpose, language)} | {_word(one.level, language)} |"
        for one in manifest.SCOPES
    ]


def _event_rows(language: Language) -> list[str]:
    return [
        f"| `{one.name}` | {getattr(one.purpose, language)} | {_word(one.kind, language)} |"
        for one in manifest.SUBSCRIPTIONS
    ]


def _console_rows(language: Language) -> list[str]:
    return [
        f"| {getattr(one.purpose, language)} | `{one.name}` |"
        for one in manifest.SUBSCRIPTIONS
        if one.kind == "event"
    ]


def _command_rows(page: str, commands: Sequence[CommandSpec], language: Language) -> list[str]:
    rows = [line for line in page.splitlines() if line.startswith("| `/")]
    for command in commands:
        first = _first_words(command, language)[0]
        if not any(row.startswith(f"| `/{first}`") for row in rows):
            rows.append(_command_row(command, language))
    return rows


def _first_words(command: CommandSpec, language: Language) -> tuple[str, str]:
    """The command's word in the language of the page, and in the other one."""
    english, chinese = command.words[:2]
    return (english, chinese) if language == "en" else (chinese, english)


def _command_row(command: CommandSpec, language: Language) -> str:
    help_line = command.help[0].text.said(language) if command.help else ""
    about = help_line.partition(": " if language == "en" else "：")[2].rstrip(".。")
    here, other = (f"`/{one}`" for one in _first_words(command, language))
    return f"| {here} | {other} | {about} | {here}, {other} |"


def main() -> int:
    for path, text in generated():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
