"""What digests bring."""

from __future__ import annotations

from bot.features.digests.firing import fire_digest
from bot.features.digests.schedules import answer_digest
from bot.features.feature import Feature
from bot.text.slash_commands import CommandName

DIGESTS = Feature(
    name="digests",
    commands={CommandName.DIGEST: answer_digest},
    timers={"digest": fire_digest},
)
