"""The two languages: which of them a text or a terminal speaks, and the texts that people read in
both.

These are data: one gettext catalogue for each module and language, beside the module. `texts.py`
has `texts.en.po` and `texts.zh.po`. The msgid is a key; the msgstr is the text with fields in
braces, as `str.format` fills them. A key with `msgid_plural` takes its form by the field `n`.
English and Chinese share the marks: “…”, and within it ‘…’.
"""

from __future__ import annotations

import contextlib
import gettext
import io
import os
import re
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

from memory.text import HAN, has_han, one_line

Language = Literal["zh", "en"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")

_LINK = r"[^\s<>\"'|，。；、！？（）《》【】“”]{1,2000}"  # no space stands around it in Chinese
_NOT_SAID = re.compile(
    r"```.{0,20000}?(?:```|\Z)|`[^`\n]{1,300}`"  # code
    rf"|(?<![a-zA-Z0-9])(?:[a-zA-Z][a-zA-Z0-9+.-]{{0,20}}://|www\.){_LINK}"
    r"|\[[a-z ]+(?::[^\[\]]*)?\]"  # "[image]", "[file: a.pdf]"
    r"|(?<![^\W_])@\S+"
    r"|^[>＞][^\n]*"  # what is quoted
    r"|“[^“”\n]{1,300}”|\"[^\"\n]{1,300}\"|「[^「」\n]{1,300}」|『[^『』\n]{1,300}』|《[^《》\n]{1,300}》",
    re.DOTALL | re.MULTILINE,
)
_HAN_CHARACTER = re.compile(f"[{HAN}]")
_OTHER_WORD = re.compile(f"(?:(?![{HAN}])[^\\W\\d_])+")
# What makes a sentence of the words around it tells more than they do.
_FRAME = frozenset(
    "a an and are at be been but by can could did do does for from had has have he her his how i if"
    " in is it its me my of on or our please she should so that the their them there they this to"
    " us was we were what when where which who why will with would you your".split()
)
_FRAME_ZH = frozenset("的了是吗呢吧么啊在有不我你您他她们这那什怎哪谁几请帮把给和就都也要会能被让")
_FRAME_WEIGHT = 3


def terminal_language(environment: Mapping[str, str] = os.environ) -> Language:
    """Returns that of the locale (POSIX: the first variable that is set)."""
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    locale = next((environment[name] for name in names if environment.get(name)), "")
    return "zh" if locale.lower().startswith("zh") else "en"


def language_of(texts: Iterable[str], names: Iterable[str] = ()) -> Language:
    """The language of most of what is said in the texts; English where nothing is."""
    return own_language("\n".join(texts), names) or "en"


def own_language(text: str, names: Iterable[str] = ()) -> Language | None:
    """The language of most words of `text`; None where it has none of its own beside `names`,
    mentions, quotations, links and code."""
    return _language_said(text, tuple(name for name in names if name and name in text))


@lru_cache(maxsize=256)  # each step of a turn asks about the same question
def _language_said(text: str, names: tuple[str, ...]) -> Language | None:
    own_words = _own_words(text, names)
    chinese = sum(
        [_FRAME_WEIGHT if one in _FRAME_ZH else 1 for one in _HAN_CHARACTER.findall(own_words)]
    )
    words = _OTHER_WORD.findall(own_words)
    other = sum([_FRAME_WEIGHT if word.lower() in _FRAME else 1 for word in words])
    if not chinese and not other:
        return None
    return "zh" if chinese >= other else "en"


def last_own_language(texts: Sequence[str], names: Iterable[str] = ()) -> Language | None:
    """That of the last text that tells one. An English command does not: people of every language
    write those."""
    names = tuple(names)
    for text in reversed(texts):
        tongue = own_language(text, names)
        if tongue == "zh" or (tongue and not text.startswith(("/", "／"))):
            return tongue
    return None


def _own_words(text: str, names: Iterable[str]) -> str:
    for name in sorted(names, key=len, reverse=True):
        edge = "" if has_han(name) else r"(?![^\W_])"
        before = "@?" if has_han(name) else r"(?:@|(?<![^\W_]))"
        text = re.sub(f"{before}{re.escape(name)}{edge}", " ", text)
    return _NOT_SAID.sub(" ", text)


def join_list(parts: Iterable[str], language: Language) -> str:
    """“one, two”."""
    return ("、" if language == "zh" else ", ").join(parts)


@dataclass(frozen=True, slots=True)
class Sentence:
    """The same sentence in both languages."""

    en: str
    zh: str

    def said(self, language: Language) -> str:
        return self.zh if language == "zh" else self.en


_MEET = re.compile(f"(?<=[{HAN}])(?=[A-Za-z])|(?<=[A-Za-z])(?=[{HAN}])")
_LONGEST = 300
_CURLY = str.maketrans("“”", "‘’")
_STRAIGHT_PAIR = re.compile(r'"([^"\n]*)"')


class InvalidValue(ValueError):
    """A value that a setting cannot have; `sentence` says what it must be."""

    def __init__(self, en: str, zh: str) -> None:
        super().__init__(en)
        self.sentence = Sentence(en, zh)


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
            text += f" {part}" if _meet(text, part) else part
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


def _meet(text: str, part: str) -> bool:
    """Whether Chinese and Latin letters meet where `part` follows; bold text may end or begin
    there."""
    if text.endswith("*") or part.startswith("*"):
        if text.count("**") % 2:
            return False  # within bold text
        text, part = text.rstrip("*"), part.lstrip("*")
    return bool(text and _MEET.match(text[-1] + part, 1))


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
