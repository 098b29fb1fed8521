"""What answers that nobody asked for bring."""

from __future__ import annotations

from bot.features.feature import Feature
from bot.features.unasked.answers import STOP_PRESS, answer_unasked, stop_unasked

UNASKED = Feature(
    name="unasked",
    presses={STOP_PRESS: stop_unasked},
    timers={"proactive": answer_unasked},
    settings=frozenset({"proactive_per_day", "proactive_hours"}),
)
