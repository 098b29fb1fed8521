"""The conversation of a prompt: what anybody said in the place, and the answers. Pure.

The memory returns one list (`OpenTurn.history`). People's statements are evidence; a question that
was asked before is one line; an old answer that rests on a replaced statement is marked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

from bot.feishu.markup import AT_TAG
from bot.listening.questions import is_question
from bot.listening.topics import Discussion
from bot.listening.transcript import MessageRecord
from memory.models import OpenTurn, StoredMessage
from memory.recall.changes import replaced
from memory.recall.passages import Passage
from memory.text import one_line

_SHORT = 3  # characters of words that most texts share: the, was
_HEARD = -1  # the id of a line that the memory does not have
_LONG_AGO = datetime.fromtimestamp(0, UTC)
_WORD = re.compile(r"\d+(?:[:.,]\d+)*|[a-z\u00c0-\u024f]+|[\u3400-\u9fff]")


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
    kept_lines = (one for one in open_turn.history if one.id >= 0 or one.message_id not in other)
    return replace(open_turn, history=tuple(kept_lines))


def _line(record: MessageRecord) -> StoredMessage:
    return StoredMessage(
        _HEARD,
        "user",
        record.content,
        record.author_id,
        record.author,
        record.message_id,
        datetime.fromtimestamp(record.timestamp / 1000, UTC).isoformat(),
        by_bot=record.is_bot,
    )


def said_at(line: StoredMessage) -> datetime:
    """When a line was said; long ago where that is not known."""
    return datetime.fromisoformat(line.created_at) if line.created_at else _LONG_AGO


def without_repeats(lines: Sequence[StoredMessage]) -> list[StoredMessage]:
    """`lines`, the question last, in which each question stands once: the one to answer at the end,
    any other with its first answer. The exchange right before the question stays, and so does what
    was answered with tools."""
    if not lines:
        return []
    question_of = _questions(lines)
    with_tools = {question_of[place] for place, line in enumerate(lines) if line.tool_calls}
    last = len(lines) - 1
    last_asked = {now: last} if (now := _asked(lines[-1])) else {}
    just_asked = question_of[last - 1] if last else last
    kept_lines: list[StoredMessage] = []
    for place, line in enumerate(lines):
        asked_at = question_of[place]
        says = _asked(lines[asked_at])
        is_first = last_asked.setdefault(says, asked_at) == asked_at
        stays = asked_at in with_tools or (asked_at == just_asked and says != now)
        if not says or is_first or stays:
            kept_lines.append(line)
    return kept_lines


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


def _asked(line: StoredMessage) -> str:
    """The words of a question; "" of anything else."""
    text = one_line(line.content)
    words = " ".join(_WORD.findall(text.lower()))
    return words if is_question(text) else ""


def stale_answers(lines: Sequence[StoredMessage]) -> frozenset[int]:
    """The ids of the answers among `lines` that repeat a statement which a later one replaces."""
    statements = [one for one in lines if one.role == "user" and one.message_id]
    by_id = {one.message_id: one for one in statements}
    by_time = {one.created_at: one for one in statements}
    pairs = [
        (by_id[turn_id], by_time[until])
        for turn_id, until in replaced([_statement(one) for one in statements]).items()
        if until in by_time
    ]
    answers = [one for one in lines if one.role == "assistant"]
    return frozenset(
        answer.id for answer in answers for old, new in pairs if _repeats(answer, old, new)
    )


def _statement(line: StoredMessage) -> Passage:
    return Passage(
        line.message_id or "",
        line.id,
        "",
        "",
        line.created_at,
        line.actor_id,
        line.actor_name,
        line.content,
        "",
    )


def _repeats(answer: StoredMessage, old: StoredMessage, new: StoredMessage) -> bool:
    """True if the answer says what only the old statement says, and nothing that only the new one
    does."""
    if said_at(answer) < said_at(old):
        return False
    answer_terms, was, became = (_terms(one.content) for one in (answer, old, new))
    return bool(answer_terms & (was - became)) and not answer_terms & (became - was)


def _terms(text: str) -> frozenset[tuple[str, ...]]:
    """Long words, and pairs of neighbours: “3月3号” and “3月10号” have the same words."""
    words = _WORD.findall(AT_TAG.sub(" ", text).lower())
    return frozenset([*((word,) for word in words if len(word) > _SHORT), *pairwise(words)])
