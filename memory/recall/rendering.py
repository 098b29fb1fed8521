"""Renders recalled passages and former values of facts as lines of a prompt. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from memory.models import FormerValue
from memory.recall.changes import replacement_times
from memory.recall.passages import Passage, content_words
from memory.scope import AgentMemoryContext
from memory.text import one_line

_QUESTION_LENGTH, _ANSWER_LENGTH = 600, 300
_NAME_LENGTH = 60
_SENTENCE = re.compile(r"[^。！？!?；;\n.]*(?:[。！？!?；;\n]+|\.(?!\s)|\.\s+|$)")
_ENDING = 2  # characters of a Latin word of six and more that its other forms may not share

# What stands in front of the words of an open_id, who was known by a name when they were said.
SpeakerLabel = Callable[[str, str], str]

_ASKS_FOR_FORMER = re.compile(
    r"以前|之前|原[来先本]|先前|从前|曾经?|过去|最初|起初|一开始|旧的?|改[过前]|变更前|[上前]一个"
    r"|\b(?:before|previous(?:ly)?|former(?:ly)?|earlier|used\s+to|originally|old|prior|initial(?:ly)?"
    r"|at\s+first|in\s+the\s+past|changed?)\b"
    r"|\bwas\b[^?\n]{0,40}\boriginal\b",
    re.IGNORECASE,
)
_MOST = 5
_VALUE_LENGTH = 300


@dataclass(frozen=True, slots=True)
class RenderedPassages:
    """`text` has a line for each message, oldest first; `worth` of the lines says which goes first
    where not all fit: the least, and what was said last of all never before another. `found` is
    what it was made of, oldest first."""

    text: str = ""
    worth: tuple[float, ...] = ()
    found: tuple[Passage, ...] = ()


def render_passages(
    passages: Sequence[Passage],
    *,
    here: AgentMemoryContext,
    now: datetime,
    label: SpeakerLabel,
    visible: Callable[[str], str],
    question: str = "",
) -> RenderedPassages:
    """The passages as a block for a prompt, oldest first.

    One line per message. A person's says when (in the zone of `now`), by whom, where if that is not
    the chat of `here`, and whether it comes from an imported history. The answer follows, and says
    so again only where the value has changed. What people wrote stays on its line, so that it
    cannot pass for another speaker's. `label` gives what stands in front of an open_id's words,
    known by a name; `visible` what a card's markdown shows. Of a long text the part is told that
    has the words of `question`. Of a value that has changed the present one is marked, and the
    others say until when they held.
    """
    ordered_passages = sorted(passages, key=lambda passage: (passage.asked_at, passage.message_id))
    words = _stems(question)
    marks = replacement_times(ordered_passages)
    lines: list[tuple[str, float]] = []
    for passage in ordered_passages:
        until = marks.get(passage.turn_id)
        worth = math.inf if passage is ordered_passages[-1] else passage.score / (2 if until else 1)
        marks_of = (
            f"{_place_mark(passage, here)}{_import_mark(passage)}{_validity_mark(until, now)}"
        )
        head = f"[{local_minute(passage.asked_at, now)}{marks_of}]"
        who = snippet(label(passage.actor_id or "", passage.actor_name), _NAME_LENGTH)
        question_excerpt = excerpt(passage.question, words, _QUESTION_LENGTH)
        lines.append((f"{head} {who}: {question_excerpt}", worth))
        if passage.answer:
            answer_excerpt = excerpt(visible(passage.answer), words, _ANSWER_LENGTH)
            answer_head = "[you]" if until is None else f"{head} [you]"
            lines.append((f"{answer_head}: {answer_excerpt}", worth))
    text = "\n".join(text for text, _ in lines)
    return RenderedPassages(text, tuple(worth for _, worth in lines), tuple(ordered_passages))


def rendered_words(passage: Passage) -> str:
    """About as many words as `render` tells of it."""
    return f"{passage.question[:_QUESTION_LENGTH]}\n{passage.answer[:_ANSWER_LENGTH]}"


def local_minute(at: str, now: datetime) -> str:
    """A time of the database (ISO 8601) to the minute, in the zone of `now`."""
    return f"{datetime.fromisoformat(at).astimezone(now.tzinfo):%Y-%m-%d %H:%M}"


def _validity_mark(until: str | None, now: datetime) -> str:
    """Of `replaced`: whether a value holds, held once, or neither is known."""
    if until is None:
        return ""
    return f" · earlier, until {local_minute(until, now)}" if until else " · current"


def _place_mark(passage: Passage, here: AgentMemoryContext) -> str:
    return "" if passage.chat_id == here.chat_id else " · another chat"


def _import_mark(passage: Passage) -> str:
    return " · imported" if passage.source == "import" else ""


def excerpt(text: str, words: Sequence[str], limit: int) -> str:
    """`text` on a single line of at most `limit` characters: of a longer one the run of sentences
    that has the most of `words` (lower case), the earliest of several."""
    if len(one_line(text)) <= limit:
        return one_line(text)
    sentences = [part for part in map(one_line, _SENTENCE.findall(text)) if part]
    best, most = 0, -1
    for start in range(len(sentences)):
        run = " ".join(_sentences_within(sentences[start:], limit - 2)).lower()
        held_words = sum(word in run for word in words)
        if held_words > most and (start == 0 or any(w in sentences[start].lower() for w in words)):
            best, most = start, held_words
    run = " ".join(_sentences_within(sentences[best:], limit - 2))
    before = "…" if best else ""
    return snippet(before + run + ("" if run.endswith(sentences[-1]) else "…"), limit)


def _sentences_within(sentences: Sequence[str], limit: int) -> list[str]:
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


def asks_for_former(question: str) -> bool:
    """Whether `question` asks how things were before they changed."""
    return _ASKS_FOR_FORMER.search(question) is not None


def with_former_values(
    recall: RenderedPassages,
    former: Sequence[FormerValue],
    *,
    question: str,
    subject: str,
    now: datetime,
) -> RenderedPassages:
    """`recall` with a line in front for each of the values that facts about `subject` had before,
    five at most: first those that share words with `question`, then the last replaced."""
    words = content_words(question)

    def shared(one: FormerValue) -> int:
        return len(words & content_words(f"{one.key.replace('_', ' ')} {_value_text(one.value)}"))

    best = sorted(former, key=shared, reverse=True)[:_MOST]
    lines = [_former_line(one, subject, now) for one in sorted(best, key=lambda one: one.until)]
    text = "\n".join(filter(None, (*lines, recall.text)))
    return replace(recall, text=text, worth=(math.inf,) * len(lines) + recall.worth)


def _former_line(one: FormerValue, subject: str, now: datetime) -> str:
    span = f"{local_minute(one.since, now)} · " if one.since else ""
    fact_text = snippet(f"{one.key}: {_value_text(one.value)}", _VALUE_LENGTH)
    until = local_minute(one.until, now)
    return f"[{span}earlier, until {until}] kept of {snippet(subject, 60)}: {fact_text}"


def _value_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
