"""How what was recalled reads in a prompt: lines, and what each is worth. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.recall.changes import replaced
from memory.recall.passages import Passage, content_words
from memory.scope import AgentMemoryContext
from memory.text import one_line

_QUESTION_LENGTH, _ANSWER_LENGTH = 600, 300
_NAME_LENGTH = 60
_SENTENCE = re.compile(r"[^。！？!?；;\n.]*(?:[。！？!?；;\n]+|\.(?!\s)|\.\s+|$)")
_ENDING = 2  # characters of a Latin word of six and more that its other forms may not share


# What stands in front of the words of an open_id, who was known by a name when they were said.
Label = Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class Recalled:
    """`text` has a line for each message, oldest first; `worth` of the lines says which goes first
    where not all fit: the least, and what was said last of all never before another. `found` is
    what it was made of, oldest first."""

    text: str = ""
    worth: tuple[float, ...] = ()
    found: tuple[Passage, ...] = ()


def render(
    passages: Sequence[Passage],
    *,
    here: AgentMemoryContext,
    now: datetime,
    label: Label,
    visible: Callable[[str], str],
    question: str = "",
) -> Recalled:
    """The passages as a block for a prompt, oldest first.

    One line per message: each says when (in the zone of `now`), by whom, where if that is not the
    chat of `here`, and whether it comes from an imported history. What people wrote stays on its
    line, so that it cannot pass for another speaker's. `label` gives what stands in front of an
    open_id's words, known by a name; `visible` what a card's markdown shows. Of a long text the
    part is told that has the words of `question`. Of a value that has changed the present one is
    marked, and the others say until when they held.
    """
    ordered_passages = sorted(passages, key=lambda passage: (passage.asked_at, passage.message_id))
    words = _stems(question)
    marks = replaced(ordered_passages)
    lines: list[tuple[str, float]] = []
    for passage in ordered_passages:
        until = marks.get(passage.turn_id)
        worth = math.inf if passage is ordered_passages[-1] else passage.score / (2 if until else 1)
        marks_of = f"{_where(passage, here)}{_whence(passage)}{_mark(until, now)}"
        head = f"[{when(passage.asked_at, now)}{marks_of}]"
        who = snippet(label(passage.actor_id or "", passage.actor_name), _NAME_LENGTH)
        question_excerpt = excerpt(passage.question, words, _QUESTION_LENGTH)
        lines.append((f"{head} {who}: {question_excerpt}", worth))
        if passage.answer:
            answer_excerpt = excerpt(visible(passage.answer), words, _ANSWER_LENGTH)
            lines.append((f"{head} [you]: {answer_excerpt}", worth))
    text = "\n".join(text for text, _ in lines)
    return Recalled(text, tuple(worth for _, worth in lines), tuple(ordered_passages))


def words_told(passage: Passage) -> str:
    """About as many words as `render` tells of it."""
    return f"{passage.question[:_QUESTION_LENGTH]}\n{passage.answer[:_ANSWER_LENGTH]}"


def when(at: str, now: datetime) -> str:
    """A time of the database (ISO 8601) to the minute, in the zone of `now`."""
    return f"{datetime.fromisoformat(at).astimezone(now.tzinfo):%Y-%m-%d %H:%M}"


def _mark(until: str | None, now: datetime) -> str:
    """Of `replaced`: whether a value holds, held once, or neither is known."""
    if until is None:
        return ""
    return f" · earlier, until {when(until, now)}" if until else " · current"


def _where(passage: Passage, here: AgentMemoryContext) -> str:
    return "" if passage.chat_id == here.chat_id else " · another chat"


def _whence(passage: Passage) -> str:
    return " · imported" if passage.source == "import" else ""


def excerpt(text: str, words: Sequence[str], limit: int) -> str:
    """`text` on a single line of at most `limit` characters: of a longer one the run of sentences
    that has the most of `words` (lower case), the earliest of several."""
    if len(one_line(text)) <= limit:
        return one_line(text)
    sentences = [part for part in map(one_line, _SENTENCE.findall(text)) if part]
    best, most = 0, -1
    for start in range(len(sentences)):
        run = " ".join(_fitting(sentences[start:], limit - 2)).lower()
        held_words = sum(word in run for word in words)
        if held_words > most and (start == 0 or any(w in sentences[start].lower() for w in words)):
            best, most = start, held_words
    run = " ".join(_fitting(sentences[best:], limit - 2))
    before = "…" if best else ""
    return snippet(before + run + ("" if run.endswith(sentences[-1]) else "…"), limit)


def _fitting(sentences: Sequence[str], limit: int) -> list[str]:
    """The first sentences that have at most `limit` characters; the first one in any case."""
    run = [sentences[0][:limit]]
    length = len(run[0])
    for sentence in sentences[1:]:
        length += len(sentence) + 1
        if length > limit:
            break
        run.append(sentence)
    return run


def _stems(question: str) -> list[str]:
    """The words of `question` that matter, without the endings of long Latin ones."""
    return [
        word[:-_ENDING] if len(word) > 5 and word.isascii() else word
        for word in sorted(content_words(question))
    ]


def snippet(text: str, limit: int) -> str:
    """`text` on a single line, cut to `limit` characters; no character in it ends a line."""
    flat = one_line(text)
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
