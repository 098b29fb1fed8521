"""How the operators' scripts read their command line; light, so that --help comes at once."""

from __future__ import annotations

import argparse
import os
import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, NoReturn

from bot.text.languages import terminal_language

FINDINGS = 1
_WIDTH = 80
_MOST = 1_000_000
_GAP = re.compile(r"(?<=\S) {2,}")


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
        "--limit", type=_limit, default=default, help=f"at most so many ({default})"
    )


def _limit(text: str) -> int:
    if re.fullmatch(r"[0-9]{1,7}", text) and 1 <= int(text) <= _MOST:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {_MOST:,}")


def language(given: str | None, environment: Mapping[str, str] = os.environ) -> Literal["zh", "en"]:
    """What was asked for, else that of the terminal."""
    if given:
        return "zh" if given == "zh" else "en"
    return terminal_language(environment)


def text_file(name: str) -> Path:
    """For options that name a file to read."""
    try:
        Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        why = getattr(exc, "strerror", None) or "it is not UTF-8 text"
        raise argparse.ArgumentTypeError(f"{name} cannot be read: {why}") from exc
    return Path(name)


def parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """An argument parser whose --help is the module's docstring, examples and all."""
    return argparse.ArgumentParser(
        prog=name,
        description=fitted(description or ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def fitted(text: str) -> str:
    """Paragraphs within 80 columns; an example whose remark does not fit has it below."""
    paragraphs = []
    for paragraph in text.strip().split("\n\n"):
        lines = paragraph.splitlines()
        prose = [line for line in lines if not line.startswith(" ")]
        rest = [part for line in lines[len(prose) :] for part in _example(line)]
        paragraphs.append("\n".join([*textwrap.wrap(" ".join(prose), _WIDTH), *rest]))
    return "\n\n".join(paragraphs)


def _example(line: str) -> list[str]:
    """A line as it is, or in two: the command, and what it is for."""
    if len(line) <= _WIDTH:
        return [line]
    command, *remark = _GAP.split(line.rstrip(), maxsplit=1)
    return [command, f"      {remark[0]}"] if remark else [f"      {line.strip()}"]
