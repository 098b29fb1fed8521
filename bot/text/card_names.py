"""At-tags of a card as the names that people read. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bot.text.roster import Escape, Roster

UNKNOWN_NAME = "someone"

AT_TAG = re.compile(r"<at\s+id=[\"']?([A-Za-z0-9_-]+)[\"']?\s*>[^<]*</at>", re.IGNORECASE)


def from_card(markdown: str, names: Mapping[str, str] | Roster, *, unescape: Escape) -> str:
    """The text that a card's markdown was made from: at-tags are `@Name` again.

    `names` is open_id → name. Somebody unknown is `@someone`.
    """
    known_names = names_of(names)
    pieces, position = [], 0
    for tag in AT_TAG.finditer(markdown):
        pieces += [unescape(markdown[position : tag.start()]), f"@{name_of(tag[1], known_names)}"]
        position = tag.end()
    return "".join(pieces) + unescape(markdown[position:])


def name_of(open_id: str, names: Mapping[str, str]) -> str:
    return "all" if open_id == "all" else names.get(open_id, UNKNOWN_NAME)


def names_of(names: Mapping[str, str] | Roster) -> Mapping[str, str]:
    """open_id → name."""
    return names.names() if isinstance(names, Roster) else names
