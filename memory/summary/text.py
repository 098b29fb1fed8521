"""Summaries of long threads: what is folded, and what every summary has to hold. Pure.

A fold takes the summary so far and the oldest messages that the window no longer shows, and gives
the next version. Whoever writes the text, `settled` makes sure that ids and names stand in it
literally and that it stays within its size.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory.foreign_text import speaker, spoken
from memory.text import has_han, one_line, storable
from memory.tokens import estimate_tokens, token_cost

SUMMARY_TOKENS = 600
BATCH_TOKENS = 3000
MOST_REFERENCES = 120

_LONGEST_NAME = 60
_LONGEST_AT_NAME = 40
_ID = re.compile(r"(?<![0-9A-Za-z_])(?:note|om|omt|ou|on|oc|cli)_[0-9A-Za-z_-]{4,80}")
_TAG = re.compile(r"<(?=[/!A-Za-z])")
_REFERENCE_LINE = re.compile(r"^[^\S\n]*(?:References:|提到：).*$", re.MULTILINE)
_HALF_WORD = re.compile(r"(?<![0-9A-Za-z_-])[0-9A-Za-z_-]+$")
_END_OF_SENTENCE = re.compile(r"[。！？!?.]\s*+(?=[^。！？!?.]*$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Line:
    """A message as a summariser reads it: at-tags are names already. `day` is YYYY-MM-DD,
    or "" where the day is not told."""

    author: str
    text: str
    day: str
    by_bot: bool = False
    ids: tuple[str, ...] = ()


# What goes into one fold


def batch(lines: Sequence[Line], budget_tokens: int = BATCH_TOKENS) -> tuple[Line, ...]:
    """As many of the first lines as fit; at least one, its text cut if it alone is too long."""
    taken_lines: list[Line] = []
    left = float(budget_tokens)
    for line in lines:
        left -= token_cost(transcribed([line]))
        if left < 0 and taken_lines:
            break
        taken_lines.append(_shortened(line, budget_tokens) if left < 0 else line)
    return tuple(taken_lines)


def transcribed(lines: Iterable[Line]) -> str:
    """`YYYY-MM-DD author: text`, one for each message; undated ones without the day."""
    return "\n".join(
        f"{line.day} {spoken(speaker(as_reference(line.author)), line.text)}".lstrip()
        for line in lines
    )


def _shortened(line: Line, budget_tokens: int) -> Line:
    """Its ids are kept beside the text."""
    ids = tuple(dict.fromkeys([*line.ids, *_ID.findall(line.text)]))
    text = cut(line.text, max(1, budget_tokens - 40))
    return Line(line.author, text, line.day, line.by_bot, ids)


# What every summary has to hold


def as_reference(name: str) -> str:
    """A name or id as it stands in a summary: one line, inert."""
    return inert(one_line(name)[:_LONGEST_NAME]).strip()


def references(
    earlier: Sequence[str], lines: Iterable[Line], names: Iterable[str] = ()
) -> tuple[str, ...]:
    """Ids and names of `lines` after those of the summary so far, in the order of their last
    mention; the last `MOST_REFERENCES`. `names`: whom an "@" in a text can mean."""
    known_names = frozenset(names)
    references_found = dict.fromkeys(earlier)
    for line in lines:
        mentioned_names = _at_names(line.text, known_names)
        author = [] if line.by_bot else [line.author]
        for one in (*author, *mentioned_names, *_ID.findall(line.text), *line.ids):
            if reference := as_reference(one):
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


def settled(
    text: str, required_references: Sequence[str], limit_tokens: int = SUMMARY_TOKENS
) -> str:
    """`text` as it is stored: inert, at most `limit_tokens` long, and after it one line with those
    of `required_references` (`references`) that it does not hold literally."""
    summary = cut(inert(storable(_REFERENCE_LINE.sub("", text)).strip()), limit_tokens)
    missing = [one for one in dict.fromkeys(required_references) if not _occurs(one, summary)]
    if not missing:
        return summary
    chinese = has_han(summary or "".join(missing))
    line = f"提到：{'、'.join(missing)}" if chinese else f"References: {', '.join(missing)}"
    return f"{summary}\n{line}" if summary else line


def without_references(content: str) -> str:
    """A stored summary without its line of references."""
    return _REFERENCE_LINE.sub("", content).strip()


def inert(text: str) -> str:
    """`text` in which nothing can pass for an at-tag or another tag of a card."""
    return _TAG.sub("＜", text)


def cut(text: str, limit_tokens: int) -> str:
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
