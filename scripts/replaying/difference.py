"""What differs between the answer as it was and the one of today. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from bot.feishu import markup
from bot.text.card_names import from_card

_ADDRESS = re.compile(r"\A<at id=[^>]*></at>[ \t]*")


def visible(answer: str, names: Mapping[str, str]) -> str:
    """A stored card as the model wrote it, nearly: without whom it was addressed to, and with names
    for at-tags."""
    return from_card(_ADDRESS.sub("", answer, count=1), names, unescape=markup.unescape)


def lines_of(before: str, after: str) -> list[str]:
    """A unified diff of two answers; nothing when they are the same."""
    found = difflib.unified_diff(
        before.splitlines(), after.splitlines(), "as it was", "as it would be", lineterm="", n=2
    )
    return list(found)


def tools_of(calls: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of the tools that were called, in order; one that failed has a mark."""
    return [f"{call['name']}{'' if call.get('ok', True) else ' (failed)'}" for call in calls]
