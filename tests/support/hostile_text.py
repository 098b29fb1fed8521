"""Texts that make a backtracking pattern slow; how its time grows with their length."""

from __future__ import annotations

import functools
import itertools
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

SHAPES = {
    "spaces": " ",
    "tabs": "\t",
    "commas": ",",
    "square brackets": "[",
    "brackets": "(",
    "stars": "*",
    "underscores": "_",
    "backticks": "`",
    "less-than signs": "<",
    "at signs": "@",
    "digits": "1",
    "newlines": "\n",
    "letters": "a",
    "Chinese characters": "请",
    "mixed punctuation": "，。、 ,.!？",
    "words": "and so, please ",
}
_BASE = 250
_LARGEST = 8
_MOST = 2.8  # how much longer for twice the text; 2 is linear and 4 is quadratic
_CUT_S = 0.1
_ABORT_S = 1.0
_MOST_SEEDS = 16


class TooSlow(Exception):
    """An examination takes longer than any linear one."""


def hostile_texts(
    pieces: tuple[str, ...] = (), *, shapes: int = len(SHAPES)
) -> Iterator[tuple[str, Callable[[int], str]]]:
    """Names of shapes, and how to make one of a given length. `pieces` are added to the first
    `shapes` of them."""
    for name, piece in itertools.islice(SHAPES.items(), shapes):
        yield f"{name}, then a stop", lambda size, piece=piece: _repeated(piece, size) + "\x00x"
        yield f"a letter, then {name}", lambda size, piece=piece: "a" + _repeated(piece, size) + "."
    for piece in filter(None, pieces):
        yield repr(piece), lambda size, piece=piece: _repeated(piece, size) + "\x00x"


def grows_too_fast(
    examine: Callable[[str], object], make: Callable[[int], str], *, longest: int | None = None
) -> str | None:
    """The times at two, four and eight times the base length, if they grow faster than the text.
    Where texts are cut to `longest` characters, the time for one of these, if it is long."""
    try:
        with _aborted():
            took = seconds_of(examine, make(longest or _LARGEST * _BASE))
    except TooSlow:
        return f"over {_ABORT_S:g} s"
    if longest:
        return f"{took:.3f} s" if took > _CUT_S else None
    if took < _floor_s() or took < _MOST * seconds_of(examine, make(_LARGEST // 2 * _BASE)):
        return None
    texts = [make(size * _BASE) for size in (2, 4, 8)]
    rounds = [[seconds_of(examine, text) for text in texts] for _ in range(7)]  # as busy for each
    times = [min(one) for one in zip(*rounds, strict=True)]
    if times[2] < _floor_s() or times[2] < _MOST * times[1] or times[2] < _MOST**2 * times[0]:
        return None
    return ", ".join(f"{one:.3f} s" for one in times)


@functools.cache
def _floor_s() -> float:
    """What takes less for the longest text is fast enough whatever the ratio: half of what a simple
    quadratic pattern takes on this machine."""
    simple, text = re.compile("[^?]+[?]"), "a" * _LARGEST * _BASE
    return min(seconds_of(simple.findall, text) for _ in range(5)) / 2


def pieces_of(pattern: re.Pattern[str]) -> tuple[str, ...]:
    """Texts that nearly match: what each repetition in the pattern repeats, with and without what
    comes before it, and its literals."""
    found: dict[str, None] = {}
    _walk(parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE | 0), [""], found)
    return tuple(itertools.islice(found, _MOST_SEEDS))


def _walk(tree: Any, before: list[str], found: dict[str, None]) -> list[str]:
    """What a sequence matches, at most a few samples; notes the repeated parts in `found`."""
    for kind, value in tree:
        samples = _samples(kind, value, before, found)
        before = list(dict.fromkeys(a + b for a in before[:3] for b in samples[:3]))[:6]
    return before


def _samples(kind: Any, value: Any, before: list[str], found: dict[str, None]) -> list[str]:
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        low, high, body = value
        once = _walk(body, [""], found)
        if high is op.MAXREPEAT or high > 100:
            for one in once:
                found.setdefault(one)
                for lead in before[:2]:
                    found.setdefault(lead + one)
                    found.setdefault(lead + one * 50)
        return [one * max(low, 1) for one in once] + ([""] if low == 0 else [])
    if kind is op.BRANCH:
        return [one for branch in value[1] for one in _walk(branch, [""], found)[:2]]
    if kind is op.SUBPATTERN:
        return _walk(value[3], [""], found)
    if kind is op.ATOMIC_GROUP:
        return _walk(value, [""], found)
    if kind in (op.ASSERT, op.ASSERT_NOT):
        _walk(value[1], [""], found)
        return [""]
    if kind is op.LITERAL:
        return [chr(value)]
    if kind is op.NOT_LITERAL:
        return [next(one for one in "a \n" if ord(one) != value)]
    if kind is op.ANY:
        return ["a", " "]
    if kind is op.IN:
        return _members(value)
    return [""]


def _members(choices: list[tuple[Any, Any]]) -> list[str]:
    text = _class_of(choices)
    inside = [one for one in " a1_,.-*\t\n请，'\"@<[(|:A" if text.fullmatch(one)]
    literal = [chr(value) for kind, value in choices if kind is op.LITERAL]
    ranges = [chr(value[0]) for kind, value in choices if kind is op.RANGE]
    negated = any(kind is op.NEGATE for kind, _ in choices)
    return list(dict.fromkeys([*inside[:4], *([] if negated else literal[:2] + ranges[:1])])) or [
        ""
    ]


def _class_of(choices: list[tuple[Any, Any]]) -> re.Pattern[str]:
    parts = []
    for kind, value in choices:
        if kind is op.NEGATE:
            parts.insert(0, "^")
        elif kind is op.LITERAL:
            parts.append(re.escape(chr(value)))
        elif kind is op.RANGE:
            parts.append(f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}")
        elif kind is op.CATEGORY:
            parts.append(_CATEGORIES[value])
    return re.compile(f"[{''.join(parts)}]")


_CATEGORIES = {
    op.CATEGORY_DIGIT: r"\d",
    op.CATEGORY_NOT_DIGIT: r"\D",
    op.CATEGORY_SPACE: r"\s",
    op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w",
    op.CATEGORY_NOT_WORD: r"\W",
}


def _repeated(piece: str, size: int) -> str:
    return (piece * (size // len(piece) + 1))[:size]


def seconds_of(examine: Callable[[str], object], text: str) -> float:
    start = time.thread_time()
    examine(text)
    return time.thread_time() - start


@contextmanager
def _aborted() -> Iterator[None]:
    """Patterns let signals interrupt them."""

    def stop(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, _ABORT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
