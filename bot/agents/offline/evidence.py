"""Finds the statements and remembered facts that answer a question, for the offline model. Pure.

People's statements count, newest first; questions, requests and the bot's own words do not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.agents.offline import facts
from bot.agents.offline.notes import say
from bot.agents.offline.prompt_reading import PromptLine, remembered_facts
from bot.text import times
from bot.text.languages import Language
from memory.recall.passages import content_words
from memory.recall.rendering import asks_for_former
from memory.text import has_han

_LATIN = re.compile(r"[a-z0-9]+")
_STOP = frozenset(
    """a an and are at be by can could did do does for from had has have how i in is it its me my of
    on or our s t that the their this to us was we were what when where which who whose why will
    with would you your please about again all any anybody anyone anything been but day days
    everything first get give going got he her him his if into just know knows long many more much
    new no not now one out remember said say says she should so some something tell than their them
    then there these they thing things those time today told too up year re ve ll d m""".split()
)
_BEGINNING = 5  # words of which so many letters agree are forms of one
_MOST = 3
_LINES = 5
_FIRST_PERSON = re.compile(r"\b(?:i|me|my|mine|we|our)\b|[我咱]", re.IGNORECASE)
_ONESELF = re.compile(r"\b(?:i|me|my|mine)\b|我(?!们)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Evidence:
    """`text` as somebody stated it; `who` and `when` as in `PromptLine`, "" where it is not known.

    `changes`: it says that something is new. `replaced`: the prompt says that it no longer holds.
    """

    text: str
    who: str = ""
    when: str = ""
    changes: bool = False
    replaced: bool = False


def statements(lines: Sequence[PromptLine]) -> Iterator[Evidence]:
    """What people stated, in the order of the lines. “No, it is now …” stands for the whole
    statement that the bot confirmed after it."""
    for place, line in enumerate(lines):
        if line.own:
            continue
        text = facts.statement_in(line.text)
        value = facts.corrected_value(line.text)
        if value and not facts.fact_to_remember(line.text):
            text = (
                value
                if facts.is_whole(value)
                else _confirmation(value, lines[place + 1 : place + 2])
            )
        if text:
            new = bool(value) or facts.says_change(text)
            yield Evidence(text, line.who, line.when, new, line.replaced)


def statements_answering(
    question: str, statements: Iterable[Evidence], author: str = ""
) -> tuple[Evidence, ...]:
    """The statements that answer `question`, the newest first; none below the threshold.

    The threshold is half of the question's words. Of statements that fit alike, one that a later
    one replaces is left out, and two people who differ are both heard.
    """
    question_words = matter_words(question)
    past = asks_for_former(question)
    own = _ONESELF.search(question) is not None
    fitting = [
        (shared, one)
        for one in statements
        if (shared := _shared_word_count(question_words, one))
        and (past or not one.replaced)
        and not (own and _is_of_another(one, author))
    ]
    best = max((score for score, _ in fitting), default=0)
    if not best or 2 * best < len(question_words):
        return ()
    first = next(n for n, (score, _) in enumerate(fitting) if score == best)
    answers: list[Evidence] = []
    for n in range(len(fitting) - 1, -1, -1):
        score, one = fitting[n]
        if score < best and (n < first or not one.changes):
            continue
        if past or not any(_replaces(newer, one) for newer in answers):
            answers.append(one)
    return tuple(answers[:_MOST])


def cited_statement(one: Evidence, now: datetime, language: Language) -> str:
    """“Alice, 28 Nov at 05:37: the handover moved to 10 March”, as far as it is known."""
    when = ""
    if one.when:
        at = datetime.fromisoformat(one.when).replace(tzinfo=now.tzinfo)
        date_words = times.moment_text if len(one.when) > len("2026-03-02") else times.day_text
        when = date_words(at, language, now=now)
    if not one.who:
        return say("fact-at", language, when=when, fact=one.text) if when else one.text
    key = "fact-by-at" if when else "fact-by"
    return say(key, language, who=one.who, when=when, fact=one.text)


def lines_about(question: str, name: str, text: str) -> list[str]:
    """The lines of a file that share a word with `question`, or its first ones if the question
    names the file; at most `_LINES`."""
    question_words, name_words = matter_words(question), matter_words(name)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    fitting = [
        line for line in lines if _in_common(question_words - name_words, matter_words(line))
    ]
    return (fitting or (lines if question_words & name_words else []))[:_LINES]


def matter_words(text: str) -> set[str]:
    """The words that carry the matter: Latin ones, and Chinese as pairs of characters."""
    latin = {word for word in _LATIN.findall(text.lower()) if word not in _STOP}
    return latin | {word for word in content_words(text) if has_han(word)}


def _shared_word_count(question_words: set[str], one: Evidence) -> int:
    statement_words = matter_words(one.text)
    if _FIRST_PERSON.search(one.text):
        statement_words |= matter_words(one.who)
    shared_words = _in_common(question_words, statement_words)
    return len(shared_words) if any(not word.isdecimal() for word in shared_words) else 0


def _in_common(question_words: set[str], statement_words: set[str]) -> set[str]:
    """The words of `question_words` in `statement_words`, also those that begin alike (moved,
    moving)."""
    beginnings = {word[:_BEGINNING] for word in statement_words if len(word) >= _BEGINNING}
    return {
        w
        for w in question_words
        if w in statement_words or (len(w) >= _BEGINNING and w[:_BEGINNING] in beginnings)
    }


def _is_of_another(one: Evidence, author: str) -> bool:
    """Whether somebody else said it of themselves: their birthday is not the asker's."""
    return bool(author and one.who and one.who != author and _ONESELF.search(one.text))


def _replaces(newer: Evidence, older: Evidence) -> bool:
    if newer.changes or newer.text.lower() == older.text.lower():
        return True
    return newer.who == older.who and facts.fact_key(newer.text) == facts.fact_key(older.text)


def _confirmation(value: str, answer: Sequence[PromptLine]) -> str:
    """The line of the bot's receipt that holds the corrected value."""
    for one in answer:
        if one.own and value in one.text:
            receipt = re.split(r"[:：]\s*", one.text.splitlines()[0], maxsplit=1)[-1]
            return facts.without_stop(receipt.rpartition(" → ")[2])
    return ""


def kept_texts(instructions: str) -> list[str]:
    return list(_texts(remembered_facts(instructions)))


def kept_fact_key(about: str, instructions: str) -> str:
    """The key of the fact that shares most words with `about`, the last one of equals; or ""."""
    wanted_words, best, most = matter_words(about), "", 0
    for name, value in remembered_facts(instructions).items():
        shared_count = len(wanted_words & _words_of(name, value))
        if shared_count and shared_count >= most:
            best, most = name, shared_count
    return best


def names_whole_kept_fact(about: str, instructions: str) -> bool:
    """Whether the fact that `key_of` finds has every word of `about`."""
    name = kept_fact_key(about, instructions)
    return bool(name) and matter_words(about) <= _words_of(
        name, remembered_facts(instructions).get(name)
    )


def _words_of(name: str, value: Any) -> set[str]:
    return matter_words(f"{name.replace('_', ' ')} {' '.join(_texts(value))}")


def _texts(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for name, item in value.items():
                # a bare value says little without the key it stands under
                yield from (f"{name}: {item}",) if _is_short(item) else _texts(item)
        case list():
            for item in value:
                yield from _texts(item)
        case str() | int() | float():
            yield str(value)


def _is_short(item: Any) -> bool:
    return isinstance(item, int | float) or (isinstance(item, str) and len(item.split()) <= 2)
