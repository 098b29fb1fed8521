"""Patterns for what matches only as a whole: addresses, numbers, paths and full names. Pure."""

from __future__ import annotations

import re
from itertools import pairwise

from bot.text.spelling import ALPHANUMERIC, folded_text

_BEFORE = rf"(?<!{ALPHANUMERIC})(?<!{ALPHANUMERIC}[\-_./\\@+:])"
_AFTER = rf"(?!{ALPHANUMERIC})(?![\-_/\\@+]{ALPHANUMERIC})(?!\.{ALPHANUMERIC})"
_ORIGIN = re.compile(r"(?:https?://)?(?:www\.)?")
_GROUPED_NUMBER = re.compile(r"(?!\d{1,3}(?:\.\d{1,3}){3}$)\d+(?:\.\d+)+")
_PHONE_DIGITS = 7
_LONG_NUMBER = 5


def full_name(name: str) -> re.Pattern[str]:
    """First name and surname next to each other, in either order."""
    parts = [re.escape(part) for part in folded_text(name).split()]
    reversed_parts = [parts[-1], *parts[:-1]]
    either = "|".join(r"[\s,·.]{1,3}".join(order) for order in (parts, reversed_parts))
    return re.compile(f"{_BEFORE}(?:{either}){_AFTER}")


def identifier(token: str) -> re.Pattern[str]:
    """The token as a whole; a code or a number however its parts are separated."""
    if re.search(r"[@/\\]", token):
        path = r"[/\\]+".join(
            map(re.escape, re.split(r"[/\\]+", _ORIGIN.sub("", token, count=1).rstrip("/")))
        )
        return re.compile(rf"{_BEFORE}(?:https?://)?(?:www\.)?{path}{_AFTER}")
    digits = sum(char.isdigit() for char in token)
    if digits >= _PHONE_DIGITS and _GROUPED_NUMBER.fullmatch(token):
        token = token.replace(".", "")
    parts = [part for part in re.split(r"[\s\-_·:]+", token) if part]
    between = r"[\s\-_·:.()]{0,3}" if len(parts) > 2 else r"[\s\-_·:()]{0,3}"
    gap = r"[\s\-_·.()]{0,3}" if digits >= _PHONE_DIGITS else r"[\s\-_·()]{0,3}"
    code = between.join(_spaced_pattern(part, gap) for part in parts)
    if digits >= _LONG_NUMBER:
        return re.compile(rf"(?<!\d\s){_BEFORE}{code}{_AFTER}(?!\s\d)")
    return re.compile(rf"(?<!\d[.,]){_BEFORE}{code}{_AFTER}")


def _spaced_pattern(part: str, gap: str) -> str:
    """A part of a code; its digits may be written in groups, and apart from its letters."""
    pattern = re.escape(part[0])
    for one, two in pairwise(part):
        apart = one.isalnum() and two.isalnum() and (one.isdigit() or two.isdigit())
        pattern += (gap if apart else "") + re.escape(two)
    return pattern
