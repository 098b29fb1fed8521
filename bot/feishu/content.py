"""What a message says: its `content` (a JSON string, one shape per type) as Markdown text.

Nothing here raises: content that is not JSON, or not of the documented shape, gives an empty or
shorter text. Source: Feishu, "Receive message content". Posts are read by `bot.feishu.posts`.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from bot.feishu.at_tags import resolve_at_tags
from bot.feishu.card_text import card_text
from bot.feishu.fields import as_dict, as_list, as_text
from bot.feishu.markup import escape, unescape, without_decoration
from bot.feishu.mention_keys import ALL_KEY, SOMEONE, Mention
from bot.feishu.posts import read_post
from bot.feishu.resources import Attachment, Content
from bot.text.file_names import safe_name

UNREADABLE_CARD = "[card]"
# Of a text message, and more than of any other kind (Feishu, "Send message"). An event could be
# larger; nothing looks at the rest.
MOST_BYTES = 150 * 1024
SHORTENED = "\n[shortened: the rest is longer than a message can be]"

_NOBODY: Mapping[str, str] = MappingProxyType({})
_ATTACHED = re.compile(r"\[(?:file|image|voice message)(?:: [^\]\n]*)?\]|!\[image\]\(")


def render_content(
    message_type: str,
    content: object,
    mentions: Sequence[Mention] = (),
    names: Mapping[str, str] = _NOBODY,
) -> Content:
    """Text and attachments of a message; an unknown type gives an empty text.

    At-tags of cards become keys of `mentions`, else names: those of `names`, by open_id.
    """
    body = _loaded(content)
    if message_type == "interactive":
        return Content(_cut(as_text(_card(body, mentions, names))))
    renderer = _RENDERERS.get(message_type)
    if renderer is None:
        return Content("")
    rendering = renderer(body)
    return Content(_cut(as_text(rendering.template)), rendering.attachments)


def holds_attachment(text: str) -> bool:
    """Whether a rendered message seems to hold a file, picture or voice."""
    return _ATTACHED.search(text) is not None


def _cut(text: str) -> str:
    """`text` as far as somebody can have sent it; the end says that something is missing."""
    if len(text) <= MOST_BYTES // 4:
        return text
    data = text.encode("utf-8", "replace")
    if len(data) <= MOST_BYTES:
        return text
    return data[:MOST_BYTES].decode("utf-8", "ignore") + SHORTENED


def _loaded(content: object) -> dict[str, Any]:
    """Content as an object. Merged forwards arrive as a bare string, recalled messages too."""
    try:
        return as_dict(json.loads(as_text(content)))
    except (ValueError, RecursionError):
        return {}


def _text(body: dict[str, Any]) -> Content:
    return Content(as_text(body.get("text")))


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
    if user_id == "all" or key == ALL_KEY:
        return ALL_KEY
    by_id = (one.key for one in mentions.values() if one.open_id and one.open_id == user_id)
    name = next(by_id, "")
    return name or f"@{escape(names.get(user_id, '')) or label or SOMEONE}"


def _resource(kind: str, label: str, key: str) -> Callable[[dict[str, Any]], Content]:
    def render(body: dict[str, Any]) -> Content:
        raw_name = as_text(body.get("file_name"))
        name = safe_name(raw_name) if raw_name else ""
        size, duration_ms = (
            value if isinstance(value := body.get(field), int) else None
            for field in ("file_size", "duration")
        )
        attachment = Attachment(kind, as_text(body.get(key)), name, size, duration_ms)
        text = f"[{label}: {name}]" if name else f"[{label}]"
        return Content(text, (attachment,) if attachment.key else ())

    return render


def _labelled(label: str, field: str = "") -> Callable[[dict[str, Any]], Content]:
    def render(body: dict[str, Any]) -> Content:
        detail = as_text(body.get(field))
        return Content(f"[{label}: {detail}]" if detail else f"[{label}]")

    return render


def _system(body: dict[str, Any]) -> Content:
    """A notice such as "{from_user} invited {to_chatters} to this chat." with its values in."""
    template = as_text(body.get("template"))
    return Content(re.sub(r"\{(\w{1,40})\}", lambda match: _value(body, match.group(1)), template))


def _value(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if isinstance(value, dict):
        return as_text(value.get("text"))
    return ", ".join(as_text(item) for item in as_list(value)) or as_text(value)


def _todo(body: dict[str, Any]) -> Content:
    return Content(f"[task: {read_post(as_dict(body.get('summary'))).template}]")


def _vote(body: dict[str, Any]) -> Content:
    options = " / ".join(as_text(option) for option in as_list(body.get("options")))
    return Content(f"[vote: {as_text(body.get('topic'))} ({options})]")


_RENDERERS: dict[str, Callable[[dict[str, Any]], Content]] = {
    "text": _text,
    "post": read_post,
    "image": _resource("image", "image", "image_key"),
    "file": _resource("file", "file", "file_key"),
    "folder": _resource("folder", "folder", "file_key"),
    "audio": _resource("audio", "voice message", "file_key"),
    "media": _resource("media", "video", "file_key"),
    "sticker": _resource("sticker", "sticker", "file_key"),
    "merge_forward": _labelled("forwarded messages"),
    "share_chat": _labelled("shared group"),
    "share_user": _labelled("shared contact"),
    "share_calendar_event": _labelled("calendar event", "summary"),
    "calendar": _labelled("calendar invitation", "summary"),
    "general_calendar": _labelled("calendar notice", "summary"),
    "location": _labelled("location", "name"),
    "video_chat": _labelled("video call", "topic"),
    "hongbao": _labelled("red packet"),
    "system": _system,
    "todo": _todo,
    "vote": _vote,
}
