"""Messages as Feishu's API gives them, as text for a model. Pure.

Source: Feishu, "Get message": a merged forward comes with its children, flat, linked by
`upper_message_id`; with `card_msg_content_type=user_card_content` a card comes as it was sent.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bot.feishu.content import (
    Attachment,
    as_dict,
    as_list,
    as_text,
    render_content,
    render_mentions,
)
from bot.feishu.markup import model_text
from bot.feishu.models import RawMessage

MOST_FORWARDED = 50
RECALLED = "(this message was taken back)"

_TEXT_TAGS = ("markdown", "plain_text", "lark_md")
_DEEPEST = 12


def is_forward(message_type: str) -> bool:
    return message_type == "merge_forward"


def raw_text(raw: RawMessage, names: Mapping[str, str]) -> str:
    """What the message says, as Markdown; `names` are by open_id, for at-tags in cards."""
    if raw.deleted:
        return RECALLED
    template = render_content(raw.message_type, raw.content).template
    if raw.message_type == "interactive":
        return model_text(_card_text(raw.content) or template, names)
    return render_mentions(template, raw.mentions)


def raw_attachments(raw: RawMessage) -> tuple[Attachment, ...]:
    """Resources that can be downloaded under the message's own id."""
    return () if raw.deleted else render_content(raw.message_type, raw.content).attachments


def forwarded_text(found: Sequence[RawMessage], names: Mapping[str, str]) -> str:
    """The children of a merged forward, `found[0]`: `Name: text`, oldest first, nested ones too."""
    children = sorted(found[1:], key=lambda raw: raw.create_time_ms)
    lines = [_line(raw, names) for raw in children[:MOST_FORWARDED]]
    left_out = len(children) - len(lines)
    return "\n".join([*lines, *([f"({left_out} more)"] if left_out else [])])


def _line(raw: RawMessage, names: Mapping[str, str]) -> str:
    author = " ".join(names.get(raw.sender_id, "").split()).replace(":", "：") or "someone"
    text = raw_text(raw, names).strip() or f"[{raw.message_type}]"
    return f"{author}: " + "\n    ".join(text.splitlines())


def _card_text(content: str) -> str:
    """The texts of a card of schema 2.0, one per line; "" for anything else."""
    try:
        card = as_dict(json.loads(content))
    except (ValueError, RecursionError):
        return ""
    title = as_text(as_dict(as_dict(card.get("header")).get("title")).get("content"))
    elements = as_list(as_dict(card.get("body")).get("elements"))
    return "\n".join(filter(None, [title, *_texts(elements)]))


def _texts(node: Any, depth: int = 0) -> Iterator[str]:
    if depth > _DEEPEST or as_dict(node).get("tag") == "button":
        return
    if as_dict(node).get("tag") in _TEXT_TAGS:
        yield as_text(node.get("content"))
        return
    for child in as_dict(node).values() if isinstance(node, dict) else as_list(node):
        yield from _texts(child, depth + 1)
