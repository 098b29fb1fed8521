"""Leaves out of the conversation what the question quotes: a quotation is never cut. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory.context import Message
from memory.foreign_text import continued
from memory.models import StoredMessage

QUOTED_BELOW = "[this message is quoted with the question]"


@dataclass(frozen=True, slots=True)
class Quoted:
    """The message that is quoted with the question, as the model reads it."""

    message_id: str
    text: str


def without_quoted(
    messages: Sequence[Message],
    stored_messages: Sequence[StoredMessage],
    quoted_message: Quoted | None,
) -> list[Message]:
    """The messages `messages`, made of those `stored_messages`, with a remark in place of the
    quoted text."""
    if quoted_message is None:
        return list(messages)
    return [
        _set_aside(one, kept, quoted_message)
        for one, kept in zip(messages, stored_messages, strict=True)
    ]


def _set_aside(message: Message, stored_message: StoredMessage, quoted_message: Quoted) -> Message:
    by_bot = stored_message.role == "assistant"
    if stored_message.message_id != quoted_message.message_id and not (
        by_bot and _holds(message.content, quoted_message.text)
    ):
        return message
    text = quoted_message.text if by_bot else continued(quoted_message.text)
    return replace(message, content=message.content.replace(text, QUOTED_BELOW, 1))


def _holds(text: str, paragraphs: str) -> bool:
    """Whether whole paragraphs of `text` are these."""
    needle = paragraphs.strip()
    return bool(needle) and f"\n\n{needle}\n\n" in f"\n\n{text.strip()}\n\n"
