"""Names of files as they may be shown, stored and given to a file system. Pure."""

from __future__ import annotations

import re
import unicodedata
from contextlib import suppress
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from urllib.parse import unquote_to_bytes

LONGEST = 80
_NAMELESS = "file"
_SEPARATORS = re.compile(r"[/\\]")
_UNFIT = re.compile(r'[<>:"|?*\[\]`]')
_BEYOND_ASCII = re.compile(rb"[^\x00-\x7f]+")
_DAILY = re.compile(b"(?:[\xb0-\xd7][\xa1-\xfe])+")  # GB 2312, level 1
_EAST_ASIAN_LETTER = re.compile(r"[\u3005\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_EAST_ASIAN = re.compile(
    r"[\x00-\x7f\u2010-\u2027\u3000-\u30ff\u3400-\u9fff\uac00-\ud7a3\uff00-\uffef\U0001f300-\U0001faff]+"
)
_BYTES = {"€": b"\x80", "\ufffd": b"\xff"}  # what is no pair; half a character
_LOST = re.compile("\ufffd+")
_CHARSET = re.compile(r"^[\w-]{1,20}'[\w-]{0,20}'(?=.*%)")
_SURE = 4  # signs
_MOST_TIMES = 3
_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
_RESERVED = frozenset(
    {"con", "prn", "aux", "nul", *(f"{one}{n}" for one in ("com", "lpt") for n in range(1, 10))}
)


def safe_name(name: str) -> str:
    """The last part of `name` in one line, without what hides, reorders or means something to a
    file system; at most `LONGEST` characters, its ending kept."""
    last = _SEPARATORS.split(unicodedata.normalize("NFC", _restore_name(name)))[-1]
    visible_name = "".join(
        " " if c.isspace() else c for c in last if c.isspace() or not _is_hidden(c)
    )
    stem, ending = _split_ending(" ".join(_UNFIT.sub("_", visible_name).split()).rstrip(" ."))
    if not stem or stem.lower() in _RESERVED:
        stem = f"{_NAMELESS}_{stem}" if stem else _NAMELESS
    return stem[: LONGEST - len(ending)].rstrip(" .") + ending


def _restore_name(name: str) -> str:
    """The name before a program wrote its bytes in another way, once or twice."""
    for _ in range(_MOST_TIMES):
        restored = next(filter(None, (read(name) for read in _READINGS)), name)
        if restored == name:
            break
        name = restored
    return name


def _of_words(name: str) -> str | None:
    """The name that a mail program wrote in ASCII (RFC 2047)."""
    if "=?" not in name:
        return None
    try:
        return str(make_header(decode_header(name)))
    except (HeaderParseError, LookupError, ValueError):
        return None


def _of_percents(name: str) -> str | None:
    """The name of which a program made an address or a header (RFC 5987), if it has other letters
    than an address has."""
    data = unquote_to_bytes(_CHARSET.sub("", name))
    try:
        restored = data.decode()
    except UnicodeError:
        restored = _daily_chinese(data)
    return restored if restored and restored != name and not restored.isascii() else None


def _of_single_bytes(name: str) -> str | None:
    """The name before its UTF-8 was read as Latin-1, as an older system writes it."""
    for encoding in ("latin-1", "cp1252", "cp437", "mac_roman", "cp1251"):
        with suppress(UnicodeError):
            data = name.encode(encoding)
            if encoding != "cp1251" or len(data) - len(name.encode("ascii", "ignore")) >= _SURE:
                return data.decode()
    return None


def _of_gb(name: str) -> str | None:
    """The name before its GB 2312 was read as Latin-1, or as DOS writes it."""
    for encoding in ("latin-1", "cp437"):
        with suppress(UnicodeError):
            if restored := _daily_chinese(name.encode(encoding)):
                return restored
    return None


def _daily_chinese(data: bytes) -> str:
    """What the bytes say in GB 2312 if they are pairs for daily characters, else ""."""
    runs = _BEYOND_ASCII.findall(data)
    if sum(map(len, runs)) < _SURE or not all(map(_DAILY.fullmatch, runs)):
        return ""
    return data.decode("gb2312", "ignore")


def _of_double_bytes(name: str) -> str | None:
    """The name before its UTF-8 was read in pairs, as a Chinese or Japanese system does.
    Half a character that made no pair is lost; the rest of the name is not."""
    for encoding in ("gb18030", "big5", "cp932"):
        with suppress(UnicodeError):
            pairs = (_BYTES.get(one) or one.encode(encoding) for one in name)
            restored = _LOST.sub("_", b"".join(pairs).decode(errors="replace"))
            letters = len(_EAST_ASIAN_LETTER.findall(restored))
            is_sure = letters > 1 and 2 * (restored.count("_") - name.count("_")) <= letters
            if is_sure and _EAST_ASIAN.fullmatch(restored):
                return restored
    return None


_READINGS = (_of_words, _of_percents, _of_single_bytes, _of_double_bytes, _of_gb)


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
