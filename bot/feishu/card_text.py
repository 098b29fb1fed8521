"""The text that a card shows, from every form in which Feishu hands cards over. Pure.

The forms: JSON 1.0 and 2.0 as they were sent; either of them as `user_dsl` beside a placeholder for
old clients; and rows of simplified elements, in events and without `card_msg_content_type`.
Only what people see is read: callback values and confirmation dialogs are not.
Sources: Feishu, "Receive message content", "Card JSON 1.0 structure", "Card JSON 2.0 structure",
"Configure multi-language content"; `user_dsl` is seen in production only.
"""

from __future__ import annotations

import json
import re
from typing import Any

from bot.feishu.card_elements import localised, shown_lines
from bot.feishu.fields import as_dict

_PLACEHOLDER = re.compile(r"\s*请升级(?:至最新版本客户端|客户端至最新版本).{0,12}")


def original_card(content: dict[str, Any]) -> dict[str, Any]:
    """The card as it was sent, taken out of `user_dsl` where it is wrapped."""
    source = content.get("user_dsl")
    if isinstance(source, str):
        try:
            source = json.loads(source)
        except (ValueError, RecursionError):
            source = None
    return as_dict(source) or content


def card_text(content: dict[str, Any]) -> str:
    """The texts of a card as Markdown, with its at-tags; "" where nothing can be read.

    Of several languages it takes one.
    """
    return _text(original_card(content)) or _text(content)


def _text(card: dict[str, Any]) -> str:
    body = as_dict(card.get("body")) or card
    header = localised(card.get("i18n_header")) or card.get("header") or card.get("title")
    elements = localised(body.get("i18n_elements")) or localised(card.get("i18n_elements"))
    lines = list(shown_lines(elements or body.get("elements")))
    if any(map(_PLACEHOLDER.fullmatch, lines)):
        lines = []  # a picture stands beside it
    return "\n".join([*shown_lines(header), *lines])
