"""Corrects misspelt words of requests, for the offline model. Pure.

It is tried only on what is not understood as it stands."""

from __future__ import annotations

import re

_WORDS = (
    "remind reminder reminders remember cancel delete create forget summarize summary digest search"
    " schedule meeting calendar tasks notes tomorrow"
).split()
_SHORT = (
    (re.compile(r"\b(what|where|who|when|how)s\b", re.IGNORECASE), r"\1's"),
    (re.compile(r"\b(?:pls|plz|plase)\b", re.IGNORECASE), "please"),
    (re.compile(r"题醒|提配|提星|题型(?=我|大家)"), "提醒"),
    (re.compile(r"笔计|比记"), "笔记"),
    (re.compile(r"取削|取销"), "取消"),
)
_LONGEST = 200
_WORD = re.compile(r"[a-z]{5,12}", re.IGNORECASE)


def respelled(text: str) -> str:
    """`text` with the words of requests as they are spelt."""
    if len(text) > _LONGEST:
        return text
    for pattern, usual in _SHORT:
        text = pattern.sub(usual, text)
    return _WORD.sub(lambda match: _nearest(match[0]), text)


def _nearest(word: str) -> str:
    lowered = word.lower()
    if lowered in _WORDS:
        return word
    return next((one for one in _WORDS if _is_one_slip(lowered, one)), word)


def _is_one_slip(word: str, right: str) -> bool:
    """True if one letter is missing, too much, wrong, or two are swapped."""
    if abs(len(word) - len(right)) > 1 or word[0] != right[0]:
        return False
    start = next((n for n, (a, b) in enumerate(zip(word, right, strict=False)) if a != b), None)
    if start is None:
        return len(word) != len(right)
    rest, right_rest = word[start:], right[start:]
    return (
        rest[1:] == right_rest
        or rest == right_rest[1:]
        or rest[1:] == right_rest[1:]
        or (rest[1::-1] + rest[2:] == right_rest and len(rest) > 1)
    )
