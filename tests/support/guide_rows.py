"""Writes the rows that the guides share with the code: scopes, events and commands.

    python -m tests.support.guide_rows

Scopes and events are written as `bot.feishu.manifest` declares them. A row of a command can say
more than its help does, so only commands without a row get one, made of the help.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bot.features.help import CATALOGUE
from bot.feishu import manifest
from bot.text.languages import LANGUAGES, Language
from bot.text.slash_commands import CommandName

_DOCS = Path(__file__).parents[2] / "docs"
_FOLDER = {"en": _DOCS, "zh": _DOCS / "zh"}
_WORDS = {
    "required": "必需", "wanted": "建议", "optional": "可选", "event": "事件", "callback": "回调",
}  # fmt: skip


def guides() -> Iterator[tuple[Path, str]]:
    """Each guide with such rows, and its text with the rows of the code."""
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
        commands = (folder / "commands.md").read_text(encoding="utf-8")
        help_word = _chat_words(CommandName.HELP, language)[0]
        yield (
            folder / "commands.md",
            _with_rows(commands, f"`/{help_word}` | ", _command_rows(commands, language)),
        )


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


def _command_rows(page: str, language: Language) -> list[str]:
    rows = [line for line in page.splitlines() if line.startswith("| `/")]
    for name in CommandName:
        words = _chat_words(name, language)
        if not any(row.startswith(f"| `/{words[0]}`") for row in rows):
            rows.append(_command_row(name, words, language))
    return rows


def _chat_words(name: CommandName, language: Language) -> tuple[str, str]:
    """The command's word in the language of the page, and in the other one."""
    words = (name.value, name.chinese_words[0])
    return words if language == "en" else (words[1], words[0])


def _command_row(name: CommandName, words: tuple[str, str], language: Language) -> str:
    key = f"command-{name}"
    help_line = CATALOGUE.template(key, language) if CATALOGUE.has(key) else ""
    about = help_line.partition(": " if language == "en" else "：")[2].rstrip(".。")
    here, other = (f"`/{one}`" for one in words)
    return f"| {here} | {other} | {about} | {here}, {other} |"


def main() -> int:
    for path, text in guides():
        if path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
