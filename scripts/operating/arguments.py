"""How the operators' scripts read their command line; light, so that --help comes at once."""

from __future__ import annotations

import argparse
import os
import re
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NoReturn

from bot.text.languages import terminal_language

FINDINGS = 1
_WIDTH = 80
_MOST = 1_000_000
_GAP = re.compile(r"(?<=\S) {2,}")
# A word with the spaces after it, or a Chinese character with the stops after it.
_PIECE = re.compile(r"[\x21-\x7e“”…]+[，。；：、）]*\s*|[^\x21-\x7e][，。；：、）]*\s*")


def run_script(main: Callable[[], int]) -> NoReturn:
    """Ends the process with the status of `main`. A reader that stops reading, such as head, has
    what it wanted: that is no error."""
    try:
        try:
            status: object = main()
        except SystemExit as exc:
            status = exc.code
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left to flush
        status = 0
    raise SystemExit(status)


def add_language(options: argparse.ArgumentParser) -> None:
    """For scripts that speak both languages."""
    options.add_argument("--lang", choices=("en", "zh"), help="language (that of the terminal)")


def add_limit(options: argparse.ArgumentParser, default: int) -> None:
    """For scripts that list."""
    options.add_argument(
        "--limit", type=_limit, default=default, help=f"{in_help('at most so many')} ({default})"
    )


def _limit(text: str) -> int:
    if re.fullmatch(r"[0-9]{1,7}", text) and 1 <= int(text) <= _MOST:
        return int(text)
    raise argparse.ArgumentTypeError(
        in_language(
            f"{text!r} is no number from 1 to {_MOST:,}", f"{text!r} 不是 1 到 {_MOST:,} 之间的数"
        )
    )


def language(given: str | None, environment: Mapping[str, str] = os.environ) -> Literal["zh", "en"]:
    """What was asked for, else that of the terminal."""
    if given:
        return "zh" if given == "zh" else "en"
    return terminal_language(environment)


def in_language(en: str, zh: str, given: str | None = None) -> str:
    """The sentence in the language that was asked for, else in that of the terminal."""
    return zh if language(given) == "zh" else en


def text_file(name: str) -> Path:
    """For options that name a file to read."""
    try:
        Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        why = getattr(exc, "strerror", None) or "it is not UTF-8 text"
        sentence = in_language(f"{name} cannot be read: {why}", f"{name} 无法读取：{why}")
        raise argparse.ArgumentTypeError(sentence) from exc
    return Path(name)


def parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """An argument parser whose --help is the module's docstring, examples and all."""
    return _Parser(prog=name, description=description or "")


class _Parser(argparse.ArgumentParser):
    """Speaks the language of the terminal, or that of `--lang`, with its subcommands."""

    def __init__(self, *, description: str | None = None, **given: Any) -> None:
        vars(argparse)["_"] = in_help  # its own words, which it looks up late
        given.setdefault("formatter_class", _Help)
        super().__init__(description=fitted(description or ""), **given)


class _Help(argparse.RawDescriptionHelpFormatter):
    def _expand_help(self, action: argparse.Action) -> str:
        if action.help:
            action.help = in_help(action.help)
        return super()._expand_help(action)

    def start_section(self, heading: str | None) -> None:
        super().start_section(in_help(heading) if heading else heading)


def in_help(text: str) -> str:
    """The text in Chinese, where that is the language and there is one."""
    options = sys.argv[1:]
    given = options[options.index("--lang") + 1 :][:1] if "--lang" in options else []
    if language(given[0] if given else None) == "en":
        return text
    from scripts.operating.help_texts import FRAME, HELP

    return FRAME.get(text) or HELP.get(text) or text


def fitted(text: str) -> str:
    """Paragraphs within 80 columns; an example whose remark does not fit has it below."""
    paragraphs = []
    for paragraph in text.strip().split("\n\n"):
        lines = paragraph.splitlines()
        prose = [line for line in lines if not line.startswith(" ")]
        rest = [part for line in lines[len(prose) :] for part in _example(line)]
        paragraphs.append("\n".join([*wrapped(in_help(" ".join(prose))), *rest]))
    return "\n\n".join(paragraphs)


def wrapped(text: str, width: int = _WIDTH) -> list[str]:
    """Its lines within so many columns, of which a Chinese character takes two."""
    if text.isascii():
        return textwrap.wrap(text, width)
    lines = [""]
    for piece in _PIECE.findall(text):
        if _columns(lines[-1] + piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return [line.rstrip() for line in lines]


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "FW" else 1 for letter in text)


def _example(line: str) -> list[str]:
    """A line as it is, or in two: the command, and what it is for."""
    command, *remark = _GAP.split(line.rstrip(), maxsplit=1)
    said = in_help(remark[0]) if remark else ""
    whole = f"{line.rstrip().removesuffix(remark[0])}{said}" if remark else line
    if _columns(whole) <= _WIDTH:
        return [whole]
    return [command, f"      {said}"] if remark else [f"      {line.strip()}"]
