"""Chooses, orders and renders the recalled passages of a prompt, and finds those an answer used.
Renders former values of facts, too. Pure.

Statements that one person made line by line have to share a word with the question; talk does
not, because a line often answers the one before it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from memory.context import estimate_tokens
from memory.models import FormerValue
from memory.recall.changes import Change, changes_by_turn
from memory.recall.passages import Passage, content_words
from memory.recall.sentences import stated_facts
from memory.scope import AgentMemoryContext
from memory.text import has_han, one_line

MOST_IN_PROMPT = 10

# From this score on the best of them probably answers the question. A score is about the sum of the
# weights of the words in common: in a chat of hundreds of turns, of one rare word and of another.
_LIKELY_ANSWERED = 11.0

# Tokens: of what is told then, and where the answer is more likely not there.
_ROOM, _LITTLE_ROOM = 1500, 180
_FEWEST, _FEWEST_UNLIKELY = 5, 4
_MOST_HARDLY = 4  # that share a word

Ordinal = Literal["first", "last"]
_TIMES = r"(?:time|times|visit|meeting|session|trip|call|appointment|attempt|try|day|date)"
_FIRST = re.compile(
    r"第[一二两三1-3][次回遍趟]|首次|最[早初](?:一?次|的)?|头一?[次回]|一开始"
    rf"|\b(?:first|second|third|1st|2nd|3rd)\s+{_TIMES}\b|\bvery\s+first\b"
    r"|\bdid\b.*\bfirst\b|\bearliest\b|\binitially\b|\bat\s+first\b",
    re.IGNORECASE,
)
_LAST = re.compile(
    r"最[近后新](?:的?一?[次回遍趟]|的)|上一?[次回]|末次"
    rf"|\b(?:last|latest|most\s+recent|previous)\s+{_TIMES}\b|\bmost\s+recent(?:ly)?\b|\blatest\b"
    r"|\bdid\b.*\blast\b(?!\s+(?:week|month|year|night|summer|winter|spring|fall|autumn|weekend))",
    re.IGNORECASE,
)

# What has so much of the best score is about the same matter; of so many more hits one is chosen.
_SAME_MATTER = 0.6
_LOOK_FURTHER = 3
_AS_WELL = 0.8

# In a place of no more turns whatever shares a word is kept.
_FEW_TURNS = 20

# Below this even the best shares a common word at most.
LEAST_SCORE = 3.5
_OF_BEST = 0.7
_LONG_ANSWER = 40  # characters; a shorter one only says that it was heard
_ENDING = 2  # characters of a Latin word of six and more that its other forms may not share
_SHORT_WORD = re.compile(r"\b[a-z]{2}\b|\b\d+\b")
_TELLS_NOTHING = frozenset(
    "is am be do to of in on at by as an my me we us he it or if so up no go".split()
)

_NUMBER = re.compile(r"\d+")
_FEW_WORDS = 5  # words of an answer, of which one is enough


def passages_for_prompt(
    passages: Sequence[Passage], *, by_meaning: bool = False
) -> tuple[Passage, ...]:
    """Those of `passages`, best first, that a prompt tells: as many as there is room for.

    There is much room where they probably hold the answer. A question whose answer was never said
    finds something too, and its prompt does not grow for it. `by_meaning`: they need not share a
    word with the question, so a low score says nothing.
    """
    if passages and passages[0].score < LEAST_SCORE and not by_meaning:
        matching = [passage for passage in passages if passage.score > 0]
        passages = [*matching[:_MOST_HARDLY], *passages[len(matching) :]]
    likely = bool(passages) and passages[0].score >= _LIKELY_ANSWERED
    room, least = (_ROOM, _FEWEST) if likely else (_LITTLE_ROOM, _FEWEST_UNLIKELY)
    chosen_passages: list[Passage] = []
    for passage in passages[:MOST_IN_PROMPT]:
        room -= estimate_tokens(rendered_words(passage))
        if room < 0 and len(chosen_passages) >= least:
            break
        chosen_passages.append(passage)
    return tuple(chosen_passages)


def asked_ordinal(question: str) -> Ordinal | None:
    """The first or the last of several times, if `question` asks for it; a second and a third time
    are found from the first on."""
    if _FIRST.search(question):
        return "first"
    return "last" if _LAST.search(question) else None


def hits_to_request(question: str, k: int) -> int:
    """How many hits to ask for, so that k can be chosen by `in_order`."""
    return k * _LOOK_FURTHER if asked_ordinal(question) else k


def ordered_hits(passages: Sequence[Passage], question: str, k: int) -> tuple[Passage, ...]:
    """Returns the k of `passages` (best first) to be told. If the question means the first or last
    of several times, the best is followed by the first or last of those about the same matter.
    Unless it asks about the past, the newest on a matter comes before what it replaced."""
    meant_ordinal = asked_ordinal(question)
    if not meant_ordinal or not passages:
        return tuple((passages if asks_for_former(question) else newest_first(passages))[:k])
    same = [one for one in passages if one.score >= _SAME_MATTER * passages[0].score]
    ends = (
        min(same, key=_passage_time) if meant_ordinal == "first" else max(same, key=_passage_time)
    )
    best = [passages[0], *([ends] if ends is not passages[0] else [])]
    return tuple([*best, *[one for one in passages if one not in best]][:k])


def newest_first(passages: Sequence[Passage]) -> Sequence[Passage]:
    """Returns `passages` (best first) with what replaced a turn before that turn. It moves up only
    if it matches about as well: else the question's words were in the value of before."""
    changes = changes_by_turn(sorted(passages, key=_passage_time))
    places = {one.turn_id: (place, 0) for place, one in enumerate(passages)}
    scores = {one.turn_id: one.score for one in passages}
    for turn_id, change in changes.items():
        changes_behind, holds = 0, turn_id
        while changes[holds].until:
            changes_behind, holds = changes_behind + 1, changes[holds].by
        if not change.until:
            continue
        if scores[holds] >= _AS_WELL * scores[turn_id]:
            places[holds] = min(places[holds], places[turn_id])
        places[turn_id] = max(places[turn_id], (places[holds][0], changes_behind))
    return sorted(passages, key=lambda one: places[one.turn_id])


def _passage_time(passage: Passage) -> tuple[str, int]:
    return passage.asked_at, passage.message_id


def fitting_hits(passages: Sequence[Passage], question: str) -> Sequence[Passage]:
    """Returns those of `passages` (best first, by words) that fit `question`; none where nothing
    does.

    Only where they are plain statements in a Latin script by one person whom the question does not
    name, in a place of more than a few turns.
    """
    words = _own_words(question)
    if not words or not _are_statements(passages, question):
        return passages
    sharing = [one for one in passages if _shares_word(one, words)]
    best = max((one.score for one in sharing), default=0.0)
    if best < LEAST_SCORE:
        return []
    return [one for one in sharing if one.score >= _OF_BEST * best]


def _are_statements(passages: Sequence[Passage], question: str) -> bool:
    authors = {one.actor_name for one in passages}
    if len(authors) != 1 or content_words(authors.pop()) & content_words(question):
        return False
    return all(one.among > _FEW_TURNS and _is_statement(one) for one in passages)


def _is_statement(one: Passage) -> bool:
    around = f"{one.question}{one.before}{one.after}"
    asks = "?" in around or "？" in around
    return not asks and len(one.answer) <= _LONG_ANSWER and not has_han(one.question)


def _shares_word(one: Passage, words: frozenset[str]) -> bool:
    text = f"{one.question} {one.answer}".lower()
    return any(word in text for word in words)


def _own_words(question: str) -> frozenset[str]:
    short = set(_SHORT_WORD.findall(question.lower())) - _TELLS_NOTHING
    stems = [word[:-_ENDING] if len(word) > 5 else word for word in content_words(question)]
    return frozenset(short.union(stems))


def used_passages(
    answer: str, passages: Sequence[Passage], *, question: str
) -> tuple[Passage, ...]:
    """Those of `passages` that share with `answer` what `question` does not say. A line that the
    bot said then and says again, such as a notice, tells nothing."""
    if not passages:
        return ()
    question_words, answer_lines = _stems_of([question]), _lines(answer)
    return tuple(one for one in passages if _is_used(answer_lines, one, question_words))


def answer_sources(
    answer: str,
    prompt_passages: Sequence[Passage],
    tool_passages: Sequence[Passage],
    *,
    question: str,
) -> list[Passage]:
    """The passages that an answer names as its sources, oldest first: of those that its prompt
    `prompt_passages` the ones it uses, and what its tools `tool_passages`. Of imported messages
    found, which are single lines, only those it uses, where it uses any."""
    imported_passages = [one for one in tool_passages if one.source]
    named_passages = [
        *used_passages(answer, prompt_passages, question=question),
        *(one for one in tool_passages if not one.source),
        *(used_passages(answer, imported_passages, question=question) or imported_passages),
    ]
    by_turn = {one.turn_id: one for one in named_passages}.values()
    return sorted(by_turn, key=lambda one: (one.asked_at, one.message_id))


def _is_used(answer_lines: Sequence[str], passage: Passage, question_words: frozenset[str]) -> bool:
    passage_lines = _lines(passage.answer)
    own = _stems_of([line for line in answer_lines if line not in passage_lines]) - question_words
    shared_words = own & _stems_of(
        [passage.question, *[line for line in passage_lines if line not in answer_lines]]
    )
    return len(shared_words) >= (1 if len(own) <= _FEW_WORDS else 2)


def _lines(text: str) -> list[str]:
    return list(map(str.strip, text.splitlines()))


def _stems_of(texts: Iterable[str]) -> frozenset[str]:
    text = "\n".join(texts)
    return frozenset(
        [
            word[:-_ENDING] if len(word) > 5 and word.isascii() and word.isalpha() else word
            for word in content_words(text).union(_NUMBER.findall(text))
        ]
    )


_QUESTION_LENGTH, _ANSWER_LENGTH = 600, 300
_NAME_LENGTH = 60
_SENTENCE = re.compile(r"[^。！？!?；;\n.]*(?:[。！？!?；;\n]+|\.(?!\s)|\.\s+|$)")

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
    window: Sequence[Passage] = (),
) -> RenderedPassages:
    """The passages as a block for a prompt, oldest first.

    `window` are statements that the prompt shows above. What replaces one of the passages stands
    here again, so that what was replaced is never read last.

    One line per message. A person's says when (in the zone of `now`), by whom, where if that is not
    the chat of `here`, and whether it comes from an imported history. The answer follows, and says
    so again only where the value has changed. What people wrote stays on its line, so that it
    cannot pass for another speaker's. `label` gives what stands in front of an open_id's words,
    known by a name; `visible` what a card's markdown shows. Of a long text the part is told that
    has the words of `question`. Of a value that has changed the present one is marked, and the
    others say until when they held.
    """
    window = _on_the_same(passages, window)
    changes = changes_by_turn(sorted([*passages, *window], key=_passage_time))
    newer = _replacing(passages, window, changes)
    ordered_passages = sorted([*passages, *newer], key=_passage_time)
    words = _stems(question)
    marks = {turn_id: change.until for turn_id, change in changes.items()}
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
    recalled = tuple(one for one in ordered_passages if one not in newer)
    return RenderedPassages(text, tuple(worth for _, worth in lines), recalled)


def _on_the_same(passages: Sequence[Passage], window: Sequence[Passage]) -> list[Passage]:
    """Those of `window` that speak of what `passages` speak of, or of their author."""
    subjects = {
        word for one in passages for fact in stated_facts(one.question) for word in fact.subject
    }
    shown_ids = {one.turn_id for one in passages}
    return [
        one
        for one in window
        if one.turn_id not in shown_ids
        and any(fact.personal or fact.subject & subjects for fact in stated_facts(one.question))
    ]


def _replacing(
    passages: Sequence[Passage], window: Sequence[Passage], changes: Mapping[str, Change]
) -> list[Passage]:
    """Those of `window` that hold in place of one of `passages`."""
    holding: set[str] = set()
    for passage in passages:
        holds = passage.turn_id
        while holds in changes and changes[holds].until:
            holds = changes[holds].by
        holding.add(holds)
    return [one for one in window if one.turn_id in holding]


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

    def shared_words(one: FormerValue) -> int:
        return len(words & content_words(f"{one.key.replace('_', ' ')} {value_text(one.value)}"))

    best = sorted(former, key=shared_words, reverse=True)[:_MOST]
    lines = [_former_line(one, subject, now) for one in sorted(best, key=lambda one: one.until)]
    text = "\n".join(filter(None, (*lines, recall.text)))
    return replace(recall, text=text, worth=(math.inf,) * len(lines) + recall.worth)


def _former_line(one: FormerValue, subject: str, now: datetime) -> str:
    span = f"{local_minute(one.since, now)} · " if one.since else ""
    fact_text = snippet(f"{one.key}: {value_text(one.value)}", _VALUE_LENGTH)
    until = local_minute(one.until, now)
    return f"[{span}earlier, until {until}] kept of {snippet(subject, 60)}: {fact_text}"


def value_text(value: object) -> str:
    """The value of a fact as text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
