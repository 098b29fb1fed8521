"""The talk of the measured groups: lines that name nobody, questions to the bot, and their times.

The words come from the written discussions of tests/data, half of them Chinese. A group speaks one
language; its discussions follow one another, each by other people.
"""

from __future__ import annotations

import hashlib
import itertools
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.corpora.talk import BOT, rows_of_talk
from lab.doubles.feishu_events import TalkMention
from lab.doubles.processes import ROOT

CHATS, PEOPLE = 20, 60
_MEMBERS = 6  # of a group; most people are in two
_QUESTIONS_IN_A_THREAD = 4
_FILES = ("group_talk", "interleaved_talk", "unseen_talk")
_TO_BOT = re.compile(rf"@{BOT}[\s,，:：]*(.+)")
_numbers = itertools.count(1)
_SEED = 31  # every version meets the same arrivals


@dataclass(frozen=True, slots=True)
class WrittenDiscussion:
    """The lines of one group's people (author, text), and their question to the bot."""

    lang: str
    lines: tuple[tuple[str, str], ...]
    question: str


def written_discussions() -> list[WrittenDiscussion]:
    """English and Chinese in turn."""
    found: list[WrittenDiscussion] = []
    for name in _FILES:
        text = (ROOT / "tests" / "data" / f"{name}.talk").read_text(encoding="utf-8")
        found += discussions(list(rows_of_talk(text)))
    english, chinese = ([one for one in found if one.lang == lang] for lang in ("en", "zh"))
    return [one for pair in zip(english, chinese, strict=False) for one in pair]


def discussions(rows: Sequence[Mapping[str, Any]]) -> Iterator[WrittenDiscussion]:
    """Picks, of labelled rows (`lab.corpora.talk`), the lines that are not for the bot and name
    nobody, and the first question to it."""
    for _, talk in itertools.groupby(rows, lambda row: (row["lang"], row["conversation"])):
        of_talk = list(talk)
        asked = (_TO_BOT.fullmatch(said["text"]) for said in of_talk[0]["context"])
        question = next((match[1] for match in asked if match), "")
        lines = tuple((row["author"], row["text"]) for row in of_talk if _names_nobody(row))
        if question and lines:
            yield WrittenDiscussion(of_talk[0]["lang"], lines, question)


def _names_nobody(row: Mapping[str, Any]) -> bool:
    named = "@" in row["text"] or BOT.lower() in row["text"].lower()
    return row["expect"] == "silent" and not named


class Group:
    """One chat and its next words. `prefix` keeps its ids apart from those of other groups."""

    def __init__(self, prefix: str, number: int, talk: Sequence[WrittenDiscussion]) -> None:
        self.chat_id = _id("oc", f"{prefix} {number}")
        first = number * PEOPLE // CHATS
        self._people = [_id("ou", f"{(first + k) % PEOPLE}") for k in range(_MEMBERS)]
        self._lines = self._spoken(talk[number::CHATS])
        self._questions = itertools.cycle([one.question for one in talk[number::CHATS]])
        self._askers = itertools.cycle(self._people)
        self._threads: list[TalkMention] = []  # the last answered question of each that may go on
        self._lengths: dict[str, int] = {}
        self._asked = 0

    def line(self) -> TalkMention:
        """The next line of the talk, for nobody in particular."""
        person, text = next(self._lines)
        return TalkMention(_message_id(), self.chat_id, person, text, to_bot=False)

    def question(self) -> TalkMention:
        """The next question: every second one goes on in a thread whose last one is answered,
        asked by the same person."""
        question = next(self._questions)
        self._asked += 1
        if self._threads and self._asked % 2 == 0:
            last = self._threads.pop(0)
            root = last.root_id or last.message_id
            return TalkMention(_message_id(), self.chat_id, last.person, question, root)
        return TalkMention(_message_id(), self.chat_id, next(self._askers), question)

    def answered(self, question: TalkMention) -> None:
        """Its thread may go on."""
        root = question.root_id or question.message_id
        self._lengths[root] = self._lengths.get(root, 0) + 1
        if self._lengths[root] < _QUESTIONS_IN_A_THREAD:
            self._threads.append(question)
        else:
            del self._lengths[root]

    def _spoken(self, talk: Sequence[WrittenDiscussion]) -> Iterator[tuple[str, str]]:
        for discussion in itertools.cycle(talk):
            authors = list(dict.fromkeys(author for author, _ in discussion.lines))
            for author, text in discussion.lines:
                yield self._people[authors.index(author) % _MEMBERS], text


def groups(prefix: str) -> list[Group]:
    """All groups of one measure."""
    talk = written_discussions()
    return [Group(prefix, number, talk) for number in range(CHATS)]


@dataclass(frozen=True, slots=True)
class Utterance:
    """A message in the group `chat`, `at_s` after the beginning."""

    at_s: float
    chat: int
    to_bot: bool


def arrivals(mentions: float, lines: float, seconds: float, chats: int) -> list[Utterance]:
    """Schedules so many mentions and lines a second, evenly spaced, in groups drawn by lot."""
    lot = random.Random(f"{_SEED} {mentions} {lines} {seconds}")  # noqa: S311 - no secret
    said = [
        Utterance((number + 0.5) / rate, lot.randrange(chats), to_bot)
        for rate, to_bot in ((mentions, True), (lines, False))
        for number in range(round(rate * seconds))
    ]
    return sorted(said, key=lambda one: one.at_s)


def _message_id() -> str:
    return _id("om", str(next(_numbers)))


def _id(kind: str, name: str) -> str:
    """As long as Feishu's, and as little in order."""
    return f"{kind}_{hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()}"
