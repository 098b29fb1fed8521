"""Whether a message in Feishu shows the text that is stored. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.documents.comment_text import is_said
from bot.feishu.comment_events import CommentReply
from bot.feishu.models import RawMessage
from bot.feishu.shown import is_same, shown_text


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
    if is_same(shown, stored):
        return None
    return f"Feishu shows {len(shown)} characters that differ from the {len(stored)} stored"


def commented_otherwise(stored: str, reply: CommentReply | None) -> str | None:
    """The same of an answer in a comment; one that was deleted, or stands on the whole document,
    is not compared."""
    if reply is None or is_said(reply, stored):
        return None
    return "the comment in Feishu differs from what is stored"


def is_verifiable(row: Mapping[str, Any]) -> bool:
    """Whether a stored row is a card that was sent."""
    return bool(row["role"] == "assistant" and row["status"] == "sent" and row["message_id"])
