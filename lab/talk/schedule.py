"""When who speaks: an open loop, whose arrivals do not wait for answers. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

_SEED = 31  # every version meets the same arrivals


@dataclass(frozen=True, slots=True)
class Utterance:
    """Something is said in the group `chat`, `at_s` after the beginning."""

    at_s: float
    chat: int
    to_bot: bool


def arrivals(
    mentions: float, lines: float, seconds: float, chats: int, *, at_random: bool = False
) -> list[Utterance]:
    """So many mentions and lines a second, in groups drawn by lot: evenly spaced, or at random
    moments. Their number is the same either way."""
    lot = random.Random(f"{_SEED} {mentions} {lines} {seconds}")  # noqa: S311 - no secret
    said = [
        Utterance(at_s, lot.randrange(chats), to_bot)
        for rate, to_bot in ((mentions, True), (lines, False))
        for at_s in _moments(rate, seconds, lot if at_random else None)
    ]
    return sorted(said, key=lambda one: one.at_s)


def _moments(rate: float, seconds: float, lot: random.Random | None) -> Sequence[float]:
    count = round(rate * seconds)
    if lot:
        return [lot.uniform(0, seconds) for _ in range(count)]
    return [(number + 0.5) / rate for number in range(count)]
