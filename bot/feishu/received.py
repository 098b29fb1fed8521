"""Messages as Feishu's API gives them, as text for a model. Pure.

Source: Feishu, "Get message": a merged forward comes with its children, flat, linked by
`upper_message_id`; with `card_msg_content_type=user_card_content` a card comes as it was sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.feishu.content import render_content
from bot.feishu.mention_keys import render_mentions
from bot.feishu.models import RawMessage
from bot.feishu.resources import Attachment
from memory.foreign_text import speaker, spoken

MOST_FORWARDED = 50
# Feishu, "Get resource in message": it does not give resources of forwarded messages.
NOT_FETCHED = "(the files and pictures named above were not read)"
RECALLED = "(this message was taken back)"


def is_forward(message_type: str) -> bool:
    return message_type == "merge_forward"


def raw_text(raw: RawMessage, names: Mapping[str, str]) -> str:
    """What the message says, as Markdown; `names` are by open_id, for at-tags in cards."""
    if raw.deleted:
        return RECALLED
    rendering = render_content(raw.message_type, raw.content, raw.mentions, names)
    return render_mentions(rendering.template, raw.mentions)


def raw_attachments(raw: RawMessage) -> tuple[Attachment, ...]:
    """Resources that can be downloaded under the message's own id."""
    return () if raw.deleted else render_content(raw.message_type, raw.content).attachments


def forwarded_text(messages: Sequence[RawMessage], names: Mapping[str, str]) -> str:
    """The children of a merged forward, `found[0]`: `Name: text`, oldest first, nested ones too."""
    children = sorted(messages[1:], key=lambda raw: raw.create_time_ms)
    visible_children = children[:MOST_FORWARDED]
    lines = [_line(raw, names) for raw in visible_children]
    lines += [f"({left_out} more)"] if (left_out := len(children) - len(visible_children)) else []
    lines += [NOT_FETCHED] if any(map(raw_attachments, visible_children)) else []
    return "\n".join(lines)


def _line(raw: RawMessage, names: Mapping[str, str]) -> str:
    text = raw_text(raw, names).strip() or f"[{raw.message_type}]"
    return spoken(speaker(names.get(raw.sender_id, "")), text)
