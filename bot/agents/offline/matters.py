"""Compares the words of questions and statements, and finds the statement that a short correction
is about (“make it 4”, “*12 November”, 不是小顾，是若溪), for the offline model. Pure.

A short correction names no matter of its own. It denies a value, gives a value again, or follows a
value of the same kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise

from bot.agents.offline import facts
from memory.recall.sentences import stated_facts, supposes
from memory.recall.stated_facts import value_kinds, values_of_kinds
from memory.text import HAN

_LATIN = re.compile(r"[a-z0-9]+")
_STOP = frozenset(
    """a an and are at be by called can could did do does for from had has have how i in is it its
    me my named of on or our s t that the their this to us was we were what when where which who
    whose why will with would you your please about again all any anybody anyone anything been but
    day days everything first get give going got he her him his if into just know knows long many
    more much new no not now one out remember said say says she should so some something tell than
    their them then there these they thing things those time today told too up year re ve ll d
    m""".split()
)
# They part the words of a Chinese sentence and carry no matter.
NO_MATTER_ZH = re.compile(
    r"什么时候|为什么|[几哪][个位天号点台家把些里儿]?|多[少久大重长高远]钱?|什么|怎么样?|何时|谁|啥"
    r"|现在|到底|究竟|请问?|我们?|你们?|[他她它]们?|[这那][个些里边]?|[今明昨]天|一下|可以|是不是|有没有"
    r"|顺便|大家|[说提讲][了过到]+|关于|(?<!大)叫做?(?!停)|[从的了着吗呢吧呀啊是在有由就都也很不把给和与]"
)
_HAN_RUN = re.compile(rf"[{HAN}]{{2,}}")
FIGURE = re.compile(
    r"\d|[一二三四五六七八九十百千万两]{2,}|[一二三四五六七八九十两](?=[点号日月元块位把箱升米])"
)
UNIT = re.compile(rf"(?:\d|[十百千万])\s*(?![ap]m\b|[点月日号])([a-z]+|[{HAN}])")
_CERTAIN = frozenset(("when", "money", "percent", "place", "color", "company"))
_BEGINNING = 5  # words of which so many letters agree are forms of one
_ENDING = re.compile(r"(?<=[a-z]{3})(?:ing|ed|es|s|e)$")
_CODE = re.compile(r"(?<![a-z])[a-z]{1,12}-\d+")
_TOKEN = re.compile(r"[a-z]+|\d+|[\u3400-\u9fff]")
_ALIKE = 0.5  # of the words of two sentences


def matter_words(text: str) -> set[str]:
    """The words that carry the matter: Latin ones, and Chinese as pairs of characters."""
    latin = {word for word in _LATIN.findall(text.lower()) if word not in _STOP}
    return latin | {a + b for run in _chinese_runs(text) for a, b in pairwise(run)}


def _chinese_runs(text: str) -> list[str]:
    return _HAN_RUN.findall(NO_MATTER_ZH.sub(" ", text))


def word_count(text: str) -> int:
    """How many words of matter it has besides numbers; two Chinese characters are one."""
    latin = sum(word.isascii() and not word.isdecimal() for word in matter_words(text))
    return latin + sum(len(run) // 2 for run in _chinese_runs(text))


def in_common(question_words: set[str], statement_words: set[str]) -> set[str]:
    """The words of `question_words` in `statement_words`, also in other forms (moved, moving)."""
    forms = {_form(word) for word in statement_words}
    return {word for word in question_words if _form(word) in forms}


def _form(word: str) -> str:
    return _ENDING.sub("", word)[:_BEGINNING]


def statement_kinds(text: str) -> set[str]:
    kinds = {"when" if kind in facts.WHEN else kind for kind in value_kinds(text)}
    return kinds & _CERTAIN | ({"figure"} if FIGURE.search(text) else set())


def is_of_twin(newer: str, older: str, question: str) -> bool:
    """Whether both say the same of two things, and the question names that of `older`: “my train to
    Oslo leaves at 7”, “my train to Turin leaves at 9”."""
    code, newer_codes = (set(_CODE.findall(text.lower())) for text in (question, newer))
    if newer_codes and code.intersection(_CODE.findall(older.lower())):
        return not code & newer_codes
    if _are_on_others(newer, older, question):
        return True
    was, became = (_TOKEN.findall(text.lower()) for text in (older, newer))
    asked = frozenset(_TOKEN.findall(question.lower()))
    matcher = SequenceMatcher(None, was, became, autojunk=False)
    changed = [
        (frozenset(was[i:j]), frozenset(became[k:m]))
        for tag, i, j, k, m in matcher.get_opcodes()
        if tag == "replace"
    ]
    names_other = [old & asked and not new & asked for old, new in changed]
    return len(changed) > 1 and any(names_other[:-1]) and matcher.ratio() >= _ALIKE


def _are_on_others(newer: str, older: str, question: str) -> bool:
    """Whether both speak of a thing with another word before it, and `question` has that of `older`
    only: “the Genoa kickoff”, “the Pisa kickoff”."""
    asked = matter_words(question)
    was, became = matter_words(older) & asked, matter_words(newer) - asked
    thing_of = dict(pairwise(_TOKEN.findall(older.lower())))
    things = {thing_of[word] for word in (was - matter_words(newer)) & thing_of.keys()}
    return any(
        thing in things & asked and word in became - matter_words(older)
        for word, thing in pairwise(_TOKEN.findall(newer.lower()))
    )


_POINTS_BACK = re.compile(
    r"^\*(?=\w)|^\d[\d.,:]*(?: (?:pls|please|instead|then|now)\b|$)"
    r"|^(?:ok(?:ay)?|fine|sure|agreed|alright)\b[\s,]*(?:\d|let['’]s\b)|^[行好成]的?[，,\s]*那"
    r"|^\W*(?:(?:sorry|sry|oops|ok(?:ay)?|oh|no|nope|wait|well|scratch that)\b[\s,.:;]*)*"
    r"(?:(?:make|scratch|keep) (?:it|that)\b|(?:it|that|this)(?:['’]s| is| was)\b|back to\b"
    r"|(?:we )?(?:stay|stick|go back|are back|['’]re back)\b)"
    r"|^(?:(?:不对|不是|[\u3400-\u9fff]{0,3}(?<![没不])错了|算了|[那就还])[，,\s]*)*(?:改[成为到回]|换|按|还是|是|不是)",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\b(?:not|instead of|rather than) (?:the |an? )?([^,.;!?]{1,30})|不是([^，,。；！]{1,12})",
    re.IGNORECASE,
)
_FIGURE_OR_WORD = re.compile(r"\d+(?:[:.]\d+)*|[a-z]+|[\u3400-\u9fff]", re.IGNORECASE)
_LEADS = re.compile(
    r"\b(?:ok(?:ay)?|fine|sure|agreed|alright|oh|sorry|no|nope|better|rather)\b|[好行吧嘛就那]",
    re.IGNORECASE,
)
_NAMES_NOTHING = re.compile(r"(?:it|they|that|this)\b", re.IGNORECASE)
NEGATES = re.compile(r"\b(?:not|no|never|cannot)\b|n['’]t\b|[不没无别]", re.IGNORECASE)
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b")
_NEAR = 2  # statements


def points_back(text: str) -> bool:
    """Whether `text` corrects something that it does not name."""
    value = facts.corrected_value(text)
    has_own_matter = bool(value) and facts.is_whole(value)
    return not has_own_matter and bool(
        value or _POINTS_BACK.match(text) or _is_value_only(text) or changes_what_it_follows(text)
    )


def _is_value_only(text: str) -> bool:
    """“ok, then Friday at 10:00”, 7点50吧."""
    rest, values = _LEADS.sub(" ", text.lower()), values_of_kinds(text)
    for _, words in values:
        rest = rest.replace(words, " ", 1)
    return bool(values) and not any(map(str.isalpha, matter_words(rest)))


def changes_what_it_follows(text: str) -> bool:
    """昨天加到128G了: a change whose sentence has no subject."""
    stated = stated_facts(text)
    return bool(stated) and all(
        one.changes and not (one.subject or one.personal or one.ends or one.relation[:3] == "by:")
        for one in stated
    )


def lacks_subject(text: str) -> bool:
    """“it starts on 12 June”, 定在5月20号."""
    return bool(_NAMES_NOTHING.match(text)) or facts.begins_with_verb(text)


def referent_place(text: str, earlier: Sequence[str], is_own: Sequence[bool]) -> int:
    """The place in `earlier`, statements in the order of time, of the one that `text` points back
    to; -1 if there is none. `is_own`: which of them its author made."""
    if supposes(text):
        return -1
    places = range(len(earlier) - 1, -1, -1)
    if not points_back(text):
        near = places[:_NEAR]
        return next(
            (n for n in near if _exchanges(text, earlier[n]) or _refuses(text, earlier[n])), -1
        )
    if text.startswith("*"):
        return next((n for n in places if is_own[n]), -1)
    denied = [_tokens(match[1] or match[2]) for match in _DENIED.finditer(text)]
    values = _value_pairs(text)
    kinds = statement_kinds(text)
    if values and values <= _value_pairs(earlier[-1] if earlier else ""):
        return -1  # “ok, 12 March it is”
    for n in places:
        if any(words and words <= _tokens(earlier[n]) for words in denied):
            return n
    for n in places:
        if values and values <= _value_pairs(earlier[n]):
            return n
    units = set(UNIT.findall(text))
    by_unit = sorted(places[:_NEAR], key=lambda n: units.isdisjoint(UNIT.findall(earlier[n])))
    return next((n for n in by_unit if kinds & statement_kinds(earlier[n])), -1)


def _exchanges(text: str, earlier: str) -> bool:
    """Whether `text` names a value of `earlier` and then another of its kind: “Tuesday doesn't
    work, so Wednesday”."""
    before = set(values_of_kinds(earlier))
    values = values_of_kinds(text)
    first = next((n for n, one in enumerate(values) if one in before), len(values))
    others = [kind for kind, words in values[first + 1 :] if (kind, words) not in before]
    return bool(others) and values[first][0] in others


def _refuses(text: str, earlier: str) -> bool:
    """“Tuesday doesn't work for me” after “the review is on Tuesday at 3”."""
    values = set(values_of_kinds(text))
    return bool(NEGATES.search(text)) and bool(values) and values <= set(values_of_kinds(earlier))


def _tokens(text: str) -> set[str]:
    return set(_FIGURE_OR_WORD.findall(_ORDINAL.sub("", text.lower())))


def _value_pairs(text: str) -> set[tuple[str, ...]]:
    """Numbers with their neighbours, of which a date or a price is made: “3 June”, 6月3号."""
    pairs = pairwise(_FIGURE_OR_WORD.findall(_ORDINAL.sub("", text.lower())))
    return {pair for pair in pairs if _is_of_date(pair)}


def _is_of_date(pair: tuple[str, str]) -> bool:
    kinds = statement_kinds(" ".join(pair)) | statement_kinds("".join(pair))
    return any(part[0].isdecimal() for part in pair) and ("when" in kinds or "点" in pair)
