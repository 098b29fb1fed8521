"""What private answers bring."""

from __future__ import annotations

from bot.features.feature import Feature
from bot.features.private_answers.answering import SHARE, publish

PRIVATE_ANSWERS = Feature(
    name="private_answers",
    presses={SHARE: publish},
    settings=frozenset({"private_answers"}),
)
