"""Decodes text whose encoding nobody named. Pure.

Unicode comes first: by its mark, by the zero bytes of UTF-16, or as UTF-8, also if a few characters
of it are damaged. Encodings of seven bits follow. `charset-normalizer` then says which older ones
fit. Short texts often fit several, so the one whose characters are the common ones of its language
wins.
"""

from __future__ import annotations

import codecs
import re
import string
from collections.abc import Iterator

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Encodings of seven bits, by how they turn to another alphabet.
_SHIFTS = (
    (re.compile(rb"\x1b\$\)C"), "iso2022_kr"),
    (re.compile(rb"\x1b\$[@B]"), "iso2022_jp_2"),
    (re.compile(rb"~\{(?:[!-}]{2})+~\}"), "hz"),
)
# The earlier one wins a tie.
_OLDER = ("gb18030", "big5", "cp932", "euc_jp", "cp949", "cp1252", "cp1251")
# Lead bytes of the characters that people use daily: GB 2312 and Big5 level 1, kana and JIS level
# 1, hangul.
_COMMON = {
    "gb18030": (range(0xB0, 0xD8), range(0xA1, 0xA4)),
    "big5": (range(0xA4, 0xC7), range(0xA1, 0xA4)),
    "cp932": (range(0x88, 0x98), range(0x81, 0x84)),
    "euc_jp": (range(0xB0, 0xD0), range(0xA1, 0xA6)),
    "cp949": (range(0xB0, 0xC9), range(0xA1, 0xA2)),
}
_SIGNS = "，。、；：？！“”‘’（）《》「」—…·￥％"
_USUAL = frozenset(string.printable + _SIGNS)
_REPLACEMENT = "\ufffd".encode()
_CONTINUED = bytes(range(0x80, 0xC0))  # what follows the first byte of a character in UTF-8
_SAMPLE = 64 * 1024
_SHORT = 12  # characters beyond ASCII: fewer show little
_CLOSE = 0.1  # between the scores of two encodings
_MESS = 0.06  # by which charset-normalizer may prefer another encoding
_DAMAGED = 0.2  # of the characters beyond ASCII


def decode(data: bytes) -> tuple[str, str]:
    """Returns the text without U+0000, and the encoding if it may be the wrong one, else ""."""
    text, doubtful = _unicode(data) or _older(data)
    return text.replace("\x00", ""), doubtful


def _unicode(data: bytes) -> tuple[str, str] | None:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace"), ""
    if encoding := _wide(data[:_SAMPLE]) or _shifted(data):
        return data.decode(encoding, "replace"), ""
    text = data.decode("utf-8", "replace")
    damage = text.count("\ufffd") - data.count(_REPLACEMENT)
    if not damage:
        return text, ""
    if _is_cut(data):
        return text.removesuffix("\ufffd"), ""
    if _is_cut(data.lstrip(_CONTINUED)):
        return text, "utf-8, damaged"
    beyond = sum(not one.isascii() for one in text) - damage
    return (text, "utf-8, damaged") if damage <= _DAMAGED * beyond else None


def _shifted(data: bytes) -> str:
    """The encoding of seven bits that turns to another alphabet and back."""
    if not data.isascii():
        return ""
    fitting = (encoding for shift, encoding in _SHIFTS if shift.search(data))
    return next((one for one in fitting if _strictly(data, one) is not None), "")


def _wide(sample: bytes) -> str:
    """UTF-16 without a mark: every ASCII character, line breaks too, has a zero byte on the same
    side. A few zeros in text that is valid UTF-8 are damage."""
    low, high = sample[::2].count(0), sample[1::2].count(0)
    if (low + high) * 8 < len(sample) and _strictly(sample, "utf-8") is not None:
        return ""
    for zeros, others, encoding in ((high, low, "utf-16-le"), (low, high, "utf-16-be")):
        if zeros > 4 * others and zeros * 50 > len(sample) and _reads(sample, encoding):
            return encoding
    if (low + high) * 50 <= len(sample):
        return ""
    # U+4E00, which is in every Chinese text, has its zero on the other side.
    return next((one for one in ("utf-16-le", "utf-16-be") if _reads_chinese(sample, one)), "")


def _reads_chinese(sample: bytes, encoding: str) -> bool:
    text = _strictly(sample, encoding) or ""
    usual = sum(one in _USUAL or "\u4e00" <= one <= "\u9fff" for one in text)
    return bool(text) and usual >= 0.95 * len(text)


def _reads(sample: bytes, encoding: str) -> bool:
    """True if the sample is text in this encoding; its last character may be cut."""
    text = _strictly(sample, encoding)
    if text is None:
        return False
    return sum(one.isprintable() or one.isspace() for one in text) >= 0.95 * len(text)


def _is_cut(data: bytes) -> bool:
    """True if only the last character of UTF-8 is incomplete."""
    text = _strictly(data, "utf-8")
    return text is not None and not text.isascii()


def _strictly(data: bytes, encoding: str) -> str | None:
    """The text without its last character if that is cut; None if it is not in this encoding."""
    try:
        return codecs.getincrementaldecoder(encoding)("strict").decode(data)
    except UnicodeDecodeError:
        return None


def _older(data: bytes) -> tuple[str, str]:
    sample = data[:_SAMPLE]
    candidates = sorted(_fitting(sample), key=lambda one: -one[0])
    if not candidates:
        texts = [(data.decode(one, "replace"), f"{one}, damaged") for one in ("utf-8", "gb18030")]
        return min(texts, key=lambda one: one[0].count("\ufffd"))
    score, encoding = candidates[0]
    text = data.decode(encoding, "replace")
    close = len(candidates) > 1 and score - candidates[1][0] < _CLOSE
    short = sum(byte > 127 for byte in sample) < 2 * _SHORT
    return text, encoding if close or short or score < 0.8 else ""


def _fitting(sample: bytes) -> Iterator[tuple[float, str]]:
    """The encodings that fit, each with how common its characters are, from 0 to 1."""
    from charset_normalizer import from_bytes

    whole = sample[: sample.rfind(b"\n") + 1] or sample
    matches = [
        one
        for one in from_bytes(whole, cp_isolation=list(_OLDER), preemptive_behaviour=False)
        if one.encoding in _OLDER
    ]
    least = min((one.chaos for one in matches), default=0.0)
    fitting = {one.encoding for one in matches if one.chaos <= least + _MESS}
    for encoding in _OLDER:
        if encoding in fitting:
            yield _common(whole.decode(encoding, "replace"), encoding), encoding


def _common(text: str, encoding: str) -> float:
    beyond = [one for one in text if not one.isascii()][:2000]
    if not beyond:
        return 0.0
    is_common = _in_word if encoding not in _COMMON else _by_lead
    return sum(is_common(one, encoding) for one in beyond) / len(beyond)


def _by_lead(character: str, encoding: str) -> float:
    lead = character.encode(encoding, "replace")
    if len(lead) == 1:  # half-width kana, which are rare
        return 0.5
    daily, signs = _COMMON[encoding]
    return 1.0 if lead[0] in daily else 0.9 if lead[0] in signs else 0.0


def _in_word(character: str, _encoding: str) -> float:
    """Letters of one language, and the dashes and quotes of print."""
    if character.isalpha():
        return 0.9
    return 0.8 if character in "–—‘’“”…€°§«»£" else 0.2
