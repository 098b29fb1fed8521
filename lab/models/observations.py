"""What was seen of one question to a real model, judged and drawn as a table. Pure.

The list of marks is independent of the bot's cleaner, which is what is tested.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_MARKS = re.compile(
    r"<\|[^|\n]{1,40}\|>|<｜[^｜\n]{1,40}｜>|</?(?:start|end)_of_turn>|<(?:bos|eos|pad|unk)>|</?s>"
    r"|</?(?:think|thinking|thought|reasoning)>|\[/?INST\]|\[(?:TOOL_CALLS|AVAILABLE_TOOLS)\]"
    r"|\[you\]|</?tool_(?:call|code|response)>|```tool_code|\A\s*\{\s*\"(?:name|tool|function)\"\s*:"
)
# The form in which a prompt shows what was said: a line's time and who said it.
_LABEL = re.compile(r"\s*\|?\[\d{4}-\d\d-\d\d \d\d:\d\d\] ?[^:：\n]{1,40}[:：]")
_ECHO = 40  # characters of an instruction's line that are nobody's own words
_BEGINNING = 60
_AT = re.compile(r"<at id=[^>]*></at>")
_COLUMNS = (
    *("case", "asked", "people saw", "first text", "end", "tokens in / out"),
    *("inner marks", "stored = sent", "remarks"),
)


@dataclass(frozen=True, slots=True)
class Observation:
    """`first_s` and `end_s` count from the question (s); None: nothing was shown. `tokens_in` and
    `tokens_out` are the model's own count. `stored` and `sent` hold a text for each card."""

    case: str
    asked: str
    stored: tuple[str, ...] = ()
    sent: tuple[str, ...] = ()
    first_s: float | None = None
    end_s: float | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    marks: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        return not self.marks and self.stored == self.sent


@dataclass(frozen=True, slots=True)
class TokenAccount:
    """The tokens of a first mention by the chat model's own tokenizer."""

    system: int
    tools: int
    number_of_tools: int
    rest: int


def inner_marks(text: str, *, instructions: str = "", own_name: str = "") -> tuple[str, ...]:
    """What people should not read in `text`: marks, the bot's label, lines of `instructions`."""
    marks = [match[0].strip() for match in _MARKS.finditer(text)]
    if own_name and re.match(rf"\s*\**{re.escape(own_name)}\**\s*[:：]", text):
        marks.append(f"{own_name}:")
    if label := _LABEL.match(words(text)):
        marks.append(label[0])
    lines = {line.strip() for line in instructions.splitlines() if len(line.strip()) >= _ECHO}
    marks += [line for line in text.splitlines() if line.strip() in lines]
    return tuple(dict.fromkeys(marks))


def words(text: str) -> str:
    """`text` without the people it addresses, on one line."""
    return " ".join(_AT.sub("", text).split())


def tokens(records: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """In and out, of the requests that the model took."""
    taken = [(one.get("prompt_tokens", 0), one.get("completion_tokens", 0)) for one in records]
    return sum(read for read, _ in taken), sum(written for _, written in taken)


def instructions_in(records: Sequence[Mapping[str, Any]]) -> str:
    """All system messages of the requests."""
    return "\n".join(
        str(message["content"])
        for one in records
        for message in one["request"]["messages"]
        if message["role"] == "system"
    )


def table(observations: Sequence[Observation]) -> str:
    """A table in Markdown, a line for each question."""
    rule = "|".join("---" for _ in _COLUMNS)
    return "\n".join((_line(_COLUMNS), f"|{rule}|", *map(_line, map(_cells, observations))))


def account_line(account: TokenAccount) -> str:
    return (
        f"A first mention: system prompt {account.system:,} tokens, {account.number_of_tools} tools"
        f" {account.tools:,}, rest {account.rest:,}."
    )


def _cells(one: Observation) -> tuple[str, ...]:
    read_and_written = f"{one.tokens_in:,} / {one.tokens_out:,}"
    same = ("yes" if one.stored == one.sent else "**no**") if one.stored or one.sent else "–"
    return (
        *(one.case, one.asked, _beginning(" ⏎ ".join(one.sent)) or "nothing"),
        *(_seconds(one.first_s), _seconds(one.end_s), read_and_written),
        *(", ".join(map(_code, one.marks)) or "none", same, "; ".join(one.remarks)),
    )


def _beginning(text: str) -> str:
    line = words(text)
    return line if len(line) <= _BEGINNING else f"{line[:_BEGINNING].rstrip()} …"


def _code(mark: str) -> str:
    return f"`{_beginning(mark)}`"


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f} s"


def _line(cells: Sequence[str]) -> str:
    escaped = (cell.replace("|", "\\|").replace("<", "&lt;") for cell in cells)
    return f"| {' | '.join(escaped)} |"
