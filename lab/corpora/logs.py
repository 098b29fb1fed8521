"""Annotated chat logs, in the format of jkkummerfeld/irc-disentanglement.

`NAME.ascii.txt` has a message a line (`[12:34] <nick> text`), `NAME.annotation.txt` beside it a
link a line (`12 15 -`: line 15 answers line 12; `15 15 -`: it begins a conversation).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bot.listening.transcript import MessageRecord

BOTS = ("ubottu", "ubotu")  # as in the corpus's own code
_LINE = re.compile(r"\[(\d\d):(\d\d)\] <([^>]+)> (.*)")
_DAY_MS = 24 * 3600 * 1000

Links = Mapping[int, frozenset[int]]


@dataclass(frozen=True)
class ChatLog:
    """People's messages by line, and the lines that each annotated line answers."""

    name: str
    messages: Mapping[int, MessageRecord]
    links: Links


def logs_in(path: Path) -> list[ChatLog]:
    """Reads the annotated logs of a folder, or one file. Raises `OSError`, `ValueError`."""
    texts = sorted(path.glob("*.ascii.txt")) if path.is_dir() else [_text_of(path)]
    return [_log_of(text) for text in texts if _annotation_of(text).exists() or not path.is_dir()]


def _text_of(path: Path) -> Path:
    return path.with_name(path.name.replace(".annotation.", ".ascii."))


def _annotation_of(text: Path) -> Path:
    return text.with_name(text.name.replace(".ascii.", ".annotation."))


def _log_of(text: Path) -> ChatLog:
    lines = text.read_text(encoding="utf-8", errors="replace").split("\n")
    messages = {
        line: replace(one, author_id=one.author.casefold(), is_bot=one.author.casefold() in BOTS)
        for line, one in spoken(lines).items()
    }
    annotated = _annotation_of(text).read_text(encoding="utf-8").splitlines()
    return ChatLog(text.name.removesuffix(".ascii.txt"), messages, links_of(annotated))


def links_of(annotated: Iterable[str]) -> Links:
    """Parses an annotation: later line → the lines it answers."""
    links: dict[int, set[int]] = {}
    for row in annotated:
        if row.strip():
            one, other = (int(number) for number in row.split()[:2])
            links.setdefault(max(one, other), set()).add(min(one, other))
    return {line: frozenset(answered) for line, answered in links.items()}


def spoken(log: Sequence[str]) -> dict[int, MessageRecord]:
    """Parses people's messages by line; a clock that goes back begins another day."""
    found: dict[int, MessageRecord] = {}
    day, before = 0, 0
    for index, text in enumerate(log):
        if match := _LINE.match(text):
            minutes = int(match[1]) * 60 + int(match[2])
            day += minutes < before - 60
            before = minutes
            time_ms = day * _DAY_MS + minutes * 60_000 + index
            found[index] = MessageRecord(match[3], match[3], match[4], time_ms, False, str(index))
    return found
