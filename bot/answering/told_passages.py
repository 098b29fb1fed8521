"""Earlier messages as the model reads them, in a prompt and as a tool's result. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from bot.feishu import markup
from bot.text.card_names import from_card
from memory.recall.passages import Passage
from memory.recall.reading import Label, Recalled, render
from memory.scope import AgentMemoryContext


def told_passages(
    passages: Sequence[Passage],
    here: AgentMemoryContext,
    now: datetime,
    names: Mapping[str, str],
    label: Label,
    question: str = "",
) -> Recalled:
    """`memory.recall.reading.render`, with the at-tags of cards as names."""

    def visible(card: str) -> str:
        return from_card(card, names, unescape=markup.unescape)

    return render(passages, here=here, now=now, label=label, visible=visible, question=question)
