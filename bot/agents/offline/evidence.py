"""Finds the statements and remembered facts that answer a question, for the offline model. Pure.

People's statements count, newest first; questions, requests and the bot's own words do not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from bot.agents.offline import facts
from bot.agents.offline.matters import (
    FIGURE,
    NEGATES,
    NO_MATTER_ZH,
    UNIT,
    changes_what_it_follows,
    in_common,
    is_of_twin,
    lacks_subject,
    matter_words,
    points_back,
    referent_place,
    statement_kinds,
    word_count,
)
from bot.agents.offline.notes import say
from bot.agents.offline.prompt_reading import PromptLine, remembered_facts
from bot.agents.prompts.prompt import OTHER_BOT
from bot.feishu.markup import quotable
from bot.text import times
from bot.text.languages import Language, nest_quotations
from memory.recall.changes import replaces
from memory.recall.selection import asks_for_former
from memory.recall.sentences import stated_facts, supposes
from memory.recall.stated_facts import value_kinds
from memory.text import HAN, one_line

_QUOTATION = re.compile("“([^“”]*)”")
_SURELY_TOLD = 280  # characters; the rest of a long quotation may be cut
_POINTS = re.compile(r"\b(?:those|these|them|they|that|it|this|one)\b|[这那它]", re.IGNORECASE)
_PART = re.compile(
    r"(?<=[?？!！。;；])\s*|(?<!\s)\s+and\s+(?=(?:what|when|where|who|which|how|is|are|do|does|can)\b)"
    r"|[,，]\s*(?=(?:what|when|where|who|which|how|顺便|还有|另外)\b)",
    re.IGNORECASE,
)
_OBSERVES = re.compile(
    r"\b(?:i|my|we|our|says?|reads?|shows?)\b|[我咱]|[写说量称数显]", re.IGNORECASE
)
_REPLIES_EN = re.compile(
    r"\w+(?: \w+)? (?:does|do|did|is|are|was|will|can|has|should)(?: (?:it|that|so))?",
    re.IGNORECASE,
)
_ASKS_WHEN = re.compile(r"\bwhen\b|\bwhat (?:time|day)\b|什么时候|何时|[哪几](?:天|点|号|月)", re.I)
_ASKS_AMOUNT = re.compile(r"\bhow (?:much|many|long)\b|多少|多[久长]|几", re.IGNORECASE)
_BARE = 20  # characters of a reply that is a value only
_HAN_CHARACTER = re.compile(rf"[{HAN}]")
_SHORT_REPLY = 6  # Chinese characters
_ELLIPTIC = 2  # words of a statement that names no matter of its own
_BEGINS = 12  # characters in which a statement on a value names it
_CAME_ABOUT = re.compile(r"了(?=[，,。！!]|$)")
_NAME = re.compile(r"\b[A-Z][a-z]+")
_MOST = 3
_LINES = 5
_FIRST_PERSON = re.compile(r"\b(?:i|me|my|mine|we|our)\b|[我咱]", re.IGNORECASE)
_OWNER = re.compile(  # “Bob's birthday”, not “what's” or “it's”
    r"\b(?!(?:What|Who|Where|When|How|Why|It|That|There|Here|Let|He|She|This|Which)\b)"
    r"([A-Z][a-z]+)(?:['’]s\b| ?的)"
)
_PRONOUN = re.compile(rf"{_POINTS.pattern}|\b(?:he|she)\b|[他她]", re.IGNORECASE)
_ANSWERS = re.compile(
    r"\W*(?:(?:yes|yeah|yep|no|nope|right)\b|[对是嗯没不][的啊呀了]?(?=[，,。]))", re.IGNORECASE
)
_IF = re.compile(
    r"\b(?:if|in case|provided(?: that)?)\b(.{1,60}?)(?:,|\bthen\b|[.!]?$)"
    r"|(?:如果|要是|只要|假如)(.{1,30}?)(?:的话)?(?:[，,]|就|[。！]?$)",
    re.IGNORECASE,
)
_AGREES = re.compile(r"\W*\d\W*")  # “+1”
_ONESELF = re.compile(r"\b(?:i|me|my|mine)\b|我(?!们)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Evidence:
    """`text` as somebody stated it; `who` and `when` as in `PromptLine`, "" where it is not known.

    `changes`: it says that something is new. `is_replaced`: the prompt says that it no longer
    holds. `about`: the question that it answers, or the statement that it corrects, in too few
    words to name its matter. `supposes`: it says only what may be.
    """

    text: str
    who: str = ""
    when: str = ""
    changes: bool = False
    is_replaced: bool = False
    about: str = ""
    supposes: bool = False

    @property
    def whole(self) -> str:
        return f"{self.about} {self.text}".strip()


def statements(lines: Sequence[PromptLine]) -> Iterator[Evidence]:
    """What people stated, in the order of the lines. “No, it is now …” stands for the whole
    statement that the bot confirmed after it."""
    last_question = before = ""
    told_by_kind: dict[bool, list[Evidence]] = {True: [], False: []}  # facts kept; the window
    for place, line in enumerate(lines):
        if line.own or line.who.endswith(OTHER_BOT):
            continue
        told = told_by_kind[line.earlier]
        follows = told[-1] if told and told[-1].text in before else None
        if one := _statement_of(line, last_question, lines[place + 1 : place + 2], told, follows):
            told.append(one)
            yield one
        last_question = _question_with_matter(line, follows) if facts.is_question(line.text) else ""
        before = line.text


def _question_with_matter(line: PromptLine, follows: Evidence | None) -> str:
    """The question, with the statement that it only points to: “is that still right?”."""
    if word_count(line.text) > _ELLIPTIC or not _PRONOUN.search(line.text):
        return line.text
    return f"{line.above or (follows.whole if follows else '')} {line.text}".strip()


def _statement_of(
    line: PromptLine,
    last_question: str,
    after: Sequence[PromptLine],
    told: Sequence[Evidence],
    follows: Evidence | None,
) -> Evidence | None:
    """What `line` states, if it states something. `told`: the statements before it; `follows`: that
    of the line right before it."""
    text = facts.statement_in(line.text)
    value = facts.corrected_value(line.text)
    whole = ""
    if value and not facts.fact_to_remember(line.text):
        whole = value if facts.is_whole(value) else _confirmed_fact(value, *after)
        text = whole or facts.statement_in(value)
    question = line.above.removesuffix("…") or last_question
    asked = question if facts.is_question(question) and _is_reply(line.text, question) else ""
    referent = "" if whole or asked else _referent(line, told, follows)
    if not text and referent:  # “make it 4” reads as a request
        text = facts.without_stop(line.text)
    if not text:
        return None
    only_supposes = supposes(text)
    new = not only_supposes and bool(value or referent or facts.says_change(text))
    about = referent or asked
    return Evidence(text, line.who, line.when, new, line.is_replaced, about, only_supposes)


def _referent(line: PromptLine, told: Sequence[Evidence], follows: Evidence | None) -> str:
    """The statement that `line` corrects or goes on with, with what that one is about; "" if there
    is none."""
    if not line.above:
        own = [one.who == line.who for one in told]
        place = referent_place(line.text, [one.text for one in told], own)
        if place >= 0:
            return told[place].whole
        goes_on = follows and follows.who == line.who and not statement_kinds(follows.text)
        if follows and (
            (goes_on and statement_kinds(line.text) and lacks_subject(line.text))
            or facts.corrected_value(line.text)
            or changes_what_it_follows(line.text)
        ):
            return follows.whole
        return ""
    if _AGREES.fullmatch(line.text) or not (
        points_back(line.text) or facts.says_change(line.text) or statement_kinds(line.text)
    ):
        return ""
    above = line.above.removesuffix("…")
    same = (one for one in reversed(told) if one.text in above or above in one.text)
    return next((one.whole for one in same), above)


def _is_reply(text: str, question: str) -> bool:
    """Whether `text`, said after `question`, says something only together with it."""
    return bool(question) and bool(
        _ANSWERS.match(text)
        or _is_short_reply(text, question)
        or (points_back(text) and facts.says_change(text))
    )


def _is_short_reply(text: str, question: str) -> bool:
    """“Leonie does” after “who waters the plants?”, “30 June” after “when does it end?”, “赵敏来浇”
    after “谁浇花？”."""
    if question and (_REPLIES_EN.fullmatch(text) or _is_bare_value(text, question)):
        return True
    own = set(_HAN_CHARACTER.findall(NO_MATTER_ZH.sub(" ", text)))
    is_short = len(_HAN_CHARACTER.findall(text)) <= _SHORT_REPLY
    return is_short and bool(own & set(NO_MATTER_ZH.sub(" ", question)))


def _is_bare_value(text: str, question: str) -> bool:
    """Whether `text` is hardly more than a time or an amount, and the question asks for one."""
    if len(text) > _BARE or word_count(text) > _ELLIPTIC:
        return False
    if _ASKS_WHEN.search(question):
        return bool(facts.WHEN.intersection(value_kinds(text)))
    return bool(_ASKS_AMOUNT.search(question) and FIGURE.search(text))


def statements_answering(
    question: str, statements: Iterable[Evidence], author: str = ""
) -> tuple[Evidence, ...]:
    """The statements that answer `question`, the newest first; none below the threshold. Of
    several questions at once each is answered. What is only supposed comes last."""
    statement_list = _with_conditions_met(list(statements))
    parts = list(filter(facts.is_question, _PART.split(question)))
    answers = {
        one for part in parts or [question] for one in _answering(part, statement_list, author)
    }
    newest_first = [one for one in dict.fromkeys(reversed(statement_list)) if one in answers]
    return tuple(sorted(newest_first, key=lambda one: one.supposes)[:_MOST])


def _with_conditions_met(stated: Sequence[Evidence]) -> list[Evidence]:
    """`stated`, in which what somebody supposed holds once the condition was stated: “the venue
    confirmed” after “if the venue confirms, it is on 5 May”."""
    return [
        replace(one, supposes=False, changes=True)
        if one.supposes and any(_meets(later, one) for later in stated[place + 1 :])
        else one
        for place, one in enumerate(stated)
    ]


def _meets(later: Evidence, supposed: Evidence) -> bool:
    match = _IF.search(supposed.text)
    condition = matter_words(match[1] or match[2]) if match else set()
    return (
        bool(condition)
        and not later.supposes
        and not NEGATES.search(later.text)
        and in_common(condition, matter_words(later.text)) == condition
    )


def _answering(question: str, candidates: Sequence[Evidence], author: str) -> list[Evidence]:
    """The threshold is half of the question's words. A later statement that fits less than the best
    is told too if it says that something is new, or bears on one that fits best. What a later one
    replaces is left out, and two people who differ are both heard."""
    past = asks_for_former(question)
    named_people = frozenset(one.who for one in candidates if _is_named(one.who, question))
    candidates = [
        one
        for one in candidates
        if past or not one.is_replaced
        if _may_answer(question, one, author, named_people)
    ]
    scores = {one: _sharedword_count(question, one) for one in candidates}
    best = max(scores.values(), default=0)
    if not best or 2 * best < word_count(question):
        return []
    fitting: list[Evidence] = []
    for one in candidates:
        says_new = (
            one.changes
            or any(_denies(one, older) for older in fitting)
            or _CAME_ABOUT.search(one.text)
        )
        is_change = says_new and 2 * scores[one] >= word_count(question)
        if scores[one] == best or any(
            (is_change or _bears_on(one, older, question))
            and not is_of_twin(one.whole, older.whole, question)
            for older in fitting
        ):
            fitting.append(one)
    if past:
        return fitting[::-1]
    answers: list[Evidence] = []
    for one in reversed(fitting):
        if not any(
            _replaces(newer, one, scores[newer] == scores[one])
            for newer in answers
            if not newer.about.endswith(one.text)  # which says what the correction is about
        ):
            answers.append(one)
    return answers


def cited_statement(one: Evidence, asker: str, now: datetime, language: Language) -> str:
    """“Alice, 28 Nov at 05:37: ‘the handover moved to 10 March’”, as far as it is known; what the
    asker said themselves is told as theirs."""
    when = ""
    if one.when:
        at = datetime.fromisoformat(one.when).replace(tzinfo=now.tzinfo)
        date_words = times.moment_text if len(one.when) > len("2026-03-02") else times.day_text
        when = date_words(at, language, now=now)
    if one.who and one.who != asker:
        key = "fact-by-at" if when else "fact-by"
    else:
        key = "fact-at" if when else "fact"
    return say(key, language, who=one.who, when=when, fact=quotable(one.text))


def lines_about(question: str, name: str, text: str) -> list[str]:
    """The lines of a file that share a word with `question`, or its first ones if the question
    names the file; at most `_LINES`."""
    question_words, name_words = matter_words(question), matter_words(name)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    fitting = [line for line in lines if in_common(question_words - name_words, matter_words(line))]
    return (fitting or (lines if question_words & name_words else []))[:_LINES]


def _sharedword_count(question: str, one: Evidence) -> int:
    """How many words of the question the statement has. Who speaks of themselves is a word of it,
    but not the only one unless the question points to something (“@Bob where do I get those?”)."""
    question_words, names = matter_words(question), matter_words(one.who)
    shared_words = in_common(question_words, matter_words(one.whole))
    speaks_of_self = _FIRST_PERSON.search(one.text) and (shared_words or _POINTS.search(question))
    if speaks_of_self or question_words <= names:
        shared_words |= names & question_words
    return len(shared_words) if any(not word.isdecimal() for word in shared_words) else 0


def _is_named(person: str, question: str) -> bool:
    words = matter_words(person)
    return bool(words) and words <= matter_words(question)


def _may_answer(question: str, one: Evidence, author: str, named: frozenset[str]) -> bool:
    """False for what somebody else said of themselves, or of another person: their birthday is not
    the asker's, and not that of the people whom the question names."""
    is_own = bool(_ONESELF.search(one.text))
    if named and is_own and one.who not in named and not any(name in one.text for name in named):
        return False
    owners = set(_OWNER.findall(one.text))
    owners_meant = set(_OWNER.findall(question)) or (
        {author} if _ONESELF.search(question) else set()
    )
    if (
        owners
        and owners_meant
        and not owners & owners_meant
        and not any(name in one.text for name in owners_meant)
    ):
        return False
    is_of_another = author and one.who and one.who != author and is_own
    names_them = matter_words(one.who) & matter_words(question)
    return not (is_of_another and _ONESELF.search(question) and not names_them)


def _bears_on(newer: Evidence, older: Evidence, question: str) -> bool:
    """Whether `newer` says, in other words than the question's, that the matter of `older` changed,
    or speaks of the value itself: “Ines has left”, “my scale says 437 kilos”."""
    newer_words, older_words = matter_words(newer.text), matter_words(older.text)
    question_words = matter_words(question)
    if _FIRST_PERSON.search(newer.text):
        newer_words |= matter_words(newer.who)
    about = in_common(question_words & older_words, newer_words)
    value_words = older_words - question_words
    begins = set() if FIGURE.search(older.text) else matter_words(newer.text[:_BEGINS])
    if in_common(value_words, newer_words if newer.changes else begins):
        return True
    if about and in_common(
        matter_words(" ".join(_NAME.findall(older.text))) & value_words, newer_words
    ):
        return True  # “I’m taking on-call from Priya”
    observes = _OBSERVES.search(newer.text)
    units = set(UNIT.findall(newer.text)).intersection(UNIT.findall(older.text))
    if observes and units and word_count(newer.text) <= _ELLIPTIC:
        return True
    same_kind = statement_kinds(newer.text) & statement_kinds(older.text)
    return bool(about and same_kind and (newer.changes or observes))


def _denies(newer: Evidence, older: Evidence) -> bool:
    return bool(NEGATES.search(newer.text)) != bool(NEGATES.search(older.text))


def _replaces(newer: Evidence, older: Evidence, alike: bool) -> bool:
    """`alike`: both fit the question best. In doubt both hold."""
    same_author = newer.who == older.who
    if newer.supposes != older.supposes:
        return False
    if newer.text.lower() == older.text.lower():
        return True
    pairs = [
        (replace(n, changes=newer.changes or n.changes), o)
        for n in stated_facts(newer.text)
        for o in stated_facts(older.text)
        if n.personal == o.personal
    ]
    if any(replaces(n, o) and (same_author or (n.changes and not n.personal)) for n, o in pairs):
        return True
    kinds, was = statement_kinds(newer.text), statement_kinds(older.text)
    if not (alike and newer.changes) or not all(n.subject == o.subject for n, o in pairs):
        return False
    return bool(kinds & was) or not (kinds or was or pairs)


def _confirmed_fact(value: str, answer: PromptLine | None = None) -> str:
    """The statement with the corrected value that the bot's receipt quotes."""
    if not (answer and answer.own and quotes(answer.text, value)):
        return ""
    quoted_texts: list[str] = _QUOTATION.findall(answer.text)
    return quoted_texts[-1] if quoted_texts else ""


def quotes(answer: str, words: str) -> bool:
    """Whether the bot's answer tells these words."""
    return nest_quotations(one_line(words))[:_SURELY_TOLD] in answer


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
    """Whether the fact that `kept_fact_key` finds has every word of `about`."""
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
                yield from (f"{name}: {item}",) if _is_short(name, item) else _texts(item)
        case list():
            for item in value:
                yield from _texts(item)
        case str() | int() | float():
            yield str(value)


def _is_short(name: str, item: Any) -> bool:
    is_word = isinstance(item, str) and len(item.split()) <= 2 and not item.startswith(name)
    return is_word or isinstance(item, int | float)
