"""Writes the value of a cell as its number format shows it: 0.25 as 25%. Pure.

Source: ECMA-376 part 1, 18.8.30 and 18.8.31. Dates are written in ISO form, which says which part
is the month. A value whose format is not understood is written without it."""

from __future__ import annotations

import datetime as dt
import functools
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal

# Formats that programs for Chinese, Japanese and Korean do not spell out, by their number.
EAST_ASIAN_FORMATS = {
    **dict.fromkeys((*range(27, 32), 36, *range(50, 59)), "yyyy-m-d"),
    **dict.fromkeys(range(32, 36), "h:mm:ss"),
}
_LONGEST = 200  # characters of a format
_MOST_DIGITS = 15  # of a number, as Excel keeps them
_MOST_PLACES = 10  # after the point
_TOKEN = re.compile(
    r"""(?s)"(?P<quoted>[^"]{0,40})"|\\(?P<escaped>.)|[_*]."""
    r"|\[\$(?P<currency>[^]-]{0,9})[^]]{0,40}\]|\[(?P<bracket>[^]]{0,40})\]"
    r"|(?P<digits>(?i:general)|[0#?.][0#?.,]*)|(?P<sign>.)"
)
_COLOUR = re.compile(r"(?i)black|blue|cyan|green|magenta|red|white|yellow|color ?\d+|dbnum\d")
_LETTERS = re.compile(r"[dmyhsegbDMYHSEGB@/]")  # of dates, powers, text and fractions
_BREAK = re.compile(r"(?:\r|\n|_x00[01][0-9A-Fa-f]_)+")  # Excel writes control characters so
_LITERAL = re.compile(r'"[^"]{0,40}"|\\.|[_*].|\[\$[^]]{0,40}\]')


def shown(value: object, number_format: str | None) -> str:
    """The value as a person sees it in the cell."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return _number(number_format or "General")(value)
    if isinstance(value, dt.timedelta):
        return _duration(value)
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return _moment(value, number_format or "")
    return _BREAK.sub(" ", str(value))


def _moment(value: dt.datetime | dt.date | dt.time, number_format: str) -> str:
    letters = _LITERAL.sub("", number_format).lower()
    has_clock, has_day = ("h" in letters or "s" in letters), ("d" in letters or "y" in letters)
    clock = "%H:%M:%S" if getattr(value, "second", 0) or "s" in letters else "%H:%M"
    if isinstance(value, dt.time):
        return value.strftime(clock)
    if isinstance(value, dt.datetime) and has_clock:
        return value.strftime(f"%Y-%m-%d {clock}" if has_day else clock)
    return value.strftime("%Y-%m-%d")


def _duration(value: dt.timedelta) -> str:
    seconds = round(value.total_seconds())
    minutes, rest = divmod(abs(seconds), 60)
    text = f"{minutes // 60}:{minutes % 60:02}" + (f":{rest:02}" if rest else "")
    return f"-{text}" if seconds < 0 else text


def _plain(value: float) -> str:
    """All digits that Excel keeps, without a power where people write none."""
    if isinstance(value, int):
        return str(value)
    number = Decimal(f"{value:.{_MOST_DIGITS}g}")
    return f"{number:f}" if 1e-6 < abs(value) < 1e21 or not value else f"{number.normalize():E}"


@functools.lru_cache(maxsize=1000)
def _number(number_format: str) -> Callable[[float], str]:
    """Returns what writes a number in that format: by its sections for positive and negative
    numbers and zero."""
    sections: list[list[re.Match[str]]] = [[]]
    for token in _TOKEN.finditer(number_format[:_LONGEST]):
        if token["sign"] == ";":
            sections.append([])
        else:
            sections[-1].append(token)
    writers = [_writer(one) for one in sections[:3]]

    def write(value: float) -> str:
        if abs(value) >= 10**_MOST_DIGITS or value != value:
            return _plain(value)
        section = 0 if value > 0 or len(writers) == 1 else 1 if value < 0 else len(writers) // 3 * 2
        text = (writers[section] or _plain)(abs(value))
        is_negative = value < 0 and not (section and writers[section]) and re.search("[1-9]", text)
        return f"-{text}" if is_negative else text

    return write


def _writer(tokens: list[re.Match[str]]) -> Callable[[float], str] | None:
    """Returns what writes a number in that section; None if it has more in it than a number with
    words and signs around it."""
    around, digits, percents = ["", ""], "", 0
    for token in tokens:
        bracket, sign = token["bracket"], token["sign"] or ""
        if (bracket and not _COLOUR.fullmatch(bracket)) or _LETTERS.match(sign):
            return None
        if token["digits"]:
            if digits:
                return None
            digits = token["digits"]
        percents += sign == "%"
        words = token["quoted"] or token["escaped"] or token["currency"] or sign
        around[bool(digits)] += words
    before, after = around
    if not digits:
        return (lambda _: before.strip()) if before.strip() else None
    return lambda value: f"{before}{_digits(value, digits, percents)}{after}".strip()


def _digits(value: float, digits: str, percents: int) -> str:
    """A number that is not negative, with as many digits as the format asks for."""
    number = Decimal(f"{value:.{_MOST_DIGITS}g}") * 100 ** min(percents, 2)
    if digits.lower() == "general":
        return f"{number.normalize():f}"
    whole, _, part = digits.partition(".")
    thousands = len(digits) - len(digits.rstrip(","))
    places = min(len(re.sub("[^0#?]", "", part)), _MOST_PLACES)
    number = (number / 1000**thousands).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    grouping = "," if "," in whole.rstrip(",") else ""
    written, _, rest = f"{number:{grouping}f}".partition(".")
    written = written.zfill(whole.count("0")) if whole.count("0") else written.lstrip("0")
    needed = part.count("0")
    rest = rest[:needed] + rest[needed:].rstrip("0")
    return f"{written}.{rest}" if rest else written
