"""The texts that people read, as data: one gettext catalogue for each module and language, beside
the module; and the quotation marks within them.

`texts.py` has `texts.en.po` and `texts.zh.po`. The msgid is a key; the msgstr is the text with
fields in braces, as `str.format` fills them. A key with `msgid_plural` takes its form by the field
`n`. English and Chinese share the marks: “…”, and within it ‘…’.
"""

from __future__ import annotations

import contextlib
import gettext
import io
import re
import string
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from bot.text.languages import Language, Sentence
from memory.text import HAN, one_line

_MEET = re.compile(f"(?<=[{HAN}])(?=[A-Za-z])|(?<=[A-Za-z])(?=[{HAN}])")
_LONGEST = 300
_CURLY = str.maketrans("“”", "‘’")
_STRAIGHT_PAIR = re.compile(r'"([^"\n]*)"')


class Catalogue:
    """The texts of one module in both languages; each is read when the first text is asked for.

    A key that is not there raises KeyError: a test finds it before anybody else does.
    """

    def __init__(self, module: str) -> None:
        """`module`: the `__file__` of the module whose texts these are."""
        self._path = Path(module).with_suffix("")

    def say(self, key: str, language: Language, /, **fields: object) -> str:
        """The text with its fields filled in. What stands in a field is not read for fields; where
        it meets the text as Chinese meets Latin letters, a space stands between. Quotations within
        “{a field}” get the inner marks."""
        text = ""
        for part in _parts(self.template(key, language, n=fields.get("n")), fields):
            meets = text and _MEET.match(text[-1] + part, 1)
            text += f" {part}" if meets else part
        return text

    def has(self, key: str) -> bool:
        """Whether there is such a text."""
        with contextlib.suppress(KeyError):
            self.template(key, "en")
            return True
        return False

    def both(self, key: str, /, **fields: object) -> Sentence:
        """The text in both languages."""
        return Sentence(self.say(key, "en", **fields), self.say(key, "zh", **fields))

    def say_both(self, key: str, /, **fields: object) -> str:
        """The text in one language after the other, for readers whose language is not known."""
        both = self.both(key, **fields)
        return f"{both.zh} / {both.en}"

    def read(self) -> None:
        """Both languages, so that the first text waits for none of them."""
        for language in ("en", "zh"):
            _translations(f"{self._path}.{language}.po")

    def template(self, key: str, language: Language, *, n: object = None) -> str:
        """The text before its fields are filled in."""
        translations = _translations(f"{self._path}.{language}.po")
        if isinstance(n, int):
            with contextlib.suppress(KeyError):  # it has one form for every number
                return translations.ngettext(key, key, n)
        return translations.gettext(key)


@cache
def _parse(template: str) -> list[tuple[str, str | None]]:
    """What stands between the fields, each with the name of the field after it."""
    return [(literal, field) for literal, field, _, _ in string.Formatter().parse(template)]


def _parts(template: str, fields: Mapping[str, object]) -> list[str]:
    """What stands between the fields, and in them."""
    parts: list[str] = []
    pieces = _parse(template)
    for place, (literal, field) in enumerate(pieces, start=1):
        parts.append(literal)
        if field:
            words = str(fields[field])
            after = pieces[place][0] if place < len(pieces) else ""
            is_quoted = literal.endswith("“") and after.startswith("”")
            parts.append(nest_quotations(words) if is_quoted else words)
    return parts


class _NoSuchText(gettext.NullTranslations):
    """Asked for what a catalogue does not have."""

    def gettext(self, message: str) -> str:
        raise KeyError(message)

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        del msgid2, n
        raise KeyError(msgid1)


@cache
def _translations(path: str) -> gettext.NullTranslations:
    """Raises `OSError` when there is no such catalogue."""
    import polib  # not on the way of processes that say nothing to people

    binary = polib.pofile(path, encoding="utf-8").to_binary()
    translations = gettext.GNUTranslations(io.BytesIO(binary))
    translations.add_fallback(_NoSuchText())
    return translations


def quote(words: str, most: int = _LONGEST) -> str:
    """`words` in quotation marks, on one line and cut after `most` characters."""
    return f"“{nest_quotations(shorten(words, most))}”"


def shorten(words: str, most: int) -> str:
    """`words` on one line of at most `most` characters, with “…” as the last where it was cut."""
    line = one_line(words)
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def nest_quotations(words: str) -> str:
    """`words` with the marks of a quotation within a quotation."""
    return _STRAIGHT_PAIR.sub(r"‘\1’", words).translate(_CURLY)
