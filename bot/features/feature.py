"""What a feature brings, in one value. `bot.features.registry` lists the features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.agents.tools.tool import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A feature by its room's name. `tools`: what the model can call for it."""

    name: str
    tools: Sequence[Tool] = ()
