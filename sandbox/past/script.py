"""The texts beside this module, read once: episodes of talk, and scenes that settle something. Pure
but for reading these files."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_LINE = re.compile(r"(?P<who>[^:*]+)(?P<mark>\*?): (?P<text>.+)")
_ALTERNATIVES = re.compile(r"\(([^()|]*(?:\|[^()|]*)+)\)")
_SLOT = re.compile(r"\{([a-z]+)\}")


@dataclass(frozen=True, slots=True)
class ScriptLine:
    """What somebody says; `settles`: the matter stands in it."""

    who: str
    text: str
    settles: bool


@dataclass(frozen=True, slots=True)
class Episode:
    """Lines that belong together. `key` names the matter. Of a scene: `day` (ISO) and `time`."""

    lines: tuple[ScriptLine, ...]
    key: str = ""
    day: str = ""
    time: str = ""
    in_thread: bool = False


@cache
def episodes(name: str) -> tuple[Episode, ...]:
    """The episodes of a file beside this module."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    parts = text.split("\n\n")
    return tuple(_block(part) for part in parts if not part.strip().startswith("#"))


def _block(text: str) -> Episode:
    head, *rest = text.strip().splitlines()
    if not head.startswith("= "):
        return Episode(tuple(map(_line, [head, *rest])))
    key, day, time, how = [*head[2:].split(), "", "", ""][:4]
    return Episode(tuple(map(_line, rest)), key, day, time, how == "thread")


def _line(text: str) -> ScriptLine:
    found = _LINE.fullmatch(text)
    if found is None:
        raise ValueError(f"no line of talk: {text!r}")
    return ScriptLine(found["who"], found["text"], bool(found["mark"]))


def slots(episode: Episode) -> frozenset[str]:
    """The names of the slots in a episode."""
    return frozenset(name for line in episode.lines for name in _SLOT.findall(line.text))


def alternatives(text: str) -> re.Match[str] | None:
    """The first `(this|that)` of a text."""
    return _ALTERNATIVES.search(text)


def filled(text: str, words: dict[str, str]) -> str:
    """The text with words in its slots."""
    return _SLOT.sub(lambda slot: words[slot[1]], text)
