"""What a message in Feishu shows. Pure.

Feishu gives a card back as it was sent (`card_msg_content_type=user_card_content`): the card JSON,
seen in practice below `user_dsl`, and with ids of its own in at-tags. So at-tags are compared as
such, not by whom they name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from bot.feishu.card_text import original_card
from bot.feishu.cards import is_answer_id
from bot.feishu.content import render_content
from bot.feishu.fields import as_dict, as_list, as_text
from bot.feishu.models import RawMessage

_AT = re.compile(r"<at\b[^<>]*>[^<>]*</at>")


def shown_text(message: RawMessage, element_id: str = "") -> str | None:
    """The answer's text in a card or text message, what a file is called; None where there is none.

    With `element_id`: the text of that element of a card.
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
    if element_id:
        return next((text for name, text in texts if name == element_id), None)
    answers = [text for name, text in texts if is_answer_id(name)]
    found = answers or [text for _, text in texts]
    return found[0] if found else None


def is_same(shown: str, stored: str) -> bool:
    """Whether two texts are the same but for whom at-tags name."""
    return _comparable(shown) == _comparable(stored)


def _markdown(elements: object) -> Iterator[tuple[str, str]]:
    """element_id and content of every Markdown element, in order, however deep."""
    for element in map(as_dict, as_list(elements)):
        if element.get("tag") == "markdown":
            yield as_text(element.get("element_id")), as_text(element.get("content"))
        yield from _markdown(element.get("elements"))


def _comparable(text: str) -> str:
    return _AT.sub("<at></at>", text).strip()
