"""Where blocks and code stand in Markdown as Feishu's cards read it. Pure, linear.

A card reads CommonMark without HTML blocks, and tables; one line break may be shown as a space, a
blank line always ends a block. Source: Feishu, "Rich text (Markdown)", JSON 2.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

# A run of three or more; backticks may not stand in the info string of a backtick fence.
FENCE = re.compile(r"[ \t]*(`{3,}(?=[^`]*$)|~{3,})[ \t]*(.*)")
ITEM = re.compile(r"([ \t]*)([-*+]|\d{1,9}[.)])(?:([ \t]+)(.*)|$)")
HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_CODE_INDENT = re.compile(r" {4}| {0,3}\t")
_SHALLOW = re.compile(r" {0,3}(?![ \t])")
# What begins a line of its own though no standard calls it a block: bullets and numbers as typed.
_LIST_ITEM = re.compile(r" {0,3}(?:[•●▪◦‣][ \t]?|\d{1,3}、|[①-⑳])")
_MARKUP = re.compile(r" {0,3}(?:>|!\[|<[A-Za-z/!?])")
_DELIMITER_CELL = re.compile(r"[ \t]*:?-+:?[ \t]*")
_CONTAINERS = re.compile(r"(?:[ \t]*(?:>|[-*+][ \t]|\d{1,9}[.)][ \t]))*")
_TICKS = re.compile(r"`+")


def is_code_indent(space: str) -> bool:
    """Whether a line that begins with `space` after a blank line is indented code."""
    return bool(_CODE_INDENT.match(space))


def opens_block(text: str) -> bool:
    """Whether `text` begins with anything but a plain sentence: nothing may stand before it in its
    line."""
    first, _, rest = text.partition("\n")
    if is_code_indent(first):
        return True
    if any(pattern.match(first) for pattern in (HEADING, _RULE, _LIST_ITEM, _MARKUP)):
        return True
    shallow = bool(_SHALLOW.match(first))
    if shallow and (FENCE.fullmatch(first) or ITEM.fullmatch(first)):
        return True
    second = rest.partition("\n")[0]
    return is_table_head(first, second) or _is_underline(rest)


def opens_list_in_one_line(text: str) -> bool:
    """Whether `text` is one line that only a list's mark sets apart from a sentence (`- sure`)."""
    line, _, rest = text.partition("\n")
    return not rest.strip() and bool(ITEM.fullmatch(line) or _LIST_ITEM.match(line))


def is_table_head(line: str, rule: str) -> bool:
    """Whether two lines are the head of a table."""
    if "|" not in line or "-" not in rule:
        return False
    cells = rule.strip().strip("|").split("|")
    return all(_DELIMITER_CELL.fullmatch(cell) for cell in cells)


def _is_underline(rest: str) -> bool:
    """Whether the paragraph that goes on with `rest` becomes a heading by a line below it."""
    for line in rest.split("\n"):
        if not line.strip():
            return False
        if _UNDERLINE.match(line):
            return True
        if ITEM.match(line) or FENCE.match(line):
            return False
    return False


def code_starts(lines: Sequence[str]) -> list[bool]:
    """For each line, whether its beginning may be code: in a fence, or within `inline code` that
    reaches over a line's end.

    Two readings of a fence count, CommonMark's and one that sees it in lists, quotes and at any
    depth too: whether somebody is notified must not hang on how a client reads it.
    """
    if not any("`" in line or "~~~" in line for line in lines):
        return [False] * len(lines)
    strict = _in_fence(lines, _strict_fence)
    loose = _in_fence(lines, _loose_fence)
    in_fences = [one or other for one, other in zip(strict, loose, strict=True)]
    return [one or other for one, other in zip(in_fences, _in_span(lines, strict), strict=True)]


def fenced_lines(lines: Sequence[str]) -> list[bool]:
    """For each line, whether it is of a fenced block, in lists and quotes too."""
    return _in_fence(lines, _loose_fence)


def closes_fence(line: str, mark: str) -> bool:
    """Whether `line` ends the fence that was opened with `mark`."""
    text = line.strip()
    return len(text) >= len(mark) and not text.strip(mark[0])


def _strict_fence(line: str) -> re.Match[str] | None:
    return FENCE.fullmatch(line) if _SHALLOW.match(line) else None


def _loose_fence(line: str) -> re.Match[str] | None:
    inside = _CONTAINERS.match(line)
    return FENCE.fullmatch(line, inside.end() if inside else 0)


def _in_fence(lines: Iterable[str], opens: Callable[[str], re.Match[str] | None]) -> list[bool]:
    in_fences, mark = [], ""
    for line in lines:
        match = opens(line)
        in_fences.append(bool(mark or match))
        if match and not mark:
            mark = match[1]
        elif match and closes_fence(match[0], mark):
            mark = ""
    return in_fences


def _in_span(lines: Sequence[str], in_fences: Sequence[bool]) -> list[bool]:
    """For each line, whether it begins within inline code, paragraph by paragraph."""
    in_spans = [False] * len(lines)
    start = 0
    for end in range(len(lines) + 1):
        if end < len(lines) and lines[end].strip() and not in_fences[end]:
            continue
        _mark_spans(lines[start:end], start, in_spans)
        start = end + 1
    return in_spans


def _mark_spans(paragraph: Sequence[str], offset: int, in_spans: list[bool]) -> None:
    """Marks the lines of one paragraph. A backtick without a partner may still get one while the
    text is being written, so what follows it counts as code too."""
    if len(paragraph) < 2 or not any("`" in line for line in paragraph):
        return
    runs = [
        (number, len(run[0]))
        for number, line in enumerate(paragraph)
        for run in _TICKS.finditer(line)
    ]
    for opening, closing in _pairs([length for _, length in runs]):
        end = len(paragraph) - 1 if closing is None else runs[closing][0]
        for number in range(runs[opening][0] + 1, end + 1):
            in_spans[offset + number] = True
        if closing is None:
            return


@dataclass(frozen=True, slots=True)
class CodeSpan:
    """`text[start:end]` is inline code with its backticks."""

    start: int
    end: int


def certain_spans(line: str) -> list[CodeSpan]:
    """The inline code of one line; none as soon as a backtick is left over or escaped, for then
    readers disagree on what is code."""
    runs = list(_TICKS.finditer(line))
    if not runs or "\\`" in line:
        return []
    spans = []
    for opening, closing in _pairs([len(run[0]) for run in runs]):
        if closing is None:
            return []
        spans.append(CodeSpan(runs[opening].start(), runs[closing].end()))
    return spans


def _pairs(lengths: Sequence[int]) -> Iterator[tuple[int, int | None]]:
    """(opening, closing) of code spans: a run of backticks ends at the next one of its length;
    None where there is none."""
    following: dict[int, int] = {}
    ends: list[int | None] = [None] * len(lengths)
    for number in range(len(lengths) - 1, -1, -1):
        ends[number] = following.get(lengths[number])
        following[lengths[number]] = number
    number = 0
    while number < len(lengths):
        end = ends[number]
        yield number, end
        number = number + 1 if end is None else end + 1
