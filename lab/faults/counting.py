"""What came of an experiment's questions: answered once, as stored, and after how long. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.feishu.cards import is_answer_id, reply_uuid

_CARDS = 5  # of an answer at most, here


@dataclass(frozen=True, slots=True)
class CountedQuestion:
    """A question by its message_id; `may_end`: Feishu, or its own nonsense, may keep it from an
    answer; `unstored`: the fault is that its answer cannot be stored; `in_topic`: other questions
    stand in the same thread."""

    message_id: str
    chat_id: str
    may_end: bool = False
    unstored: bool = False
    in_topic: bool = False


@dataclass(slots=True)
class Count:
    """One experiment. `ended` have no card for a reason that Feishu gave or operators see; `shown`
    is what had to be gone and is not."""

    experiment: str
    bot_id: str
    rounds: int = 0
    pushed: int = 0
    lost: int = 0
    ended: int = 0
    doubled: int = 0
    mismatched: int = 0
    shown: int = 0
    silences_s: list[float] = field(default_factory=list)
    answered_ms: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.doubled or self.mismatched or self.shown)

    @property
    def longest_s(self) -> float:
        return max(self.silences_s, default=0.0)

    def add(
        self,
        one: CountedQuestion,
        messages: Sequence[Mapping[str, Any]],
        rows: Sequence[Any],
        accepted_ms: int,
    ) -> None:
        """`messages` of the chat as people see it, `rows` of the answer as stored: (status,
        content, message_id); `accepted_ms`: when the question was acknowledged."""
        self.pushed += 1
        cards = [m for m in messages if is_answer_to(m, one, self.bot_id)]
        sent = [row for row in rows if row[0] == "sent"]
        if not cards:
            self._without(one, rows)
            return
        if len(cards) > max(1, len(sent)):
            self.doubled += 1
            self.details.append(f"{one.message_id}: {len(cards)} cards, {len(sent)} stored")
        shown = {(text_of(card), card["message_id"]) for card in cards}
        if not one.unstored and {(row[1], row[2]) for row in sent} != shown:
            self.mismatched += 1
            self.details.append(f"{one.message_id}: differs from what is stored")
        first = min(card["create_ms"] for card in cards)
        self.answered_ms.append(first)
        self.silences_s.append((first - accepted_ms) / 1000)

    def _without(self, one: CountedQuestion, rows: Sequence[Any]) -> None:
        if one.may_end:
            self.ended += 1
            return
        self.lost += 1
        states = ", ".join(row[0] for row in rows) or "nothing stored"
        self.details.append(f"{one.message_id}: no card ({states})")


def is_answer_to(message: Mapping[str, Any], one: CountedQuestion, bot_id: str) -> bool:
    """Whether it is the bot's, below that question; in a topic, the one that was sent for it."""
    if message["sender"]["open_id"] != bot_id:
        return False
    if one.in_topic:
        return message["uuid"] in {reply_uuid(one.message_id, chunk) for chunk in range(_CARDS)}
    return bool(message["root_id"] == one.message_id)


def text_of(message: Mapping[str, Any]) -> str:
    """What an answer says; of a plain text its words."""
    card = message["card"]
    if not card:
        return str(message["text"])
    elements = card["body"]["elements"]
    return str(next(e["content"] for e in elements if is_answer_id(e.get("element_id", ""))))
