"""Weighs whether a message that addresses nobody continues what the bot said. Pure, English and
Chinese.

The bot prefers silence. It hears a message that calls it by name, and leaves one alone that calls a
colleague or says goodbye. All else is weighed. What is clear neither way is `UNCLEAR`, for the
judge model if there is one.

A log-linear model: each trait (`traits`) has a weight for each situation in
`addressee_weights.json`, and some words have one for all. The score is the sum of the weights of
the traits that are there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from bot.listening.replies import (
    CONSENT,
    LEAVES,
    OPINION,
    POINTS_BACK,
    SIDE_TALK,
    SMALL_TALK,
    THANKS,
    YOU,
    calls,
    corrects,
    could_answer,
    does_something,
    ends_with_name,
    is_aside,
    names_a_person,
    points_at_a_part,
    postpones,
    replaces_a_value,
    reports_failure,
    speaks_of,
    states_a_fact,
    without_courtesies,
)
from bot.listening.reply_links import ADDRESSEE
from bot.listening.requests import (
    ONESELF,
    asks_for_a_name,
    asks_for_consent,
    clauses,
    continues,
    has_han,
    is_ellipsis,
    is_question,
    last_question,
    names_one_more,
    numbers,
    pattern,
    points_at_an_item,
    requests,
    restyles,
    topics,
    with_commas,
    works_on,
)
from bot.listening.transcript import NO_EXCHANGE, LastExchange

_READ_CHARACTERS = 1000
_URL = re.compile(r"https?://\S+")

SURE = 0.67  # from here on the bot answers: it prefers silence
SURE_ACROSS = 0.85  # the same where it spoke in a thread and people went on outside of it
_NO_WEIGHT = (0.0, 0.0, 0.0, 0.0)

_TRAIT_CHARACTERS = 2000
_OF_PEOPLE = re.compile(
    f"{ONESELF.pattern}|{YOU.pattern}|" + r"\b(?:he|she|him|her|his|they|them)\b|[他她]",
    re.IGNORECASE,
)
_WHICH = pattern(r"\bor\b", "还是")
_FORMS: Mapping[str, Callable[[Reading], object]] = {
    "question": lambda one: is_question(one.rest),
    "continues": lambda one: continues(one.rest),
    "restyles": lambda one: restyles(one.rest),
    "requests": lambda one: requests(one.rest),
    "verb of work first": lambda one: one.clauses and works_on(one.clauses[0]),
    "verb of work later": lambda one: any(map(works_on, one.clauses[1:])),
    "restyles in part": lambda one: len(one.clauses) > 1 and any(map(restyles, one.clauses)),
    "one more": lambda one: names_one_more(one.rest),
    "item": lambda one: points_at_an_item(one.rest),
    "ellipsis": lambda one: is_ellipsis(one.rest),
    "corrects": lambda one: corrects(one.rest),
    "another value": lambda one: replaces_a_value(one.rest, one.last_answer),
    "failure": lambda one: reports_failure(one.rest),
    "part": lambda one: points_at_a_part(one.rest),
    "fact": lambda one: states_a_fact(one.text),
    "postpones": lambda one: postpones(one.rest),
    "doing": lambda one: does_something(one.rest),
    "thanks": lambda one: THANKS.search(one.rest),
    "you": lambda one: YOU.search(one.rest),
    "oneself": lambda one: ONESELF.search(one.rest),
    "to the group": lambda one: SIDE_TALK.search(one.rest),
    "small talk": lambda one: SMALL_TALK.search(one.rest),
    "leaves": lambda one: LEAVES.search(one.rest),
    "opinion": lambda one: OPINION.search(one.rest),
    "points back": lambda one: POINTS_BACK.search(one.rest),
    "names a person": lambda one: names_a_person(one.rest, one.around.names),
    "only courtesies": lambda one: not one.rest,
    "courtesies first": lambda one: one.rest != one.text.strip(),
    "of a colleague": lambda one: speaks_of(one.text, one.around.names),
    "a colleague's name last": lambda one: ends_with_name(one.text, one.around.names),
    "of nobody": lambda one: not _OF_PEOPLE.search(one.rest) and not is_question(one.rest),
    "one word": lambda one: one.length <= 1,
    "three words": lambda one: 1 < one.length <= 3,
    "six words": lambda one: 3 < one.length <= 6,
    "ten words": lambda one: 6 < one.length <= 10,
    "long": lambda one: one.length > 10,
}
_RELATIONS: Mapping[str, Callable[[Reading], object]] = {
    "anything": lambda _: True,
    "was answered before": lambda one: one.author in one.around.answered_ids,
    "others were answered": lambda one: one.around.answered_ids - {one.author},
    "author spoke since": lambda one: len(one.around.since) > len(one.others),
    "several spoke since": lambda one: len(one.others) > 1,
    "after another": lambda one: one.last_of_other,
    "after another's question": lambda one: is_question(one.last_of_other),
    "asked as you": lambda one: is_question(one.last_of_other) and YOU.search(one.last_of_other),
    "after another's request": lambda one: requests(one.last_of_other),
    "words of the bot": lambda one: one.about & one.exchange_topics,
    "numbers of the bot": lambda one: (
        numbers(one.text) & numbers(f"{one.around.answer}\n{one.around.question}")
    ),
    "words of the talk": lambda one: (one.about & one.later_topics) - one.exchange_topics,
    "words of nobody": lambda one: one.about and not one.about & one.exchange_topics,
    "words of the question": lambda one: one.about & topics(one.question),
    "bot asked": lambda one: one.question,
    "bot asked yes or no": lambda one: one.question and asks_for_consent(one.question),
    "bot asked which": lambda one: one.question and _WHICH.search(one.question),
    "bot asked who": lambda one: one.question and asks_for_a_name(one.question),
    "answer": lambda one: one.question and could_answer(one.text, one.question),
    "answer to yes or no": lambda one: (
        asks_for_consent(one.question) and could_answer(one.text, one.question)
    ),
    "answers, names a person": lambda one: (
        asks_for_a_name(one.question) and names_a_person(one.rest, one.around.names)
    ),
    "answer with you": lambda one: (
        one.question and YOU.search(one.rest) and could_answer(one.text, one.question)
    ),
    "right after": lambda one: not one.around.since,
    "consents": lambda one: one.question and CONSENT.fullmatch(one.text),
    "consents first": lambda one: (
        one.question and len(one.clauses) > 1 and CONSENT.fullmatch(one.clauses[0])
    ),
    "consents to nothing": lambda one: not one.question and CONSENT.fullmatch(one.text),
}
_LATIN_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
_HAN_RUN = re.compile("[\u4e00-\u9fff]+")
_WORD = re.compile("[a-z']+|[\u4e00-\u9fff]")

# What the bot's last word was, and which forms are looked at together with it.
_KINDS: Mapping[str, re.Pattern[str]] = {
    "draft": re.compile(r"[“\"「„][^“”\"「」]{12,}[”\"」]"),
    "list": re.compile(r"\b1[.、)].{1,200}?\b2[.、)]", re.DOTALL),
    "done": pattern(
        r"^(?:@\S+ )?(?:done|noted|sure|ok|set|saved|added|i (?:have|will|['’]ll)\b)",
        "已|好的|记下|改好",
    ),
}
_OF_KINDS = (
    "ellipsis",
    "opinion",
    "question",
    "requests",
    "fact",
    "item",
    "oneself",
    "you",
    "degree",
)
_WORDINGS: Mapping[str, re.Pattern[str]] = {
    "asks by mark": pattern("[?？]"),
    "number": pattern(r"\d"),
    "exclaims": pattern("[!！]|haha|lol|哈哈|笑死"),
    "he or she": pattern(r"\b(?:he|she|him|her|his|they|them)\b|[他她]"),
    "past": pattern(
        r"\b(?:was|were|had|did|went|got|saw|took|last (?:week|year|month|night)|yesterday)\b",
        "昨天|去年|上次|上周|上个月|[了过](?:[,，。!！]|$)",
    ),
    "begins with I": pattern(r"^(?:i|we|my|our|me)\b|^[我咱]"),
    "begins with he": pattern(r"^(?:he|she|they|his|her|their)\b|^[他她]"),
    "begins with it": pattern(r"^(?:it|that|this|these|those|there|here)\b|^[这那它]"),
    "begins with you": pattern("^you|^[你您]"),
    "begins with a measure": pattern(
        r"^(?:the|a|an|some|any|all|both|only|just|no|not|without|except|same|more|less|each"
        r"|every)\b|^(?:只|不|别|没|都|全|每|最|第|再|更|也|还|先|就|换|改|加)"
    ),
    "begins with a question word": pattern(
        r"^(?:who|what|when|where|why|how|which|whose)\b|^(?:谁|什么|啥|为什么|怎么|哪|几|多少|多久)"
    ),
    "begins with a verb of asking": pattern(
        r"^(?:is|are|was|were|do|does|did|can|could|will|would|should|has|have|had|isn|aren|don)\b",
        "^(?:是不是|有没有|能不能|可不可以|要不要|能|可以|要)",
    ),
    "begins with a link": pattern(
        r"^(?:and|but|or|so|then|if|because|also|plus)\b",
        "^(?:那|还有|但|不过|而且|另外|如果|要是|可|然后)",
    ),
    "begins with a preposition": pattern(
        r"^(?:in|on|at|for|with|by|from|to|of|as|per|since|until|before|after|between|under|over)\b",
        "^(?:按|用|把|将|给|从|到|在|跟|对|为|以|当)",
    ),
    "begins with a number": pattern(r"^[\d一二两三四五六七八九十]"),
    "ends in 吧": pattern("吧[。!！~]*$"),
    "ends in 呢": pattern("呢[?？。]*$"),
    "ends in 吗": pattern("[吗么][?？。]*$"),
    "ends in 了": pattern("了[。!！~]*$"),
    "ends in 啊": pattern("[啊呀哦哇呐嘛啦哈呗][。!！~]*$"),
    "ends in 的": pattern("的[。]*$"),
    "degree": pattern(r"\btoo \w+|\bnot (?:so|that|very) \w+|^[^我你他她]{0,4}太\S"),
    "will do": pattern(r"\bi['’]ll|\bi will|\bwe['’]ll|\bi['’]m (?:going|gonna)|我们?[先去来]"),
    "always": pattern(
        r"\b(?:always|never|again|finally|anyway|actually|honestly|still|really)\b",
        "终于|总算|反正|果然|每次|老是|又",
    ),
    "please": pattern(r"\b(?:please|pls)\b|请|麻烦|帮"),
    "instead": pattern(r"\b(?:instead|as well|too|else|next|then)\b"),
    "not": pattern(r"\b(?:not|no|never|without|nope)\b|n['’]t\b|[不没别非]"),
    "quantity": pattern("[\\d%]|[一二三四五六七八九十百]"),
    "asks without mark": pattern(r"^(?:what|who|how|when|where|which|any)\b[^?]*$"),
    "for me": pattern(r"\b(?:me|mine)\b|我的|给我|帮我|提醒我"),
    "asks how it knows": pattern(
        r"^(?:where|how|why) (?:do|did|does) (?:you|it) "
        r"(?:know|find|get|read|think|come|see|say)\b"
        r"|^(?:since when|source|says who|(?:are )?you sure)\b",
        "^(?:[你您]?(?:是)?(?:怎么|从哪[里儿]?|在哪[里儿]?)(?:知道|看到|找到|查到|得[出来到]|算)|谁说|出处|来源|[你您]?确定)",
    ),
    "family": pattern(
        r"\b(?:mum|mom|dad|wife|husband|kids?|son|daughter|dog|cat|uncle|aunt|neighbou?r|boyfriend"
        r"|girlfriend|ex)\b",
        "老婆|老公|孩子|我妈|我爸|儿子|女儿|邻居",
    ),
    "feeling": pattern(
        r"\b(?:love|hate|like|hope|wish|think|guess|believe|bet|remember|feel|sorry|wow|ugh|ouch|oh"
        r"|phew|yum|nice|great|lucky|jealous|typical|funny|wait)\b",
        "喜欢|讨厌|烦|羡慕|可惜|希望|记得|觉得|幸好|真|好[想烦累难贵快]|厉害|抱歉|辛苦",
    ),
}  # fmt: skip


class Cue(StrEnum):
    """How a message reads."""

    FOLLOW_UP = "follow_up"
    CLOSING = "closing"
    SIDE_TALK = "side_talk"
    UNCLEAR = "unclear"


def looks_like_followup(text: str, author: str = "", exchange: LastExchange = NO_EXCHANGE) -> bool:
    """True when `author` most likely speaks to the bot with `text`."""
    return cue_of(text, author, exchange) is Cue.FOLLOW_UP


def cue_of(text: str, author: str, exchange: LastExchange) -> Cue:
    """How `text`, of a long one its beginning, reads after `exchange`."""
    whole = _URL.sub(" ", text[:_READ_CHARACTERS]).strip()
    rest = without_courtesies(whole)
    if calls(rest, exchange.bot_name):
        return Cue.FOLLOW_UP
    if _is_elsewhere(rest, exchange):
        return Cue.SIDE_TALK
    enough = SURE_ACROSS if exchange.across else SURE
    if whole and likelihood(whole, author, exchange) >= enough:
        return Cue.FOLLOW_UP
    if is_side_talk(rest, exchange):
        return Cue.SIDE_TALK
    return Cue.CLOSING if is_closing(rest) else Cue.UNCLEAR


def is_side_talk(text: str, exchange: LastExchange) -> bool:
    """Whether it reads as said to people, whatever the bot said before."""
    rest = without_courtesies(text)
    return bool(
        _is_elsewhere(rest, exchange)
        or names_a_person(rest, exchange.names)
        or is_aside(rest, exchange)
    )


def is_closing(text: str) -> bool:
    """Whether it ends the matter for now: thanks, ok, let me check."""
    rest = without_courtesies(text)
    return not rest or postpones(rest) or bool(THANKS.search(rest) and not is_question(rest))


def _is_elsewhere(rest: str, exchange: LastExchange) -> bool:
    return bool(LEAVES.search(rest)) or any(calls(rest, name) for name in exchange.names)


def likelihood(text: str, author: str, around: LastExchange) -> float:
    """How likely `author` speaks to the bot with `text`, from 0 to 1."""
    where = situation(author, around)
    found_traits = traits(text, author, around)
    score = sum(ADDRESSEE.traits.get(trait, _NO_WEIGHT)[where] for trait in found_traits)
    score += sum(ADDRESSEE.words.get(word, 0.0) for word in words(text))
    return 1 / (1 + math.exp(-score))


@dataclass(frozen=True)
class Reading:
    """A message of `author`, with what surrounds the bot's last word."""

    text: str
    author: str
    around: LastExchange

    @cached_property
    def rest(self) -> str:
        """The text without courtesies."""
        return without_courtesies(self.text)

    @cached_property
    def clauses(self) -> tuple[str, ...]:
        """The parts of the text between punctuation."""
        return tuple(clauses(self.text))

    @cached_property
    def last_answer(self) -> str:
        """The bot's last word, of a long one its beginning."""
        return self.around.answer[:_TRAIT_CHARACTERS]

    @cached_property
    def question(self) -> str:
        """What the bot asked with it."""
        return last_question(self.around.answer)

    @property
    def was_answered(self) -> bool:
        """Whether the bot's last word was for the author."""
        return self.around.asker in (None, self.author)

    @cached_property
    def others(self) -> tuple[str, ...]:
        """What other people wrote since."""
        return tuple(text for who, text in self.around.since if who != self.author)

    @cached_property
    def last_of_other(self) -> str:
        """The line before, if another person's."""
        last = self.around.since[-1] if self.around.since else None
        return last[1] if last and last[0] != self.author else ""

    @cached_property
    def about(self) -> frozenset[str]:
        """The words of weight in the text."""
        return topics(self.text)

    @cached_property
    def exchange_topics(self) -> frozenset[str]:
        """The words of weight in what the bot was asked and said."""
        return topics(self.last_answer) | topics(self.around.question)

    @cached_property
    def later_topics(self) -> frozenset[str]:
        """The words of weight in what was written since."""
        return topics("\n".join(text for _, text in self.around.since))

    @property
    def length(self) -> int:
        """In words; Chinese in pairs of characters."""
        return len(self.text) // 2 if has_han(self.text) else len(self.text.split())


def traits(text: str, author: str, around: LastExchange) -> frozenset[str]:
    """The names of the traits that a message has."""
    reading = Reading(with_commas(text), author, around)
    found_traits = {name for name, form in _WORDINGS.items() if form.search(reading.rest)}
    found_traits.update(name for name, has in _FORMS.items() if has(reading))
    found_traits.update(name for name, has in _RELATIONS.items() if has(reading))
    found_traits.update(name for name, form in _KINDS.items() if form.search(reading.last_answer))
    kinds, forms = found_traits.intersection(_KINDS), found_traits.intersection(_OF_KINDS)
    found_traits.update(f"{kind}, {form}" for kind in kinds for form in forms)
    return frozenset(found_traits)


def words(text: str) -> frozenset[str]:
    """The words in a text, in small letters; of Chinese the characters and their pairs. And what it
    begins (^) and ends ($) with, one word and two."""
    folded_text = text.casefold().replace("’", "'")
    runs = _HAN_RUN.findall(folded_text)
    pairs = (run[i : i + 2] for run in runs for i in range(len(run) - 1))
    row = _WORD.findall(folded_text)
    begins = {f"^{'_'.join(row[:n])}" for n in (1, 2) if row}
    ends = {f"{'_'.join(row[-n:])}$" for n in (1, 2) if row}
    return frozenset((*_LATIN_WORD.findall(folded_text), *"".join(runs), *pairs, *begins, *ends))


def situation(author: str, around: LastExchange) -> int:
    """0 the bot answered the author, and nobody else has written since; 1 it did, and others have;
    2 it answered somebody else, and nobody else has written since; 3 it did, and others have."""
    reading = Reading("", author, around)
    return 2 * (not reading.was_answered) + bool(reading.others)
