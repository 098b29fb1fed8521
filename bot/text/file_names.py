"""Names of files as they may be shown, stored and given to a file system. Pure."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import unquote

LONGEST = 80
_SEPARATORS = re.compile(r"[/\\]")
_UNFIT = re.compile(r'[<>:"|?*\[\]`]')
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_DAILY = re.compile("(?:[\xb0-\xd7][\xa1-\xfe])+")  # GB 2312, level 1
_SURE = 4  # signs
_MOST_TIMES = 3
_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
_RESERVED = frozenset(
    {"con", "prn", "aux", "nul", *(f"{one}{n}" for one in ("com", "lpt") for n in range(1, 10))}
)


def safe_name(name: str, default: str = "file") -> str:
    """The last part of `name` in one line, without what hides, reorders or means something to a
    file system; at most `LONGEST` characters, its ending kept."""
    last = _SEPARATORS.split(unicodedata.normalize("NFC", _restore_name(name)))[-1]
    visible_name = "".join(
        " " if c.isspace() else c for c in last if c.isspace() or not _is_hidden(c)
    )
    stem, ending = _split_ending(" ".join(_UNFIT.sub("_", visible_name).split()).rstrip(" ."))
    if not stem or stem.lower() in _RESERVED:
        stem = f"{default}_{stem}" if stem else default
    return stem[: LONGEST - len(ending)].rstrip(" .") + ending


def _restore_name(name: str) -> str:
    """The name before a program wrote its bytes in another way, once or twice."""
    for _ in range(_MOST_TIMES):
        restored = next(filter(None, (read(name) for read in _READINGS)), name)
        if restored == name:
            break
        name = restored
    return name


def _of_percents(name: str) -> str | None:
    """The name of which a program made an address, if it has other letters than an address has."""
    try:
        restored = unquote(name, errors="strict")
    except UnicodeError:
        return None
    return restored if restored != name and not restored.isascii() else None


def _of_single_bytes(name: str) -> str | None:
    """The name before its UTF-8 was read as Latin-1 or Windows-1252."""
    for encoding in ("latin-1", "cp1252"):
        try:
            return name.encode(encoding).decode("utf-8")
        except UnicodeError:
            continue
    return None


def _of_gb(name: str) -> str | None:
    """The name before its GB 2312 was read as Latin-1: pairs of signs that are daily characters."""
    runs = _BEYOND_ASCII.findall(name)
    if sum(map(len, runs)) < _SURE or not all(map(_DAILY.fullmatch, runs)):
        return None
    return name.encode("latin-1").decode("gb2312", "ignore")


_READINGS = (_of_percents, _of_single_bytes, _of_gb)


def ending_of(name: str) -> str:
    """The ending in lower case without its dot; "" where there is none."""
    return _split_ending(name)[1][1:].lower()


def _split_ending(name: str) -> tuple[str, str]:
    stem, dot, ending = name.rpartition(".")
    if not dot or not 0 < len(ending) <= 8 or not ending.isalnum():
        return name, ""
    return stem.rstrip(" ."), f".{ending}"


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _UNSEEN
