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
    told: Sequence[Message], stored: Sequence[StoredMessage], quoted: Quoted | None
) -> list[Message]:
    """The messages `told`, made of those `stored`, with a remark in place of the quoted text."""
    if quoted is None:
        return list(told)
    return [_set_aside(one, kept, quoted) for one, kept in zip(told, stored, strict=True)]


def _set_aside(message: Message, stored: StoredMessage, quoted: Quoted) -> Message:
    by_bot = stored.role == "assistant"
    if stored.message_id != quoted.message_id and not (
        by_bot and _holds(message.content, quoted.text)
    ):
        return message
    text = quoted.text if by_bot else continued(quoted.text)
    return replace(message, content=message.content.replace(text, QUOTED_BELOW, 1))


def _holds(text: str, paragraphs: str) -> bool:
    """Whether whole paragraphs of `text` are these."""
    wanted = paragraphs.strip()
    return bool(wanted) and f"\n\n{wanted}\n\n" in f"\n\n{text.strip()}\n\n"
