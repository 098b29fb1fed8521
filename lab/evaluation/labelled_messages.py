"""How well the rules decide, measured on labelled messages. Pure.

A row is a message after a short context: `id`, `context` (author, is_bot, text; with `other_bot`
it is a bot, but another one), the `seconds_since_bot`, `author` (`is_bot`, if another bot), `text`,
`mentions` (bot, other, all) and `expect`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bot.listening.decisions import IncomingMessage, before, decide, exchange_at
from bot.listening.exchange import LastExchange
from bot.listening.transcript import ChannelConversation, MessageRecord


@dataclass(frozen=True)
class Mistake:
    """A labelled message that was decided otherwise."""

    id: str
    expected: str
    reason: str


@dataclass(frozen=True)
class DecisionReport:
    """How the rules do on labelled messages; `by_reason` counts right and wrong per reason."""

    precision: float
    recall: float
    by_reason: Mapping[str, tuple[int, int]]
    mistakes: tuple[Mistake, ...]


def evaluate(rows: Iterable[Mapping[str, Any]], *, window_seconds: float = 60) -> DecisionReport:
    """Precision and recall of `respond` over rows of `tests/data/followups.jsonl`, no judge.

    Without a single `respond` given or expected the figure in question is 1.0.
    """
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    kinds: Counter[tuple[bool, bool]] = Counter()
    mistakes = []
    for row in rows:
        decision = decide(*_labelled(row), _ROW_BOT, int(window_seconds * 1000))
        expected = row["expect"] == "respond"
        kinds[decision.respond, expected] += 1
        if decision.respond == expected:
            right[decision.reason] += 1
        else:
            wrong[decision.reason] += 1
            mistakes.append(Mistake(row["id"], row["expect"], decision.reason))
    hits = kinds[True, True]
    return DecisionReport(
        precision=hits / (hits + kinds[True, False]) if hits + kinds[True, False] else 1.0,
        recall=hits / (hits + kinds[False, True]) if hits + kinds[False, True] else 1.0,
        by_reason={reason: (right[reason], wrong[reason]) for reason in sorted({*right, *wrong})},
        mistakes=tuple(mistakes),
    )


def is_weighed(row: Mapping[str, Any]) -> bool:
    """Whether the wording decides: a person addresses nobody, within the usual window."""
    addressed = row["mentions"] or row.get("is_bot")
    return not addressed and row["seconds_since_bot"] <= _WINDOW_SECONDS


def exchange_of(row: Mapping[str, Any]) -> tuple[str, str, LastExchange]:
    """The text of a row, its author's id, and what it comes after."""
    message, conversation = _labelled(row)
    around, _ = exchange_at(message, before(message, conversation.messages), _ROW_BOT)
    return message.text, message.author_id, around


_ROW_BOT = "ou_bot"
_WINDOW_SECONDS = 60


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
