"""The building blocks of reading a message: patterns and the words of weight in it. Pure."""

import re
from functools import lru_cache

# Texts of which it is kept what was found: a line is read with those before it, whose readings are
# the same, and several questions about it need the same answer.
KEPT = 256
_END = 1000  # characters


def any_of(*alternatives: str) -> str:
    """One of these patterns."""
    return f"(?:{'|'.join(alternatives)})"


def pattern(*alternatives: str) -> re.Pattern[str]:
    """One of these patterns, in any case."""
    return re.compile(any_of(*alternatives), re.IGNORECASE)


def ends_of(text: str) -> str:
    """A long text's beginning and end: there stands what somebody wants. Reading all of it would
    keep everybody waiting."""
    return text if len(text) <= 2 * _END else f"{text[:_END]}\n{text[-_END:]}"


def has_han(text: str) -> bool:
    """Whether there is a Chinese character in it."""
    return bool(_HAN.search(text))


def with_commas(text: str) -> str:
    """Commas where people leave a space between Chinese words: 把我去掉吧 我妈明天来."""
    return _SPACE_IN_HAN.sub("，", text)


@lru_cache(maxsize=KEPT)
def topics(text: str) -> frozenset[str]:
    """The words of weight: beginnings of Latin words, pairs of Chinese characters."""
    folded_text = text.casefold()
    latin = (word for word in _LATIN_WORD.findall(folded_text) if word not in _STOP_WORDS)
    han = (run[i : i + 2] for run in _HAN_RUN.findall(folded_text) for i in range(len(run) - 1))
    return frozenset((*(word[:6].rstrip("s") for word in latin), *han))


def numbers(text: str) -> frozenset[str]:
    """The numbers in digits, but for those of one digit, which stand in any list."""
    return frozenset(_NUMBER.findall(text))


_NUMBER = re.compile(r"\d{2,}")
_HAN = re.compile("[\u4e00-\u9fff]")
_SPACE_IN_HAN = re.compile(
    r"(?<=[\u4e00-\u9fff]) +(?=[\u4e00-\u9fff\d])|(?<=\d) +(?=[\u4e00-\u9fff]{2})"
)
_LATIN_WORD = re.compile(r"[a-z][a-z0-9_]{2,}|(?<!\d)\d+(?:\.\d+)+")
# Characters of grammar end a run, so that bigrams are made of words of weight.
_GRAMMAR = "的了吗呢么是我你他她它们在有也都还就不这那哪什怎为谁几很再和与或要会能可以"
_HAN_RUN = re.compile(rf"[^\W0-9a-z_{_GRAMMAR}]+")
_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "the and for are but not you your our with that this have has had was were will would can "
        "could should does did from they them what when where which who whom why how about into "
        "any all some there here then than its get got let use just now out one two too also very "
        "say said going want need make please still",
    )
)


ONESELF = pattern(r"\b(?:i|me|my|we|our|us|i['’]\w+|we['’]\w+)\b", "[我咱]")
