"""How well the rules decide when to answer, on labelled messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.listening.decisions import IncomingMessage, decide, exchange_at, records_before
from bot.listening.transcript import ChannelConversation, LastExchange, MessageRecord
from lab.figures import Figure

_ROW_BOT = "ou_bot"
_WINDOW_SECONDS = 60


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
