"""Folds different spellings of the same words into one, and makes patterns that find an address, a
number or a name in any of its spellings. Pure.

`traditional.txt` holds the traditional characters on one line and the simplified ones on the next,
from OpenCC (https://github.com/BYVoid/OpenCC, Apache License 2.0).
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import pairwise
from pathlib import Path

from memory.text import HAN

# a letter or digit of a script with spaces between words
ALPHANUMERIC = rf"[^\W_{HAN}]"

_LONG = 7
_LOOKALIKES = str.maketrans("аеорсухіјѕԁһкмтвнοανρτικ", "aeopcyxijsdhkmtbhoavptik")
_HAN_DIGITS = str.maketrans("零〇一二三四五六七八九幺", "001234567891")
_DIGITS = {
    word: str(digit)
    for digit, word in enumerate("zero one two three four five six seven eight nine".split())
} | {"oh": "0"}

_SEPARATED_CHARACTERS = re.compile(
    rf"(?<=[{HAN}])[·・•‧](?=[{HAN}])|(?<![{HAN}])(?:[{HAN}][\s\-_·]{{1,3}}){{2,}}[{HAN}](?![{HAN}])"
)
_MIXED_TOKEN = re.compile(rf"(?:{ALPHANUMERIC})+")
_HAN_NUMBER = re.compile(r"[零〇一二三四五六七八九幺]{3,}")
_SPOKEN_NUMBER = re.compile(
    rf"\b(?:{'|'.join(_DIGITS)})(?:[\s,-]+(?:{'|'.join(_DIGITS)}))" "{2,}\\b"
)
_SPELLED_OUT = re.compile(
    rf"(?<!{ALPHANUMERIC})(?:{ALPHANUMERIC}[\s\-.·_,]{{1,3}}){{2,}}{ALPHANUMERIC}(?!{ALPHANUMERIC})"
)
_NUMBER_GROUPS = re.compile(r"(?<![\w.])\+?\(?\d{1,5}\)?(?:[ \-]\d{2,5})+(?![\w.])")
_BRACKETED_AT = re.compile(r"\s{0,2}(?:[\[({]\s{0,2}at\s{0,2}[\])}]|艾特)\s{0,2}")
_BRACKETED_DOT = re.compile(
    r"\s{0,2}[\[({]\s{0,2}dot\s{0,2}[\])}]\s{0,2}|(?<=[a-z0-9])\s{0,2}点\s{0,2}(?=[a-z])"
)
_SPOKEN_ADDRESS = re.compile(r"\b([\w.+-]+) at ([\w-]+(?: dot [\w-]+)+)")
_AROUND_AT = re.compile(r"(?<=\w)(?:@\s{0,2}|\s{1,2}@\s{1,2})(?=\w)")  # “ask @dora” is two words
_ADDRESS = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?!\d)")
_PADDING = re.compile(r"\b0+(?=\d)")
_THOUSANDS = re.compile(r"(?<=\d)[,'’](?=\d{3}(?!\d))")

# British and American spelling of a stem, as one.
_BRITISH = (
    (re.compile(r"(?<=[a-z]{2})our(?=$|it|al|hood|abl|ful|less)"), "or"),
    (re.compile(r"(?<=[a-z]{2}[iy])z(?=$|ation|er$)"), "s"),
    (re.compile(r"(?<=[a-z]{3})tr$"), "ter"),
    (re.compile(r"(?<=[a-z]{2})enc$"), "ens"),
)

_BEFORE = rf"(?<!{ALPHANUMERIC})(?<!{ALPHANUMERIC}[\-_./\\@+:])"
_AFTER = rf"(?!{ALPHANUMERIC})(?![\-_/\\@+]{ALPHANUMERIC})(?!\.{ALPHANUMERIC})"
_ORIGIN = re.compile(r"(?:https?://)?(?:www\.)?")
_GROUPED_NUMBER = re.compile(r"(?!\d{1,3}(?:\.\d{1,3}){3}$)\d+(?:\.\d+)+")
_PHONE_DIGITS = 7
_LONG_NUMBER = 5


def folded_text(text: str) -> str:
    """`text` in lower case, simplified characters and digits, with addresses and spelled-out words
    written together."""
    text = simplified(_plain(text))
    text = _SEPARATED_CHARACTERS.sub(lambda match: re.sub(r"[\s\-_·・•‧]", "", match[0]), text)
    text = _MIXED_TOKEN.sub(_one_script, text)
    text = _HAN_NUMBER.sub(lambda match: match[0].translate(_HAN_DIGITS), text)
    text = _SPOKEN_NUMBER.sub(_digits, text)
    text = _SPELLED_OUT.sub(lambda match: re.sub(r"[\s\-.·_,]", "", match[0]), text)
    text = _NUMBER_GROUPS.sub(_joined_groups, text)
    text = _BRACKETED_DOT.sub(".", _BRACKETED_AT.sub("@", text))
    text = _SPOKEN_ADDRESS.sub(lambda f: f"{f[1]}@{f[2].replace(' dot ', '.')}", text)
    text = _ADDRESS.sub(lambda match: _PADDING.sub("", match[0]), text)
    return _THOUSANDS.sub("", _AROUND_AT.sub("@", text))


def stem(word: str) -> str:
    """The part of an English word that its forms share."""
    if len(word) <= 3:
        return word
    for ending, rest in (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and not word.endswith("ss") and len(word) - len(ending) >= 3:
            word = word[: -len(ending)] + rest
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]
    word = word.removesuffix("e") if len(word) > 3 else word
    for british, american in _BRITISH:
        word = british.sub(american, word)
    return word


def _plain(text: str) -> str:
    """`text` without case, width, accents and invisible characters."""
    decomposed_text = unicodedata.normalize("NFKD", text)
    visible_characters = (
        one for one in decomposed_text if unicodedata.category(one) not in ("Mn", "Cf")
    )
    return unicodedata.normalize("NFKC", "".join(visible_characters)).casefold()


def simplified(text: str) -> str:
    """`text` in simplified characters, one for one."""
    return text.translate(_simplified_table())


@cache
def _simplified_table() -> dict[int, int]:
    lines = Path(__file__).with_name("traditional.txt").read_text("utf-8").splitlines()
    return str.maketrans(*lines)


def _one_script(word: re.Match[str]) -> str:
    """A word with letters of two scripts, all in Latin ones."""
    return word[0].translate(_LOOKALIKES) if re.search("[a-z]", word[0]) else word[0]


def _digits(number: re.Match[str]) -> str:
    return "".join(_DIGITS[word] for word in re.findall("[a-z]+", number[0]))


def _joined_groups(groups: re.Match[str]) -> str:
    """A long number without the gaps between its groups."""
    digits = re.sub(r"\D", "", groups[0])
    return digits if len(digits) >= _LONG else groups[0]


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
        may_be_spaced = one.isalnum() and two.isalnum() and (one.isdigit() or two.isdigit())
        pattern += (gap if may_be_spaced else "") + re.escape(two)
    return pattern
