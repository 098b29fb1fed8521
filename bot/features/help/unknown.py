"""A slash word that is no command: what is said to it, and which command was meant. Pure."""

from __future__ import annotations

import re
import unicodedata

from bot.features.help.texts import say
from bot.text.languages import Language
from bot.text.slash_commands import WORDS

_LETTERS = "a-z\u4e00-\u9fff"
_ONE_WORD = re.compile(rf"[/／]([{_LETTERS}]{{2,20}})(?![/\\\w.~-])\s*(\S?)", re.IGNORECASE)
_SHORT = 4  # a word up to so long is near with one slip, a longer one with two
_LEAST_SHARED = 3


def answer_unknown(text: str, language: Language) -> str:
    """What is said to a text that begins with a slash word that is no command; "" for any other
    text: a path, a number, and a word unlike any command that more is said about."""
    match = _ONE_WORD.match(unicodedata.normalize("NFKC", text.strip()))
    if not match:
        return ""
    word = match[1].lower()
    nearest_name = nearest(word)
    if word in WORDS or (match[2] and not nearest_name):
        return ""
    key = "did-you-mean" if nearest_name else "no-such-command"
    return say(key, language, word=word, meant=nearest_name)


def nearest(word: str) -> str:
    """The command's word that `word` was meant to be: by the fewest slips, or begun alike."""
    slips = {known: _slips(word, known) for known in WORDS}
    best = min(slips, key=lambda known: slips[known])
    if slips[best] <= min(1 if len(word) <= _SHORT else 2, len(word) // 2):
        return best
    least = 2 if word[0] >= "\u4e00" else _LEAST_SHARED
    alike = (one for one in WORDS if len(one) >= least and _begins(one, word, least))
    return next(alike, "")


def _begins(command: str, word: str, least: int) -> bool:
    return word.startswith(command) or (len(word) >= least and command.startswith(word))


def _slips(one: str, other: str) -> int:
    """How many letters are added, left out, changed, or swapped with the next one."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        two_before, before, row = before, row, [i]
        for j, against in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != against))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == against:
                cost = min(cost, two_before[j - 2] + 1)
            row.append(cost)
    return row[-1]
