"""Decisions read from annotated chat logs: would this person answer this message? Pure.

The logs are those of jkkummerfeld/irc-disentanglement: lines `[12:34] <nick> text` and, beside
them, which later line answers which (`12 15 -`). Each person who spoke lately stands for the bot
once: the row is a message that names nobody, and whether that person answered it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from bot.listening.decisions import IncomingMessage, decide
from bot.listening.transcript import ChannelConversation, MessageRecord

LOOK_BACK = 10
CONTEXT = 30
_LINE = re.compile(r"\[(\d\d):(\d\d)\] <([^>]+)> (.*)")
_TOLD = re.compile(r"\s*(\S+?)[:,](?:\s+|$)(.*)")
_DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True)
class LogRow:
    """A message, one person who spoke lately, and whether that person answered it.

    `spoke_last` says that the person wrote the line before it.
    """

    message: IncomingMessage
    earlier: tuple[MessageRecord, ...]
    person: str
    spoke_last: bool
    answered: bool


@dataclass(frozen=True)
class DecisionScore:
    """Of a rule over rows: precision and recall of answering, F1 averaged over both classes."""

    precision: float
    recall: float
    macro_f1: float


def rows_of(log: Sequence[str], links: Iterable[str]) -> Iterator[LogRow]:
    """The rows of one log; only its annotated part, and no line that names somebody there."""
    lines = _addressed(spoken(log))
    pairs = [tuple(int(n) for n in link.split()[:2]) for link in links if link.strip()]
    answers: dict[int, set[str]] = {}
    for one, other in pairs:
        first, second = sorted((one, other))
        if first != second and second in lines:
            answers.setdefault(first, set()).add(lines[second].author)
    begin = min((max(pair) for pair in pairs), default=0)
    order = sorted(lines)
    for position, index in enumerate(order):
        if index >= begin:
            recent = [lines[i] for i in order[max(0, position - CONTEXT) : position]]
            yield from _rows_at(lines[index], recent, answers.get(index, set()))


def score(said_yes: Sequence[bool], expected: Sequence[bool]) -> DecisionScore:
    """How often the rule was right; 0 where a figure is undefined."""
    kinds = list(zip(said_yes, expected, strict=True))
    hits, false, missed = (
        kinds.count(kind) for kind in ((True, True), (True, False), (False, True))
    )
    silent = kinds.count((False, False))
    f_yes = 2 * hits / ((2 * hits + false + missed) or 1)
    f_no = 2 * silent / ((2 * silent + false + missed) or 1)
    return DecisionScore(
        hits / ((hits + false) or 1), hits / ((hits + missed) or 1), (f_yes + f_no) / 2
    )


def rule_answers(row: LogRow, window_ms: int) -> bool:
    """Whether the rules would have that person speak."""
    conversation = ChannelConversation("log", 0, row.message.timestamp, row.earlier)
    return decide(row.message, conversation, row.person, window_ms).respond


def _rows_at(
    line: MessageRecord, recent: Sequence[MessageRecord], answered_by: set[str]
) -> Iterator[LogRow]:
    names = {record.author for record in recent}
    if any(_names(line.content, name) for name in names):
        return
    for person in sorted({record.author for record in recent[-LOOK_BACK:]} - {line.author}):
        message = IncomingMessage(
            line.message_id, line.author, line.author_id, line.content, line.timestamp
        )
        yield LogRow(
            message, tuple(recent), person, recent[-1].author == person, person in answered_by
        )


def spoken(log: Sequence[str]) -> dict[int, MessageRecord]:
    found: dict[int, MessageRecord] = {}
    day, before = 0, 0
    for index, text in enumerate(log):
        if match := _LINE.match(text):
            minutes = int(match[1]) * 60 + int(match[2])
            day += minutes < before - 60
            before = minutes
            time_ms = day * _DAY_MS + minutes * 60_000 + index
            found[index] = MessageRecord(match[3], match[3], match[4], time_ms, False, str(index))
    return found


def _addressed(lines: dict[int, MessageRecord]) -> dict[int, MessageRecord]:
    """`nick: text` as the bot's own words have it, `@nick text`."""
    nicks = {record.author.casefold(): record.author for record in lines.values()}

    def told(record: MessageRecord) -> MessageRecord:
        match = _TOLD.match(record.content)
        known = nicks.get(match[1].casefold()) if match else None
        return replace(record, content=f"@{known} {match[2]}") if match and known else record

    return {index: told(record) for index, record in lines.items() if record.content.strip()}


def _names(text: str, nick: str) -> bool:
    return bool(re.search(rf"(?<!\w){re.escape(nick)}(?!\w)", text, re.IGNORECASE))
