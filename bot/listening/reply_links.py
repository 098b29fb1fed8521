"""Weighs how likely a message answers an earlier one, with learned weights. Pure.

They are read at import, as code is: processes that are forked later share them.

A log-linear model: each view of a pair of messages has a table of weights in
`link_weights.json`, and a pair's score is the sum of one weight from each. For English and
Chinese."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import getitem
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from bot.listening.requests import has_han, pattern, topics
from bot.listening.transcript import MessageRecord

Kind = TypeVar("Kind")

WINDOW = 50  # earlier messages that a message may answer
_READ_CHARACTERS = 500
Bins = tuple[int, ...]
NamedPeople = tuple[tuple[str, str], ...]
_DISTANCES = (2, 3, 4, 5, 6, 8, 11, 16, 26)
_LONG_MS = 24 * 3600 * 1000
_PAUSES_MS = tuple(minutes * 60_000 for minutes in (1, 2, 3, 5, 10, 20, 60))
_WEIGHTS = (0.3, 0.6, 1.2)
_HEAVY = 0.6

# What the corpus, which is English, cannot teach. A word that was said on one topic alone makes
# that one so many times likelier (a power of e): in Chinese, whose pairs of characters seldom
# coincide, and in questions to the bot. In English talk words tell less, as the tables have it.
# A Chinese question of new words alone begins a topic.
_WORD = 2.0
_NEW = 2.0
_BETWEEN_WORDS = re.compile(r"[^\w]+")
_MARKS = "'\"`,.:;!?()[]{}<>|~*-_^\\/+=@&%$#，。：；！？（）、…"

# “@Mei …”, “mei: …” and “mei, …”; in Chinese only with the sign.
_CALL = re.compile(r"@\S+\s*|[!-~]+\s?[,:](?!\S)\s*")
_ASKS = pattern(
    r"[?？]|[吗呢么][\s。.!！~～…]*$",
    r"^(?:how|what|why|where|when|who|which|is there|anyone)\b|^(?:can|does|do) ",
    "怎么|什么|谁|哪|多少|几[个点天号]|有没有|是不是|能不能",
)
_FORMS = (
    # A greeting
    pattern(
        r"^\W*(?:hi|hey|hello|yo|good (?:morning|evening|afternoon))\b",
        r"^\W*(?:大家好|你好|各位|请问)",
    ),
    # Thanks
    pattern(r"\b(?:thanks?|thank you|thx|ty|cheers)\b|谢谢|多谢|感谢"),
    # An answer in a word
    pattern(
        r"^(?:ok(?:ay)?|yes|yeah|yep|yup|no|nope|nah|ah+|oh+|right|sure|cool|true|great|nice|got it"
        r"|i see|hm+|lol|haha|:\)|收到|明白)(?!\w)",
        r"^(?:好的?|嗯|对|是的|不是|行|可以|没有|不行|哈)(?=\W|$)",
    ),
    # What goes on with something
    pattern(
        r"^(?:and|but|so|or|also|then|because|well|it|that|this|they|he|she|those|except|however)\b"
        "|^(?:还有|另外|那|但|不过|所以|而且|这|它|因为|然后)"
    ),
    # A command to a bot
    pattern(r"^[!/]\w"),
    # About oneself
    pattern(r"^(?:i|i'm|i've|my)\b|^(?:我|咱)"),
    # To everybody
    pattern(r"\b(?:anyone|anybody|someone|somebody|guys|all)\b|有人|大家|谁"),
    # To one
    pattern(r"^(?:you|try|use|did|have|do|are|what|why|which|is|does|run|type|check|sudo|/)\b|^[你您试]"),
)  # fmt: skip
_OPENINGS = len(_FORMS) + 1

# Pairs of characters that tell nothing of what is spoken about.
_COMMON = frozenset(
    "一下 一个 一些 一共 时候 现在 今天 明天 昨天 刚才 刚刚 上午 下午 晚上 知道 问题"
    " 大家 多少 已经 应该 需要 没有 因为 所以 但是 如果 然后 这个 那个 帮忙 总结 整理"
    " 告诉 看看 看下 进展 情况 怎样 结果 同学 时间 最后 最近 之前 以后".split()
)

# The views of a message and of a pair, and how many weights each has.
FIRST_VIEWS = {
    "when the author spoke last, whom it names": 18,
    "whether it asks, how it opens, whom it names": 54,
    "the pause before it, whom it names": 24,
    "its length, whether it asks": 10,
    "the weight of its words that were said before, whether the author spoke": 8,
}
PAIR_VIEWS = {
    "who names whom, who has spoken since": 72,
    "messages between, who names whom": 60,
    "time between, who names whom": 48,
    "words in common, who names whom": 30,
    "the topic where the author spoke or was named last, who names whom": 54,
    "what its words say of the topic, the same author": 18,
    "how it opens, the same author, whether the other asks": 36,
    "bots, next to each other, a command": 16,
    "the newest of its topic and author, who names whom": 24,
    "lengths of both, the same author": 18,
}


@dataclass(frozen=True)
class AddresseeWeights:
    """Of each trait in each situation, and of some words in all of them: the greater, the likelier
    the message is for the bot."""

    traits: dict[str, tuple[float, ...]]
    words: dict[str, float]


@dataclass(frozen=True)
class LinkWeights:
    """A table for each view of a message that begins a topic, and of a pair of messages: the
    greater, the likelier."""

    first: dict[str, tuple[float, ...]]
    pair: dict[str, tuple[float, ...]]


def _read_weights(name: str, kind: type[Kind]) -> Kind:
    return msgspec.json.decode(Path(__file__).with_name(name).read_bytes(), type=kind)


ADDRESSEE = _read_weights("addressee_weights.json", AddresseeWeights)
LINKS = _read_weights("link_weights.json", LinkWeights)


@dataclass(slots=True)
class WeighedMessage:
    """A message as it is weighed.

    `to` are the authors it names, `calls` that it names somebody who is not known. `text` is what
    remains, in small letters, `flat` the same with a blank before every word, to look words up in.
    `length` is in words (Chinese: pairs of characters), `topic` any label.
    """

    author: str
    at: int
    is_bot: bool
    to: frozenset[str]
    calls: bool
    text: str
    flat: str
    asks: bool
    length: int
    topic: int | None = None

    @property
    def names(self) -> int:
        """1: it addresses somebody, 0: nobody."""
        return 1 if self.to or self.calls else 0


class Speakers:
    """The names of those who speak in a chat, for finding whom a message addresses."""

    def __init__(self) -> None:
        self._by_token: dict[str, str] = {}
        self._within: dict[str, str] = {}
        self._ours: set[str] = set()
        self._names: _Names | None = None  # as they are now

    @classmethod
    def of(cls, records: Sequence[MessageRecord]) -> Speakers:
        """Those who wrote these messages; of two with one name, who wrote last."""
        people = cls()
        last = {(one.author, one.author_id, one.ours): one for one in reversed(records)}
        for one in reversed(last.values()):
            people.meet(one)
        return people

    def meet(self, record: MessageRecord) -> None:
        """Learns the author's name. Our own is what everybody writes: it addresses nobody."""
        self._names = None
        name = record.author.casefold().strip()
        if record.ours:
            self._ours.add(f"@{name}")
        elif has_han(name) or " " in name:
            if len(name) > 1:
                self._within[name] = record.author_id
        elif len(core := name.strip(_MARKS)) > 2:
            self._by_token[name] = self._by_token[core] = record.author_id

    def read(self, record: MessageRecord, topic: int | None = None) -> WeighedMessage:
        """The message as it is weighed; of a long one its beginning."""
        if self._names is None:
            by_token, within = sorted(self._by_token.items()), sorted(self._within.items())
            self._names = _names(tuple(by_token), tuple(within), tuple(sorted(self._ours)))
        form, to = _read(self._names, record.content[:_READ_CHARACTERS], record.author_id)
        return WeighedMessage(
            record.author_id,
            record.timestamp,
            record.is_bot,
            to,
            form.calls,
            form.rest,
            form.flat,
            form.asks,
            form.length,
            topic,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Names:
    """How those are called who speak: author by token, author by what stands within a text, and
    ours. One object for the same names, whoever of them spoke last."""

    by_token: dict[str, str]
    within: dict[str, str]
    ours: tuple[str, ...]


@lru_cache(maxsize=256)
def _names(by_token: NamedPeople, within: NamedPeople, ours: tuple[str, ...]) -> _Names:
    return _Names(dict(by_token), dict(within), ours)


class _Form(NamedTuple):
    """What a text shows whoever wrote it: `rest` is without the call it begins with."""

    rest: str
    flat: str
    calls: bool
    asks: bool
    length: int


@lru_cache(maxsize=4096)
def _read(names: _Names, content: str, author_id: str) -> tuple[_Form, frozenset[str]]:
    """The form of a text, and whom it names but for its author. Kept, for a line is read again with
    each message that comes after it."""
    text = content.casefold().strip()
    for ours in names.ours:
        text = text.replace(ours, " ").strip()
    form = _form(text)
    to = {author for name, author in names.within.items() if name in text}
    known_names = names.by_token
    if [name for name in known_names if name in text]:
        tokens = text.split()
        cores = [known_names.get(token) or known_names.get(token.strip(_MARKS)) for token in tokens]
        to.update(filter(None, cores))
    return form._replace(calls=form.calls and not to), frozenset(to - {author_id})


def _form(text: str) -> _Form:
    call = _CALL.match(text)
    rest = text[call.end() :] if call else text
    return _Form(
        rest=rest,
        flat=" " + _BETWEEN_WORDS.sub(" ", rest),
        calls=bool(call),
        asks=bool(_ASKS.search(rest)),
        length=len(rest) // 2 if has_han(rest) else rest.count(" ") + 1,
    )


def likelihoods(
    message: WeighedMessage,
    earlier: Sequence[WeighedMessage],
    words: Words,
    *,
    asks_bot: bool = False,
) -> list[float]:
    """How likely `message` begins a topic (first), and answers each of `earlier` (oldest first, at
    most `WINDOW`), with which it shares `words`; they add up to 1.

    `asks_bot`: it is a question to the bot, which may come from outside a discussion.
    """
    first, pairs = bins(message, earlier, words)
    within = words.within if asks_bot else words.han_within
    scores = [sum(map(getitem, _FIRST, first)) + _NEW * words.asks_of_new]
    scores += [
        sum(map(getitem, _PAIR, places)) + _WORD * within.get(message_before.topic, 0.0)
        for places, message_before in zip(pairs, earlier, strict=True)
    ]
    most = max(scores)
    weights = [math.exp(score - most) for score in scores]
    total = sum(weights)
    return [weight / total for weight in weights]


def bins(
    message: WeighedMessage, earlier: Sequence[WeighedMessage], words: Words
) -> tuple[Bins, list[Bins]]:
    """Where to look in the table of each of `FIRST_VIEWS`, and for each of `earlier` in the table
    of each of `PAIR_VIEWS`."""
    opening = _opening(message.text)
    return _first_bins(message, earlier, opening, words), _pair_bins(
        message, earlier, opening, words
    )


class Words:
    """What words a message shares with earlier ones; the fewer of them have a word, the more it
    weighs. `shared` is by message, `of_topic` by topic, `known` of all. `within`: of each word the
    part of its messages that belong to a topic, added up; `han_within` of Chinese words alone."""

    def __init__(self, message: WeighedMessage, earlier: Sequence[WeighedMessage]) -> None:
        self.shared = [0.0] * len(earlier)
        self.of_topic: defaultdict[int | None, float] = defaultdict(float)
        self.within: defaultdict[int | None, float] = defaultdict(float)
        self.han_within: defaultdict[int | None, float] = defaultdict(float)
        self.known = 0.0
        words = topics(message.text) - _COMMON
        for word in words:
            sought = word if has_han(word) else f" {word}"
            self._count([n for n, line in enumerate(earlier) if sought in line.flat], earlier)
        if has_han(message.text):
            self.han_within.update(self.within)
        self.asks_of_new = bool(
            message.asks and not self.known and len(words) > 2 and has_han(message.text)
        )
        for author in message.to:
            self._count([n for n, line in enumerate(earlier) if author in line.to], earlier)

    def _count(self, places: Sequence[int], earlier: Sequence[WeighedMessage]) -> None:
        if not places:
            return
        weight = 1 / len(places)
        self.known += weight
        for place in places:
            self.shared[place] += weight
            self.within[earlier[place].topic] += weight
        for topic in {earlier[place].topic for place in places}:
            self.of_topic[topic] += weight

    def part_of(self, topic: int | None) -> int:
        """How far the words speak for a topic: 0 not known, else by its part of them and their
        weight, up to 8."""
        if not self.known:
            return 0
        part = bisect_right((0.34, 0.67, 0.99), self.of_topic.get(topic, 0.0) / self.known)
        return 1 + part * 2 + (self.known >= _HEAVY)


def _first_bins(
    message: WeighedMessage, earlier: Sequence[WeighedMessage], opening: int, words: Words
) -> Bins:
    name_count = message.names
    if name_count and any(line.author in message.to for line in earlier):
        name_count = 2
    author = message.author
    spoke = next((n for n, line in enumerate(reversed(earlier), 1) if line.author == author), 0)
    pause = message.at - earlier[-1].at if earlier else _LONG_MS
    return (
        (1 + bisect_right((2, 4, 8, 16), spoke) if spoke else 0) * 3 + name_count,
        (message.asks * _OPENINGS + opening) * 3 + name_count,
        bisect_right(_PAUSES_MS, pause) * 3 + name_count,
        min(message.length // 3, 4) * 2 + message.asks,
        bisect_right(_WEIGHTS, words.known) * 2 + bool(spoke),
    )


def _pair_bins(
    message: WeighedMessage, earlier: Sequence[WeighedMessage], opening: int, words: Words
) -> list[Bins]:
    author, to, name_count = message.author, message.to, message.names
    backwards = earlier[::-1]
    own = next((line.topic for line in backwards if line.author == author), None)
    addressed_topic = next((line.topic for line in backwards if author in line.to), None)
    later: set[str] = set()
    later_topics: set[int | None] = set()
    parts = {topic: words.part_of(topic) for topic in {line.topic for line in earlier}}
    bins: list[Bins] = []
    for back, earlier_message in enumerate(backwards, 1):
        same = earlier_message.author == author
        whom = (2 if earlier_message.author in to else name_count) + 3 * same
        back_to = 2 if author in earlier_message.to else earlier_message.names
        newest = earlier_message.author not in later
        here = 3 * _same_topic(earlier_message, own) + _same_topic(earlier_message, addressed_topic)
        shared_weight = words.shared[-back]
        bins.append(
            (
                ((whom * 3 + back_to) * 2 + newest) * 2 + (author not in later),
                bisect_right(_DISTANCES, back) * 6 + whom,
                bisect_right(_PAUSES_MS, message.at - earlier_message.at) * 6 + whom,
                (1 + bisect_right(_WEIGHTS, shared_weight) if shared_weight else 0) * 6 + whom,
                here * 6 + whom,
                parts[earlier_message.topic] * 2 + same,
                (opening * 2 + same) * 2 + earlier_message.asks,
                ((message.is_bot * 2 + earlier_message.is_bot) * 2 + (back == 1)) * 2
                + earlier_message.text.startswith(("!", "/")),
                ((earlier_message.topic not in later_topics) * 2 + newest) * 6 + whom,
                (min(earlier_message.length // 4, 2) * 3 + min(message.length // 4, 2)) * 2 + same,
            )
        )
        later.add(earlier_message.author)
        later_topics.add(earlier_message.topic)
    return bins[::-1]


def _same_topic(earlier: WeighedMessage, topic: int | None) -> int:
    return 0 if topic is None else 1 if earlier.topic == topic else 2


def _opening(text: str) -> int:
    return next((kind for kind, form in enumerate(_FORMS, 1) if form.search(text)), 0)


_FIRST = tuple(LINKS.first[view] for view in FIRST_VIEWS)
_PAIR = tuple(LINKS.pair[view] for view in PAIR_VIEWS)
