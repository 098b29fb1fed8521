"""The outcome of an experiment's questions: answered once, as stored, and after how long. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lab.doubles.minimal_feishu import text_of
from lab.figures import Figure


@dataclass(frozen=True, slots=True)
class CountedQuestion:
    """A question that people asked, by its message_id."""

    message_id: str
    chat_id: str


@dataclass(slots=True)
class Count:
    """One experiment. The bot acknowledged `pushed` questions; of these `lost` have no card,
    `doubled` more cards than are stored, `mismatched` another card than is stored."""

    experiment: str
    bot_id: str
    rounds: int = 0
    pushed: int = 0
    lost: int = 0
    doubled: int = 0
    mismatched: int = 0
    silences_s: list[float] = field(default_factory=list)
    answered_ms: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.doubled or self.mismatched)

    @property
    def longest_s(self) -> float:
        return max(self.silences_s, default=0.0)

    def figures(self) -> list[Figure]:
        name, note = self.experiment, f"of {self.pushed} in {self.rounds} rounds"
        return [
            Figure(f"{name}: lost", self.lost, "", 0, note=note),
            Figure(f"{name}: doubled", self.doubled, "", 0),
            Figure(f"{name}: other than stored", self.mismatched, "", 0),
            Figure(f"{name}: longest silence", self.longest_s, "s", note="; ".join(self.notes)),
        ]

    def add(
        self,
        one: CountedQuestion,
        messages: Sequence[Mapping[str, Any]],
        rows: Sequence[Any],
        accepted_ms: int,
    ) -> None:
        """Compares `messages` of the chat, as people see it, with the stored `rows` of the answer
        (status, content, message_id). `accepted_ms`: when the question was acknowledged."""
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
        if {(row[1], row[2]) for row in sent} != shown:
            self.mismatched += 1
            self.details.append(f"{one.message_id}: differs from what is stored")
        first = min(card["create_ms"] for card in cards)
        self.answered_ms.append(first)
        self.silences_s.append((first - accepted_ms) / 1000)

    def _without(self, one: CountedQuestion, rows: Sequence[Any]) -> None:
        self.lost += 1
        states = ", ".join(row[0] for row in rows) or "nothing stored"
        self.details.append(f"{one.message_id}: no card ({states})")


def is_answer_to(message: Mapping[str, Any], one: CountedQuestion, bot_id: str) -> bool:
    """True for a message of the bot below that question."""
    return bool(message["sender"]["open_id"] == bot_id and message["root_id"] == one.message_id)
