"""What a message in Feishu shows. Pure.

Feishu gives a card back as it was sent (`card_msg_content_type=user_card_content`): the card JSON,
seen in practice below `user_dsl`, and with ids of its own in at-tags. So at-tags are compared as
such, not by whom they name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from bot.feishu.card_entries import joined
from bot.feishu.card_text import original_card
from bot.feishu.cards import holds_answer
from bot.feishu.content import render_content
from bot.feishu.fields import as_dict, as_list, as_text
from bot.feishu.models import RawMessage

_AT = re.compile(r"<at\b[^<>]*>[^<>]*</at>")


def shown_text(message: RawMessage, element_id: str = "") -> str | None:
    """The answer's text in a card or text message, what a file is called; None where there is none.

    With `element_id`: only of a card that has that element.
    """
    try:
        content = as_dict(json.loads(message.content))
    except ValueError:
        return None
    if message.message_type == "text":
        return None if element_id else as_text(content.get("text"))
    if message.message_type in ("file", "image"):
        return (
            None if element_id else render_content(message.message_type, message.content).template
        )
    texts = list(_markdown(as_dict(original_card(content).get("body")).get("elements")))
    if element_id and element_id not in dict(texts):
        return None
    return joined(part for part in texts if holds_answer(part[0])) or next(
        (text for _, text in texts), None
    )


def is_same(visible_text: str, stored_text: str) -> bool:
    """Whether two texts are the same but for whom at-tags name."""
    return _comparable(visible_text) == _comparable(stored_text)


def _markdown(elements: object) -> Iterator[tuple[str, str]]:
    """element_id and content of every Markdown element, in order, however deep."""
    for element in map(as_dict, as_list(elements)):
        if element.get("tag") == "markdown":
            yield as_text(element.get("element_id")), as_text(element.get("content"))
        for inner in ("elements", "columns"):
            yield from _markdown(element.get(inner))


def _comparable(text: str) -> str:
    return _AT.sub("<at></at>", text).strip()
