"""Whether a message in Feishu shows the text that is stored. Pure.

Feishu gives a card back as it was sent (`card_msg_content_type=user_card_content`): the card JSON,
seen in practice below `user_dsl`, and with ids of its own in at-tags. So at-tags are compared as
such, not by whom they name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from bot.feishu.cards import ANSWER_ID
from bot.feishu.content import as_dict, as_list, as_text
from bot.feishu.models import RawMessage

_AT = re.compile(r"<at\b[^<>]*>[^<>]*</at>")


def difference(stored: str, messages: list[RawMessage]) -> str | None:
    """What is wrong with a sent card, or None when it shows what is `stored`."""
    if not messages:
        return "Feishu does not know the message"
    message = messages[0]
    if message.deleted:
        return None  # taken back in Feishu; there is nothing left to compare
    shown = shown_text(message)
    if shown is None:
        return f"Feishu gives no text of it ({message.message_type}), so it cannot be compared"
    if _comparable(shown) == _comparable(stored):
        return None
    return f"Feishu shows {len(shown)} characters that differ from the {len(stored)} stored"


def shown_text(message: RawMessage) -> str | None:
    """The answer's text in a card or text message, None where there is none."""
    try:
        content = json.loads(message.content)
    except ValueError:
        return None
    if message.message_type == "text":
        return as_text(as_dict(content).get("text"))
    card = as_dict(content)
    original = card.get("user_dsl", card)
    if isinstance(original, str):
        try:
            original = json.loads(original)
        except ValueError:
            return None
    texts = list(_markdown(as_dict(as_dict(original).get("body")).get("elements")))
    answers = [text for element_id, text in texts if element_id == ANSWER_ID]
    found = answers or [text for _, text in texts]
    return found[0] if found else None


def _markdown(elements: object) -> Iterator[tuple[str, str]]:
    """element_id and content of every Markdown element, in order, however deep."""
    for element in map(as_dict, as_list(elements)):
        if element.get("tag") == "markdown":
            yield as_text(element.get("element_id")), as_text(element.get("content"))
        yield from _markdown(element.get("elements"))


def _comparable(text: str) -> str:
    return _AT.sub("<at></at>", text).strip()


def is_verifiable(row: Mapping[str, Any]) -> bool:
    """Whether a stored row is a card that was sent."""
    return bool(row["role"] == "assistant" and row["status"] == "sent" and row["message_id"])
