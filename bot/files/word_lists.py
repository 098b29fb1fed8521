"""Numbers the items of a Word document's lists as Word shows them. Pure.

A paragraph says only which list and level it is in; the numbers are counted anew by whoever shows
it. Source: ECMA-376 part 1, 17.9."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_MOST_DIGITS = 6
_MOST_STYLES = 12  # that a style builds on
_PLACEHOLDER = re.compile("%([1-9])")
_CHINESE = "零一二三四五六七八九"
_FORMAL = "零壹贰叁肆伍陆柒捌玖"
_STEMS = "甲乙丙丁戊己庚辛壬癸"
_BRANCHES = "子丑寅卯辰巳午未申酉戌亥"
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"),
          (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip


class _List(NamedTuple):
    """A list of a document. Lists of one definition are counted together."""

    definition: str
    levels: dict[int, Any]
    restarts: dict[int, int]


class ListNumbers:
    """Counts the items of lists in the order in which `label` is asked for them."""

    def __init__(self, styles: Any, numbering: Any) -> None:
        self._styles = {attribute(one, "styleId"): one for one in named(styles, "style")}
        numbers = {attribute(one, "numId"): one for one in named(numbering, "num")}
        definitions = {
            attribute(one, "abstractNumId"): one for one in named(numbering, "abstractNum")
        }
        for one in definitions.values():  # a style of lists may hold what a definition lacks
            style = value_in(one, "numStyleLink")
            linked = numbers.get(next(filter(None, self._of_style(style, "numId")), ""))
            if linked is not None:
                one.extend(named(definitions.get(value_in(linked, "abstractNumId")), "lvl"))
        self._lists = {key: _list(one, definitions) for key, one in numbers.items()}
        self._places = {"": ("", 0)}  # of the items of a style
        self._counts: dict[str, dict[int, int]] = {}
        self._begun: set[tuple[str, int]] = set()

    def label(self, paragraph: Any) -> str:
        """Returns what stands before the text of a paragraph, with its space: "2.1 "."""
        number_id, level = self._place(paragraph)
        found = self._lists.get(number_id)
        if found is None or level not in found.levels:
            return ""
        counts = self._counts.setdefault(found.definition, {})
        if level in found.restarts and (number_id, level) not in self._begun:
            counts[level] = found.restarts[level]
        else:
            counts[level] = counts[level] + 1 if level in counts else _start(found, level)
        self._begun.add((number_id, level))
        for deeper in [one for one in counts if one > level]:
            after = value_in(found.levels.get(deeper), "lvlRestart")
            if not after or level < _integer(after):
                del counts[deeper]
        return _label(found, level, counts)

    def _place(self, paragraph: Any) -> tuple[str, int]:
        """The list and level of a paragraph: its own, else those of its style."""
        properties = first(paragraph, "pPr")
        own, style = first(properties, "numPr"), value_in(properties, "pStyle")
        number_id, level = value_in(own, "numId"), value_in(own, "ilvl")
        if not (number_id and level):
            if style not in self._places:
                self._places[style] = self._place_of_style(style)
            of_style = self._places[style]
            number_id = number_id or of_style[0]
            return number_id, _integer(level) if level else of_style[1]
        return number_id, _integer(level)

    def _place_of_style(self, style: str) -> tuple[str, int]:
        number_id = next(filter(None, self._of_style(style, "numId")), "")
        levels = self._lists[number_id].levels if number_id in self._lists else {}
        linked = (at for at, one in levels.items() if value_in(one, "pStyle") == style)
        of_style = map(_integer, filter(None, self._of_style(style, "ilvl")))
        return number_id, next(linked, next(of_style, 0))

    def _of_style(self, style: str, name: str) -> Iterator[str]:
        """What a style, and those that it builds on, say of a list."""
        for _ in range(_MOST_STYLES):
            found = self._styles.get(style)
            yield value_in(first(first(found, "pPr"), "numPr"), name)
            style = value_in(found, "basedOn")


def _list(number: Any, definitions: dict[str, Any]) -> _List:
    key = value_in(number, "abstractNumId")
    overrides = {_integer(attribute(one, "ilvl")): one for one in named(number, "lvlOverride")}
    levels = [*named(definitions.get(key), "lvl")]
    levels += [level for one in overrides.values() for level in named(one, "lvl")]
    restarts = {at: value_in(one, "startOverride") for at, one in overrides.items()}
    return _List(
        key,
        {_integer(attribute(one, "ilvl")): one for one in levels},
        {at: _integer(start) for at, start in restarts.items() if start},
    )


def _label(found: _List, level: int, counts: dict[int, int]) -> str:
    shown = found.levels[level]
    kind = value_in(shown, "numFmt")
    if kind in ("bullet", "none"):
        return "• " if kind == "bullet" else ""
    is_legal = first(shown, "isLgl") is not None

    def number(match: re.Match[str]) -> str:
        at = int(match[1]) - 1
        count = counts.get(at, _start(found, at))
        return written("" if is_legal else value_in(found.levels.get(at), "numFmt"), count)

    text = _PLACEHOLDER.sub(number, value_in(shown, "lvlText"))
    return text if not text or value_in(shown, "suff") == "nothing" else f"{text} "


def written(kind: str, number: int) -> str:
    """A number in one of Word's forms; in digits where the form is not known."""
    if not 0 < number < 10_000:
        return str(number)
    return _KINDS.get(kind, str)(number)


def _letters(number: int) -> str:
    """a … z, then aa … zz."""
    return chr(ord("a") + (number - 1) % 26) * min((number - 1) // 26 + 1, 20)


def _roman(number: int) -> str:
    text = ""
    for value, letters in _ROMAN:
        text += letters * (number // value)
        number %= value
    return text


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10)
    return f"{number}{ending or 'th'}"


def _chinese(number: int, digits: str = _CHINESE, units: str = "千百十") -> str:
    text, gap = "", False
    for unit, sign in zip((1000, 100, 10, 1), (*units, ""), strict=True):
        digit, number = divmod(number, unit)
        if digit:
            text += (digits[0] if gap and text else "") + digits[digit] + sign
        gap = not digit
    return text[1:] if text.startswith("一十") else text


def _circled(number: int) -> str:
    return chr(0x2460 + number - 1) if number <= 20 else str(number)


def _of(signs: str) -> Callable[[int], str]:
    return lambda number: signs[(number - 1) % len(signs)]


_KINDS: dict[str, Callable[[int], str]] = {
    "decimalZero": lambda number: f"{number:02}",
    "lowerLetter": _letters,
    "upperLetter": lambda number: _letters(number).upper(),
    "lowerRoman": _roman,
    "upperRoman": lambda number: _roman(number).upper(),
    "ordinal": _ordinal,
    **dict.fromkeys(
        (
            "chineseCounting",
            "chineseCountingThousand",
            "japaneseCounting",
            "taiwaneseCounting",
            "taiwaneseCountingThousand",
        ),
        _chinese,
    ),
    "chineseLegalSimplified": functools.partial(_chinese, digits=_FORMAL, units="仟佰拾"),
    "ideographTraditional": _of(_STEMS),
    "ideographZodiac": _of(_BRANCHES),
    **dict.fromkeys(("decimalEnclosedCircle", "decimalEnclosedCircleChinese"), _circled),
}


def _start(found: _List, level: int) -> int:
    return _integer(value_in(found.levels.get(level), "start"))


def _integer(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < _MOST_DIGITS else 0


def element_name(element: Any) -> str:
    """The name without its namespace; "" for comments and processing instructions."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def named(element: Any, name: str) -> Iterator[Any]:
    """The children of that name; none of None."""
    return (one for one in (() if element is None else element) if element_name(one) == name)


def first(element: Any, name: str) -> Any:
    """The first child of that name, or None."""
    return next(named(element, name), None)


def attribute(element: Any, name: str) -> str:
    """An attribute in the namespace of its element; "" without one."""
    return element.get(element.tag.rpartition("}")[0] + "}" + name) or ""


def value_in(element: Any, name: str, default: str = "") -> str:
    """The `val` of the first child of that name, else the default."""
    child = first(element, name)
    return default if child is None else attribute(child, "val")
