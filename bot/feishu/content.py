"""Reads the `content` of a message, one shape per type, as Markdown text. Pure.

Nothing here raises: content that is not of the documented shape gives an empty or shorter text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import Any

from bot.feishu.card_text import card_text
from bot.feishu.fields import (
    MENTION_ALL_KEY,
    SOMEONE_NAME,
    Attachment,
    Mention,
    MessageContent,
    as_dict,
    as_list,
    as_text,
    milliseconds,
    resolve_at_tags,
)
from bot.feishu.markup import escape, unescape, without_decoration
from bot.feishu.posts import read_post
from bot.text.file_names import safe_name

UNREADABLE_CARD = "[card]"

# Of a text message, and more than of any other kind (Feishu, "Send message"). An event could be
# larger; nothing looks at the rest.
MOST_CONTENT_BYTES = 150 * 1024
SHORTENED_MARK = "\n[shortened: the rest is longer than a message can be]"
_NOBODY: Mapping[str, str] = MappingProxyType({})
_MOST_ENCODINGS = 2
_PERIOD = ("start_time", "end_time")
_END = 2**42  # ms; a time that is not before the year 2109 is none
_ATTACHED = re.compile(r"\[(?:file|image|voice message)(?:: [^\]\n]*)?\]|!\[image\]\(")


def render_content(
    message_type: str,
    content: object,
    mentions: Sequence[Mention] = (),
    names: Mapping[str, str] = _NOBODY,
) -> MessageContent:
    """Text and attachments of a message; an unknown type gives an empty text.

    At-tags of cards become keys of `mentions`, else names: those of `names`, by open_id.
    """
    body = _load_content(content)
    if message_type == "interactive":
        return MessageContent(_cut(as_text(_card(body, mentions, names))))
    renderer = _RENDERERS.get(message_type)
    if renderer is None:
        return MessageContent("")
    rendering = renderer(body)
    return MessageContent(_cut(as_text(rendering.template)), rendering.attachments)


def holds_attachment(text: str) -> bool:
    """Whether a rendered message seems to hold a file, picture or voice."""
    return _ATTACHED.search(text) is not None


def _cut(text: str) -> str:
    """`text` as far as somebody can have sent it; the end says that something is missing."""
    if len(text) <= MOST_CONTENT_BYTES // 4:
        return text
    data = text.encode("utf-8", "replace")
    if len(data) <= MOST_CONTENT_BYTES:
        return text
    return data[:MOST_CONTENT_BYTES].decode("utf-8", "ignore") + SHORTENED_MARK


def _load_content(content: object) -> dict[str, Any]:
    """Content as an object; rows or text without one are a post's. Merged forwards arrive as a
    bare string, recalled messages too; some programs encode an object twice."""
    body: object = as_text(content)
    for _ in range(_MOST_ENCODINGS):
        with suppress(ValueError, RecursionError):
            body = json.loads(body) if isinstance(body, str) else body
    return {"content": body} if isinstance(body, list | str) else as_dict(body)


def _text_message(body: dict[str, Any]) -> MessageContent:
    return MessageContent(as_text(body.get("text")))


def _card(body: dict[str, Any], mentions: Sequence[Mention], names: Mapping[str, str]) -> str:
    """Names are escaped until the rest is unescaped, so that they stay what they are."""
    resolve = partial(_card_at, {mention.key: mention for mention in mentions}, names)
    return (
        unescape(resolve_at_tags(without_decoration(card_text(body)), resolve)) or UNREADABLE_CARD
    )


def _card_at(
    mentions: Mapping[str, Mention], names: Mapping[str, str], key: str, user_id: str, label: str
) -> str:
    """A tag's id may be one that another app knows the person by; its key is in `mentions[]`."""
    if key in mentions:
        return key
    if user_id == "all" or key == MENTION_ALL_KEY:
        return MENTION_ALL_KEY
    by_id = (one.key for one in mentions.values() if one.open_id and one.open_id == user_id)
    name = next(by_id, "")
    return name or f"@{escape(names.get(user_id, '')) or label or SOMEONE_NAME}"


def _resource_renderer(
    kind: str, label: str, key: str
) -> Callable[[dict[str, Any]], MessageContent]:
    def render(body: dict[str, Any]) -> MessageContent:
        raw_name = as_text(body.get("file_name"))
        name = safe_name(raw_name) if raw_name else ""
        size, duration_ms = (
            value if isinstance(value := body.get(field), int) else None
            for field in ("file_size", "duration")
        )
        attachment = Attachment(kind, as_text(body.get(key)), name, size, duration_ms)
        text = f"[{label}: {name}]" if name else f"[{label}]"
        return MessageContent(text, (attachment,) if attachment.key else ())

    return render


def _label_renderer(
    label: str, field: str = "", *times: str
) -> Callable[[dict[str, Any]], MessageContent]:
    def render(body: dict[str, Any]) -> MessageContent:
        period = " – ".join(filter(None, (_moment(body.get(one)) for one in times)))
        detail = ", ".join(filter(None, (as_text(body.get(field)), period)))
        return MessageContent(f"[{label}: {detail}]" if detail else f"[{label}]")

    return render


def _moment(value: object) -> str:
    """The time in UTC, which says so; people of one chat may be in several zones."""
    ms = milliseconds(value)
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M} UTC" if 0 < ms < _END else ""


def _system(body: dict[str, Any]) -> MessageContent:
    """A notice such as "{from_user} invited {to_chatters} to this chat." with its values in."""
    template = as_text(body.get("template"))
    return MessageContent(
        re.sub(r"\{(\w{1,40})\}", lambda match: _value(body, match.group(1)), template)
    )


def _value(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if isinstance(value, dict):
        return as_text(value.get("text"))
    return ", ".join(as_text(item) for item in as_list(value)) or as_text(value)


def _todo(body: dict[str, Any]) -> MessageContent:
    due = _moment(body.get("due_time"))
    text = read_post(as_dict(body.get("summary"))).template
    return MessageContent(f"[task: {text}, due {due}]" if due else f"[task: {text}]")


def _vote(body: dict[str, Any]) -> MessageContent:
    options = " / ".join(as_text(option) for option in as_list(body.get("options")))
    return MessageContent(f"[vote: {as_text(body.get('topic'))} ({options})]")


_RENDERERS: dict[str, Callable[[dict[str, Any]], MessageContent]] = {
    "text": _text_message,
    "post": read_post,
    "image": _resource_renderer("image", "image", "image_key"),
    "file": _resource_renderer("file", "file", "file_key"),
    "folder": _resource_renderer("folder", "folder", "file_key"),
    "audio": _resource_renderer("audio", "voice message", "file_key"),
    "media": _resource_renderer("media", "video", "file_key"),
    "sticker": _resource_renderer("sticker", "sticker", "file_key"),
    "merge_forward": _label_renderer("forwarded messages"),
    "share_chat": _label_renderer("shared group"),
    "share_user": _label_renderer("shared contact"),
    "share_calendar_event": _label_renderer("calendar event", "summary", *_PERIOD),
    "calendar": _label_renderer("calendar invitation", "summary", *_PERIOD),
    "general_calendar": _label_renderer("calendar notice", "summary", *_PERIOD),
    "location": _label_renderer("location", "name"),
    "video_chat": _label_renderer("video call", "topic", "start_time"),
    "hongbao": _label_renderer("red packet"),
    "system": _system,
    "todo": _todo,
    "vote": _vote,
}
