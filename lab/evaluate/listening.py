"""How well the rules decide when to answer, on labelled messages and on annotated chat logs.

On logs, each person who spoke lately stands for the bot once: would this person answer a message
that names nobody?
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.listening.decisions import IncomingMessage, decide, exchange_at, records_before
from bot.listening.transcript import ChannelConversation, LastExchange, MessageRecord
from lab.corpora.logs import ChatLog
from lab.figures import Figure

_ROW_BOT = "ou_bot"
_WINDOW_SECONDS = 60
_LOOK_BACK = 10
_CONTEXT = 30
_TOLD = re.compile(r"\s*(\S+?)[:,](?:\s+|$)(.*)")


def of_labelled(name: str, rows: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """Evaluates the rows and each of their splits; the notes name the mistakes."""
    splits = sorted({row["split"] for row in rows if "split" in row})
    parts = {name: rows} | {
        f"{name}, {split}": [row for row in rows if row.get("split") == split] for split in splits
    }
    found: list[Figure] = []
    for part, its in parts.items():
        report = evaluate(its)
        wrong = ", ".join(f"{name} ({reason})" for name, reason in report.mistakes)
        note = f"{len(its)} messages"
        found.append(Figure(f"{part}: precision", report.precision, note=note))
        found.append(Figure(f"{part}: recall", report.recall, note=f"wrong: {wrong or 'none'}"))
    return found


def of_logs(logs: Sequence[ChatLog]) -> list[Figure]:
    """Compares the rules with two naive ones."""
    rows = [row for log in logs for row in rows_of(log)]
    expected = [row.answered for row in rows]
    rules = {
        "the rules": [rule_answers(row, 1000 * _WINDOW_SECONDS) for row in rows],
        "who spoke last answers": [row.spoke_last for row in rows],
        "nobody answers": [False for _ in rows],
    }
    note = f"{len(rows)} rows, {sum(expected)} answered"
    found: list[Figure] = []
    for rule, said in rules.items():
        one = score(said, expected)
        found.append(Figure(f"chat logs, {rule}: macro F1", one.macro_f1, note=note))
        found.append(Figure(f"chat logs, {rule}: precision", one.precision))
        found.append(Figure(f"chat logs, {rule}: recall", one.recall))
    return found


@dataclass(frozen=True)
class DecisionReport:
    """The rules' decisions on labelled messages; `mistakes` holds ids with the wrong reasons."""

    precision: float
    recall: float
    mistakes: tuple[tuple[str, str], ...]


def evaluate(rows: Iterable[Mapping[str, Any]], *, window_seconds: float = 60) -> DecisionReport:
    """Returns precision and recall of `respond`, without a judge model; 1.0 if undefined."""
    kinds: Counter[tuple[bool, bool]] = Counter()
    mistakes = []
    for row in rows:
        decision = decide(*_labelled(row), _ROW_BOT, int(window_seconds * 1000))
        expected = row["expect"] == "respond"
        kinds[decision.respond, expected] += 1
        if decision.respond != expected:
            mistakes.append((str(row["id"]), decision.reason))
    hits = kinds[True, True]
    given, wanted = hits + kinds[True, False], hits + kinds[False, True]
    return DecisionReport(
        hits / given if given else 1.0, hits / wanted if wanted else 1.0, tuple(mistakes)
    )


def is_weighed(row: Mapping[str, Any]) -> bool:
    """Returns whether the wording decides: a person addresses nobody, within the usual window."""
    addressed = row["mentions"] or row.get("is_bot")
    return not addressed and row["seconds_since_bot"] <= _WINDOW_SECONDS


def exchange_of(row: Mapping[str, Any]) -> tuple[str, str, LastExchange]:
    """Returns the text of a row, its author's id, and the exchange before it."""
    message, conversation = _labelled(row)
    around, _ = exchange_at(message, records_before(message, conversation.messages), _ROW_BOT)
    return message.text, message.author_id, around


def _labelled(row: Mapping[str, Any]) -> tuple[IncomingMessage, ChannelConversation]:
    spoken_at = 1_000_000
    records: list[MessageRecord] = []
    last = max(index for index, said in enumerate(row["context"]) if said["is_bot"])
    for index, said in enumerate(row["context"]):
        who = _ROW_BOT if said["is_bot"] else said["author"]
        time_ms = spoken_at + (index - last)
        is_bot = said["is_bot"] or said.get("other_bot", False)
        answered = not is_bot and any(next_["is_bot"] for next_ in row["context"][index + 1 :][:1])
        records.append(
            MessageRecord(said["author"], who, said["text"], time_ms, is_bot, answered=answered)
        )
    message = IncomingMessage(
        message_id=row["id"],
        author=row["author"],
        author_id=row["author"],
        text=row["text"],
        timestamp=spoken_at + int(row["seconds_since_bot"] * 1000),
        is_bot=row.get("is_bot", False),
        mentions_bot="bot" in row["mentions"],
        mentions_others=bool({"other", "all"} & set(row["mentions"])),
    )
    return message, ChannelConversation("row", 0, spoken_at, tuple(records))


@dataclass(frozen=True)
class LogRow:
    """A message, one person who spoke lately, and whether that person answered it. `spoke_last` if
    they wrote the line before it."""

    message: IncomingMessage
    earlier: tuple[MessageRecord, ...]
    person: str
    spoke_last: bool
    answered: bool


@dataclass(frozen=True)
class DecisionScore:
    """Precision and recall of answering, and F1 averaged over both classes."""

    precision: float
    recall: float
    macro_f1: float


def rows_of(log: ChatLog) -> Iterator[LogRow]:
    """Yields the rows of the annotated part, without lines that name somebody there."""
    lines = _addressed(log.messages)
    answers: dict[int, set[str]] = {}
    for line, links in log.links.items():
        for first in links - {line} if line in lines else ():
            answers.setdefault(first, set()).add(lines[line].author)
    begin = min(log.links, default=0)
    order = sorted(lines)
    for position, index in enumerate(order):
        if index >= begin:
            recent = [lines[i] for i in order[max(0, position - _CONTEXT) : position]]
            yield from _rows_at(lines[index], recent, answers.get(index, set()))


def score(said_yes: Sequence[bool], expected: Sequence[bool]) -> DecisionScore:
    """Scores a rule; undefined figures are 0."""
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
    """Returns whether the rules would have that person speak."""
    conversation = ChannelConversation("log", 0, row.message.timestamp, row.earlier)
    return decide(row.message, conversation, row.person, window_ms).respond


def _rows_at(
    line: MessageRecord, recent: Sequence[MessageRecord], answered_by: set[str]
) -> Iterator[LogRow]:
    names = {record.author for record in recent}
    if any(_names(line.content, name) for name in names):
        return
    for person in sorted({record.author for record in recent[-_LOOK_BACK:]} - {line.author}):
        message = IncomingMessage(
            line.message_id, line.author, line.author_id, line.content, line.timestamp
        )
        yield LogRow(
            message, tuple(recent), person, recent[-1].author == person, person in answered_by
        )


def _addressed(lines: Mapping[int, MessageRecord]) -> dict[int, MessageRecord]:
    """Rewrites `nick: text` as `@nick text`, which is how the bot reads it. Bots count as people
    here, under their nicks."""
    nicks = {record.author.casefold(): record.author for record in lines.values()}

    def told(record: MessageRecord) -> MessageRecord:
        match = _TOLD.match(record.content)
        known = nicks.get(match[1].casefold()) if match else None
        content = f"@{known} {match[2]}" if match and known else record.content
        return replace(record, content=content, author_id=record.author, is_bot=False)

    return {index: told(record) for index, record in lines.items() if record.content.strip()}


def _names(text: str, nick: str) -> bool:
    return bool(re.search(rf"(?<!\w){re.escape(nick)}(?!\w)", text, re.IGNORECASE))
