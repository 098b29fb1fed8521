"""What a card costs on its way."""

from __future__ import annotations

import json
from typing import Any

from bot.feishu.cards import card_content


def card_bytes(card: dict[str, Any]) -> int:
    """Bytes the card takes in the request body; Feishu refuses more than MAX_CARD_BYTES."""
    quoted = json.dumps(card_content(card), ensure_ascii=False)
    return len(quoted.encode("utf-8", "replace"))
