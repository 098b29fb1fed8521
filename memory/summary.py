"""Folds long threads into summaries and checks what every summary has to hold. Pure.

A fold takes the summary so far and the oldest messages that the window no longer shows.
`settled_summary` makes sure that ids and names stand in it literally; `extract_summary` writes
one without a model. A line may begin with a day, which holds for the lines after it too."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from memory.context import estimate_tokens, token_cost
from memory.text import han_pairs, has_han, labelled_text, one_line, speaker_label, storable

SUMMARY_TOKENS = 400
BATCH_TOKENS = 3000
MOST_REFERENCES = 120
_LONGEST_NAME = 60
_LONGEST_AT_NAME = 40
_ID = re.compile(r"(?<![0-9A-Za-z_])(?:note|om|omt|ou|on|oc|cli)_[0-9A-Za-z_-]{4,80}")
_TAG = re.compile(r"<(?=[/!A-Za-z])")
_REFERENCE_LINE = re.compile(r"^[^\S\n]*(?:References:|提到：).*$", re.MULTILINE)
_HALF_WORD = re.compile(r"(?<![0-9A-Za-z_-])[0-9A-Za-z_-]+$")
_END_OF_SENTENCE = re.compile(r"[。！？!?.]\s*+(?=[^。！？!?.]*$)", re.DOTALL)

_SENTENCE_END = re.compile(r"(?<=[。！？；])|(?<=[.!?;])\s+|\n+")
_DAY = re.compile(r"^- (\d{4}-\d{2}-\d{2}) ")
_SAYS = re.compile(r"- ([^\n]+?): (.+)")
_MARKUP = re.compile(r"^[\s>#*|+-]+|(?<![\s*|])[\s*|]+$")
_CODE_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_WORD = re.compile(r"[0-9]+|[0-9a-z_]{2,}")
_STOP_WORDS = frozenset(
    """the a an and or but of to in on at for from with by as is are was were be been do does did
    has have had it its this that these those we you they he she our your their my me us not so if
    then there here what when where who which how why can could will would should also""".split()
)
_EMPTY_BIGRAMS = frozenset(
    "我们 你们 他们 这个 那个 什么 一个 可以 没有 就是 还是 因为 所以 但是".split()
)
_REMEMBER = re.compile(
    r"记住|记得|记下|记一下|别忘|勿忘|务必|备忘|请注意"
    r"|\bremember\b|\bdon'?t forget\b|\bnote that\b|\bkeep in mind\b|\bfor the record\b",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"决定|确定|确认|同意|结论|敲定|改[为成到在]|定[在为于]|负责|截止|喜欢|不喜欢|讨厌|过敏|偏好|必须|不要"
    r"|\bdecid\w+|\bagreed?\b|\bconfirm\w*|\bresponsible\b|\bowns?\b|\bowner\b|\bdeadline\b|\bdue\b"
    r"|\bmoved? to\b|\bchanged? to\b|\bprefers?\b|\blikes?\b|\ballergic\b|\bmust\b|\bnever\b",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"\d{1,4}[-/.年]\d{1,2}|\d{1,2}\s*[月日号点]|[一二三四五六七八九十]{1,4}[月日号点]|(?:周|星期|礼拜)[一二三四五六日天]"
    r"|\b\d{1,2}:\d{2}\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b"
    r"|\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d")
_QUESTION = re.compile(r"[?？吗呢]\s*$")
_LONGEST_SENTENCE = 60  # tokens
_SAME = 0.8
_LEAST_SCORE = 0.5
_DAY_COST = 10  # tokens of a day in front of a line
_LEAST_OF_BOT = 5  # words; "Got it." and the like tell nothing


@dataclass(frozen=True, slots=True)
class SummaryLine:
    """A message as a summariser reads it: at-tags are names already. `day` is YYYY-MM-DD,
    or "" where the day is not told."""

    author: str
    text: str
    day: str
    by_bot: bool = False
    ids: tuple[str, ...] = ()


# What goes into one fold
def first_batch(
    lines: Sequence[SummaryLine], budget_tokens: int = BATCH_TOKENS
) -> tuple[SummaryLine, ...]:
    """As many of the first lines as fit; at least one, its text cut if it alone is too long."""
    taken_lines: list[SummaryLine] = []
    tokens_left = float(budget_tokens)
    for line in lines:
        tokens_left -= token_cost(transcript_text([line]))
        if tokens_left < 0 and taken_lines:
            break
        taken_lines.append(_shorten_line(line, budget_tokens) if tokens_left < 0 else line)
    return tuple(taken_lines)


def transcript_text(lines: Iterable[SummaryLine]) -> str:
    """`YYYY-MM-DD author: text`, one for each message; undated ones without the day."""
    return "\n".join(map(_transcript_line, lines))


def _transcript_line(line: SummaryLine) -> str:
    label = speaker_label(reference_name(line.author))
    return f"{line.day} {labelled_text(label, line.text)}".lstrip()


def _shorten_line(line: SummaryLine, budget_tokens: int) -> SummaryLine:
    """Its ids are kept beside the text."""
    ids = tuple(dict.fromkeys([*line.ids, *_ID.findall(line.text)]))
    text = cut_to_tokens(line.text, max(1, budget_tokens - 40))
    return SummaryLine(line.author, text, line.day, line.by_bot, ids)


# What every summary has to hold
def reference_name(name: str) -> str:
    """A name or id as it stands in a summary: one line, inert."""
    return inert_text(one_line(name)[:_LONGEST_NAME]).strip()


def summary_references(
    earlier: Sequence[str], lines: Iterable[SummaryLine], names: Iterable[str] = ()
) -> tuple[str, ...]:
    """Ids and names of `lines` after those of the summary so far, in the order of their last
    mention; the last `MOST_REFERENCES`. `names`: whom an "@" in a text can mean."""
    known_names = frozenset(names)
    references_found = dict.fromkeys(earlier)
    for line in lines:
        mentioned_names = _at_names(line.text, known_names)
        author = [] if line.by_bot else [line.author]
        for one in (*author, *mentioned_names, *_ID.findall(line.text), *line.ids):
            if reference := reference_name(one):
                references_found.pop(reference, None)
                references_found[reference] = None
    return tuple(references_found)[-MOST_REFERENCES:]


def _at_names(text: str, known_names: frozenset[str]) -> list[str]:
    """The longest known name behind each "@"."""
    names = []
    lengths = sorted(
        {len(name) for name in known_names if len(name) <= _LONGEST_AT_NAME}, reverse=True
    )
    for at in re.finditer("@", text) if lengths else ():
        rest = text[at.end() : at.end() + lengths[0]]
        fitting = (rest[:length] for length in lengths if rest[:length] in known_names)
        names += [name for name in [next(fitting, "")] if name]
    return names


def settled_summary(text: str, required_references: Sequence[str]) -> str:
    """Returns `text` as it is stored: inert, at most `SUMMARY_TOKENS` long, and after it one line
    with those of `required_references` (`references`) that it does not hold literally."""
    summary = cut_to_tokens(
        inert_text(storable(_REFERENCE_LINE.sub("", text)).strip()), SUMMARY_TOKENS
    )
    missing = [one for one in dict.fromkeys(required_references) if not _occurs(one, summary)]
    if not missing:
        return summary
    chinese = has_han(summary or "".join(missing))
    line = f"提到：{'、'.join(missing)}" if chinese else f"References: {', '.join(missing)}"
    return f"{summary}\n{line}" if summary else line


def without_references(content: str) -> str:
    """A stored summary without its line of references."""
    return _REFERENCE_LINE.sub("", content).strip()


def without_shown(content: str, prompt_lines: Iterable[tuple[str, str]]) -> str:
    """A stored summary without the lines that stand in the prompt anyway: `prompt_lines` are author
    and text of those."""
    texts: dict[str, str] = {}
    for author, text in prompt_lines:
        texts[author] = f"{texts.get(author, '')}\n{one_line(text)}"
    lines = [
        (day, line)
        for day, line in _by_day(content)
        if not (says := _SAYS.match(line)) or says[2] not in texts.get(says[1], "")
    ]
    return _with_days(lines)


def lines_about(content: str, words: frozenset[str], room_tokens: int) -> str:
    """The lines of a summary that have one of `words` (in lower case), and of the others the first
    ones that fit into `room_tokens`."""
    kept_lines: list[tuple[str, str]] = []
    tokens_left = float(room_tokens)
    for day, line in _by_day(content):
        if not any(word in line.lower() for word in words):
            tokens_left -= token_cost(f"{line}\n")
            if tokens_left < 0:
                continue
        kept_lines.append((day, line))
    return _with_days(kept_lines)


def _by_day(content: str) -> Iterator[tuple[str, str]]:
    """The lines of a summary, each with its day, or "" before the first one."""
    day = ""
    for line in filter(None, map(str.strip, content.splitlines())):
        if dated_lines := _DAY.match(line):
            day, line = dated_lines[1], f"- {line[dated_lines.end() :]}"
        yield day, line


def _with_days(lines: Iterable[tuple[str, str]]) -> str:
    """The lines as they are stored: each day once, in front of its first line."""
    before, parts = "", []
    for day, line in lines:
        new = bool(day) and day != before and line.startswith("- ")
        parts.append(f"- {day} {line[2:]}" if new else line)
        before = day if new else before
    return "\n".join(parts)


def inert_text(text: str) -> str:
    """`text` in which nothing can pass for an at-tag or another tag of a card."""
    return _TAG.sub("＜", text)


def cut_to_tokens(text: str, limit_tokens: int) -> str:
    """The beginning of `text` that costs at most `limit_tokens`, to the end of a line or sentence
    where there is one in its second half."""
    if estimate_tokens(text) <= limit_tokens:
        return text
    length = min(len(text), limit_tokens * 8)
    while length and token_cost(text[:length]) > limit_tokens:
        length = length * 9 // 10
    part = text[:length]
    ends = [part.rfind("\n"), *(match.end() for match in _END_OF_SENTENCE.finditer(part))]
    if max(ends) > length // 2:
        return part[: max(ends)].rstrip()
    return _HALF_WORD.sub("", part).rstrip() or part  # half an id would be a wrong one


def _occurs(reference: str, text: str) -> bool:
    """Whether it stands there by itself: om_1 is not in om_12, nor Al in Alice."""
    before = r"(?<![0-9A-Za-z_])" if re.match(r"[0-9A-Za-z_]", reference) else ""
    after = r"(?![0-9A-Za-z_-])" if re.search(r"[0-9A-Za-z_-]$", reference) else ""
    return re.search(before + re.escape(reference) + after, text) is not None


@dataclass(frozen=True, slots=True)
class _Sentence:
    """One line of the summary to be; `place` counts in order of time."""

    place: int
    day: str
    line: str
    text: str
    terms: frozenset[str]
    is_carried: bool = False
    by_bot: bool = False


def extract_summary(
    earlier: str, lines: Sequence[SummaryLine], limit_tokens: int = SUMMARY_TOKENS
) -> str:
    """The summary of `earlier` (a summary without references) and `lines`, a sentence per line, in
    order of time; at most `limit_tokens`."""
    sentences = list(_sentences(earlier, lines))
    frequency = Counter(term for sentence in sentences for term in sentence.terms)
    scores = {s.place: _score(s, frequency, len(sentences)) for s in sentences}
    telling = [s for s in sentences if scores[s.place] >= _LEAST_SCORE] or sentences
    ranked_sentences = sorted(telling, key=lambda s: (-scores[s.place], s.place))
    chosen_sentences: list[_Sentence] = []
    tokens_left = float(limit_tokens) - _DAY_COST * len({s.day for s in telling})
    for sentence in ranked_sentences:
        cost = token_cost(f"{sentence.line}\n")
        if cost <= tokens_left and not any(
            _says_the_same(sentence, other) for other in chosen_sentences
        ):
            chosen_sentences.append(sentence)
            tokens_left -= cost
    if not chosen_sentences and ranked_sentences:
        return cut_to_tokens(ranked_sentences[0].line, limit_tokens)
    in_order = sorted(chosen_sentences, key=lambda s: s.place)
    return cut_to_tokens(_with_days((s.day, s.line) for s in in_order), limit_tokens)


def _sentences(earlier: str, lines: Sequence[SummaryLine]) -> Iterator[_Sentence]:
    place = 0
    for day, text in _by_day(earlier):
        yield _Sentence(place, day, _short_sentence(text), text, _terms(text), is_carried=True)
        place += 1
    for line in lines:
        for text in _split_sentences(line.text):
            visible_line = "- " + transcript_text([SummaryLine(line.author, text, "")])
            yield _Sentence(place, line.day, visible_line, text, _terms(text), by_bot=line.by_bot)
            place += 1


def _split_sentences(text: str) -> Iterator[str]:
    """The sentences of a text without code and without marks of headings, lists and tables."""
    for part in _SENTENCE_END.split(_CODE_FENCE.sub("\n", text)):
        if sentence := _MARKUP.sub("", part or ""):
            yield _short_sentence(one_line(sentence))


def _short_sentence(text: str) -> str:
    short_text = cut_to_tokens(text, _LONGEST_SENTENCE)
    return text if short_text == text else f"{short_text}…"


def _terms(text: str) -> frozenset[str]:
    lower = text.lower()
    words = (word for word in _WORD.findall(lower) if word not in _STOP_WORDS)
    return frozenset([*words, *han_pairs(lower)]) - _EMPTY_BIGRAMS


def _score(sentence: _Sentence, frequency: Counter[str], count: int) -> float:
    if all(map(str.isdecimal, sentence.terms)):  # a number alone says nothing
        return -1.0
    weight = sum(math.log1p(frequency[term]) for term in sentence.terms)
    score = weight / math.sqrt(len(sentence.terms) + 3)
    score += 0.3 * (sentence.place / count)  # the newest first, other things being equal
    score += 0.5 if sentence.place == 0 or sentence.is_carried else 0.0
    if _QUESTION.search(sentence.text):
        return 0.4 * score
    has_date = bool(_DATE.search(sentence.text) or _NUMBER.search(sentence.text))
    if sentence.by_bot and not has_date and _wealth(sentence) < _LEAST_OF_BOT:
        return -1.0
    score += 4.0 if not sentence.by_bot and _REMEMBER.search(sentence.text) else 0.0
    score += 2.0 if _DECISION.search(sentence.text) else 0.0
    score += 1.5 if _DATE.search(sentence.text) else 0.0
    score += 0.5 if _NUMBER.search(sentence.text) else 0.0
    return 0.5 * score if sentence.by_bot else score


def _wealth(sentence: _Sentence) -> float:
    """How much it says, in words; two bigrams are about one."""
    return sum(0.5 if has_han(term) else 1.0 for term in sentence.terms)


def _says_the_same(sentence: _Sentence, other: _Sentence) -> bool:
    """Another number makes another fact."""
    new = sentence.terms - other.terms
    return len(new) <= (1 - _SAME) * len(sentence.terms) and not any(map(str.isdecimal, new))
