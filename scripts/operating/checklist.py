"""The lines of the doctor on a screen, in one of the two languages, within 80 columns."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

from rich.cells import cell_len

from bot.operations.doctor.result import (
    Check,
    State,
    findings,
    verdict,
    without_repetition,
)
from bot.text.languages import Language, Sentence
from scripts.operating.console import Screen

WIDTH = 80
_MARKS: Mapping[State, tuple[Sentence, str]] = {
    "ok": (Sentence("ok", "正常"), "green"),
    "warn": (Sentence("warn", "留意"), "yellow"),
    "fail": (Sentence("FAIL", "错误"), "bold red"),
    "unknown": (Sentence("?", "未知"), "dim"),
}
_NEVER_FIRST = "，。；：！？、）”"
_NEVER_LAST = "（“"


def show(checks: Sequence[Check], language: Language, *, title: str = "doctor") -> None:
    """The verdict first, then what is to be done, then all the rest."""
    screen = Screen()
    bad = findings(checks)
    style = "bold red" if any(check.state == "fail" for check in bad) else "bold"
    screen.say(f"{title}: {verdict(checks).said(language)}", style=style)
    for check in without_repetition([*bad, *(check for check in checks if check not in bad)]):
        show_line(screen, check, language)


def mark(state: State, language: Language) -> str:
    """The state as the doctor shows it."""
    return _MARKS[state][0].said(language)


def show_line(screen: Screen, check: Check, language: Language) -> None:
    """State, name and sentence; below them the link or command, which is never broken."""
    mark, style = _MARKS[check.state]
    head = f"{_padded(mark.said(language), 5)}{_padded(check.title.said(language), 14)}"
    sentence = _printable(check.sentence.said(language))
    for number, line in enumerate(wrapped(sentence, WIDTH - cell_len(head))):
        screen.say(f"{head if number == 0 else ' ' * cell_len(head)}{line}",
                   style=style if number == 0 and check.state != "ok" else "")  # fmt: skip
    if check.next_step and check.state != "ok":
        screen.say(f"{' ' * cell_len(head)}→ {check.next_step}")
    sys.stdout.flush()


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most `width` columns; Chinese breaks anywhere but before its punctuation, and a
    word longer than a line is broken where it must."""
    lines, line = [], ""
    for piece in _pieces(text, width):
        if line and cell_len((line + piece).rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        line += piece if line else piece.lstrip()
    return [*lines, line.rstrip()] if line.strip() or not lines else lines


def _pieces(text: str, width: int) -> Iterable[str]:
    """What stays together: a word with the spaces after it, a Chinese character with its stops."""
    piece = ""
    for character in text:
        wide = cell_len(character) > 1 and character not in _NEVER_FIRST
        full = cell_len(piece) + cell_len(character) > width
        opens = piece[-1:] in tuple(_NEVER_LAST) and not full
        ends = wide or (piece[-1:] == " " and character != " ") or (piece and _is_wide(piece))
        if piece and (full or (ends and not opens)):
            if character in _NEVER_FIRST and not full:
                piece += character
                continue
            yield piece
            piece = ""
        piece += character
    if piece:
        yield piece


def _is_wide(piece: str) -> bool:
    return cell_len(piece[-1]) > 1


def _padded(text: str, width: int) -> str:
    return text + " " * max(1, width - cell_len(text))


def _printable(text: str) -> str:
    """A bot's name and an endpoint's words must not steer a terminal."""
    return "".join(character if character.isprintable() else " " for character in text)
