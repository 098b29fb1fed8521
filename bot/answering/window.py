"""Decides which lines of a place the prompt shows, and which of them are marked. Pure.

A question that was asked before is one line; an old answer that rests on a replaced statement is
marked; a message that is quoted with the question stands there alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise

from bot.feishu.markup import AT_TAG
from bot.listening.requests import is_question
from bot.listening.topics import Discussion
from bot.listening.transcript import MessageRecord
from memory.context import PromptMessage
from memory.models import OpenTurn, StoredMessage
from memory.recall.changes import replacement_times
from memory.recall.passages import Passage, content_words
from memory.recall.sentences import stated_facts
from memory.text import (
    indented_text,
    one_line,
)

_SHORT_REPLY = 12  # characters
_SHORT = 3  # characters of words that most texts share: the, was
_UNSTORED_ID = -1  # the id of a line that the memory does not have
_LONG_AGO = datetime.fromtimestamp(0, UTC)
_WORD = re.compile(r"\d+(?:[:.,]\d+)*|[a-z\u00c0-\u024f]+|[\u3400-\u9fff]")

QUOTED_BELOW = "[this message is quoted with the question]"
QUOTING = "[quoting another message]"


def with_heard(open_turn: OpenTurn, records: Iterable[MessageRecord]) -> OpenTurn:
    """The turn with the lines of `records` that the memory does not have: a thread in which
    listening lapsed, or any place while the memory is away. Nothing of this bot's is among them."""
    window_ids = {one.message_id for one in open_turn.history}
    missing = [
        _line(one)
        for one in records
        if not one.ours and one.message_id not in window_ids and one.content
    ]
    if not missing:
        return open_turn
    before = sorted((*open_turn.history[:-1], *missing), key=said_at)
    return replace(open_turn, history=(*before, *open_turn.history[-1:]))


def without_other_topics(
    open_turn: OpenTurn, discussion: Discussion | None, question: str
) -> OpenTurn:
    """The turn without the talk to nobody that belongs to other discussions than the question. All
    of it stays where the discussion is in doubt."""
    if discussion is None:
        return open_turn
    on_topic = {one.message_id for one in discussion.of_topic(question)}
    other = {one.message_id for one in discussion.messages} - on_topic
    kept_lines = [one for one in open_turn.history if one.id >= 0 or one.message_id not in other]
    return replace(open_turn, history=tuple(kept_lines))


def _line(record: MessageRecord) -> StoredMessage:
    return StoredMessage(
        _UNSTORED_ID,
        "user",
        record.content,
        record.author_id,
        record.author,
        record.message_id,
        datetime.fromtimestamp(record.timestamp / 1000, UTC).isoformat(),
        by_bot=record.is_bot,
        replies_to=record.quotes or record.root_id,
    )


def said_at(line: StoredMessage) -> datetime:
    """When a line was said; long ago where that is not known."""
    return datetime.fromisoformat(line.created_at) if line.created_at else _LONG_AGO


def without_repeats(lines: Sequence[StoredMessage]) -> list[StoredMessage]:
    """`lines`, the question last, in which each question stands once: the one to answer at the end,
    any other with its first answer. What was answered with tools stays, or by a person in words
    that say nothing alone (“Leonie does”). So does the exchange right before the question, unless
    it says again to another person what was said before the matter was spoken of."""
    if not lines:
        return []
    question_of = _questions(lines)
    last = len(lines) - 1
    last_asked = {now: last} if (now := _question_key(lines[-1].content)) else {}
    needed = {question_of[place] for place, line in enumerate(lines) if line.tool_calls}
    needed |= _answered_in_short(lines, now)
    just_asked = question_of[last - 1] if last else last
    tells_again = _tells_again(lines, just_asked)
    kept_lines: list[StoredMessage] = []
    for place, line in enumerate(lines):
        asked_at = question_of[place]
        says = _question_key(lines[asked_at].content)
        is_first = last_asked.setdefault(says, asked_at) == asked_at
        stays = asked_at in needed or (asked_at == just_asked and says != now and not tells_again)
        if not says or is_first or stays:
            kept_lines.append(line)
    return kept_lines


def _tells_again(lines: Sequence[StoredMessage], asked: int) -> bool:
    """Whether the exchange that begins at `asked`, of another person than the last line's, stands
    above in the same words, and somebody spoke of its matter since."""
    question, answer = lines[asked], lines[asked + 1 : asked + 2]
    if not answer or answer[0].role == "user" or question.actor_id == lines[-1].actor_id:
        return False
    words = content_words(question.content)
    is_spoken_of = False
    for one, next_line in zip(
        lines[asked - 1 :: -1] if asked else (), lines[asked::-1], strict=False
    ):
        if _question_key(one.content) == _question_key(question.content):
            return is_spoken_of and next_line.content == answer[0].content
        is_statement = one.role == "user" and not _question_key(one.content)
        is_spoken_of |= is_statement and bool(words & content_words(one.content))
    return False


def _answered_in_short(lines: Sequence[StoredMessage], key: str) -> set[int]:
    """The places where the question of that key was asked and another person's next line is a few
    words, or a later one replies to it, none of them the question's."""
    people = [place for place, line in enumerate(lines[:-1]) if line.role == "user"]
    asked_at = {id: place for place in people if (id := lines[place].message_id)}
    replies = [(asked_at.get(lines[place].replies_to or ""), place) for place in people]
    follows = [pair for pair in pairwise(people) if len(lines[pair[1]].content) <= _SHORT_REPLY]
    return {
        asked
        for asked, place in (*follows, *replies)
        if asked is not None
        and lines[asked].actor_id != lines[place].actor_id
        and _question_key(lines[asked].content) == key != ""
        and not _question_key(lines[place].content)
        and not content_words(lines[asked].content) & content_words(lines[place].content)
    }


def _questions(lines: Sequence[StoredMessage]) -> list[int]:
    """For each line the place of the one that it answers, or its own."""
    question_counts: dict[str | None, int] = {}
    places: list[int] = []
    for place, line in enumerate(lines):
        if line.role == "user" and line.id >= 0:
            question_counts[line.actor_id] = place
        places.append(
            question_counts.get(line.actor_id, place) if line.role == "assistant" else place
        )
    return places


def _question_key(text: str) -> str:
    """The words of a question; "" of anything else."""
    return _known_question(text) if len(text) <= _KNOWN_CHARS else _read_question(text)


def _read_question(text: str) -> str:
    line = one_line(text)
    return " ".join(_WORD.findall(line.lower())) if is_question(line) else ""


_KNOWN_CHARS = 1000
_known_question = lru_cache(maxsize=512)(_read_question)  # a window's lines come again each turn


def stale_answers(lines: Sequence[StoredMessage]) -> frozenset[int]:
    """The ids of the answers among `lines` that repeat a statement which a later one replaces."""
    answers = [one for one in lines if one.role == "assistant"]
    statements = [one for one in lines if one.role == "user" and one.message_id]
    if not answers or sum(1 for one in statements if stated_facts(one.content)) < 2:
        return frozenset()
    by_id = {one.message_id: one for one in statements}
    by_time = {one.created_at: one for one in statements}
    changes = [
        _change(by_id[turn_id], by_time[until])
        for turn_id, until in replacement_times([_statement(one) for one in statements]).items()
        if until in by_time
    ]
    return frozenset([one.id for one in answers if changes and _repeats_old(one, changes)])


def statements_of_people(lines: Sequence[StoredMessage], chat_id: str) -> list[Passage]:
    """What people stated in `lines` of that chat, the question last: recalled messages are compared
    with it."""
    return [
        replace(_statement(one), chat_id=chat_id)
        for one in lines[:-1]
        if one.role == "user" and one.message_id and not one.by_bot and stated_facts(one.content)
    ]


def _statement(line: StoredMessage) -> Passage:
    return _known_statement(
        line.message_id or "",
        line.id,
        line.created_at,
        line.actor_id,
        line.actor_name,
        line.content,
    )


@lru_cache(maxsize=512)
def _known_statement(
    message_id: str, id: int, at: str, actor_id: str | None, actor_name: str, content: str
) -> Passage:
    return Passage(message_id, id, "", "", at, actor_id, actor_name, content, "")


# When the old statement was said, and the words that only it and only the new one has.
_Change = tuple[datetime, frozenset[tuple[str, ...]], frozenset[tuple[str, ...]]]


def _change(old: StoredMessage, new: StoredMessage) -> _Change:
    was, became = _terms(old.content), _terms(new.content)
    return said_at(old), was - became, became - was


def _repeats_old(answer: StoredMessage, changes: Sequence[_Change]) -> bool:
    """True if the answer says what only the old statement says, and nothing that only the new one
    does."""
    terms, at = _terms(answer.content), said_at(answer)
    return any(at >= since and terms & was and not terms & became for since, was, became in changes)


def _terms(text: str) -> frozenset[tuple[str, ...]]:
    """Long words, and pairs of neighbours: “3月3号” and “3月10号” have the same words."""
    words = _WORD.findall(AT_TAG.sub(" ", text).lower())
    return frozenset([*((word,) for word in words if len(word) > _SHORT), *pairwise(words)])


@dataclass(frozen=True, slots=True)
class Quoted:
    """The message that is quoted with the question, as the model reads it."""

    message_id: str
    text: str


@dataclass(frozen=True, slots=True)
class LineAbove:
    """What a line of the window replies to; the author is "" for the bot."""

    author: str
    text: str


def without_quoted(
    messages: Sequence[PromptMessage],
    stored_messages: Sequence[StoredMessage],
    quoted_message: Quoted | None,
) -> list[PromptMessage]:
    """The messages `messages`, made of those `stored_messages`, with a remark in place of the
    quoted text."""
    if quoted_message is None:
        return list(messages)
    return [
        _set_aside(one, stored_message, quoted_message)
        for one, stored_message in zip(messages, stored_messages, strict=True)
    ]


def _set_aside(
    message: PromptMessage, stored_message: StoredMessage, quoted_message: Quoted
) -> PromptMessage:
    by_bot = stored_message.role == "assistant"
    if stored_message.message_id != quoted_message.message_id and not (
        by_bot and _holds(message.content, quoted_message.text)
    ):
        return message
    text = quoted_message.text if by_bot else indented_text(quoted_message.text)
    return replace(message, content=message.content.replace(text, QUOTED_BELOW, 1))


def _holds(text: str, paragraphs: str) -> bool:
    """Whether whole paragraphs of `text` are these."""
    needle = paragraphs.strip()
    return bool(needle) and f"\n\n{needle}\n\n" in f"\n\n{text.strip()}\n\n"
