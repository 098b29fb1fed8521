"""What a message says: its `content` (a JSON string, one shape per type) as Markdown text.

Nothing here raises: content that is not JSON, or not of the documented shape, gives an empty or
shorter text. Source: Feishu, "Receive message content"; shapes that only show up in practice
(`content_v2`, wrapped posts, bare strings) are named where they are handled.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from bot.feishu.at_tags import resolve_at_tags
from bot.feishu.card_elements import LOCALES
from bot.feishu.card_text import card_text
from bot.feishu.fields import as_dict, as_list, as_text
from bot.feishu.markup import escape, unescape, without_decoration
from bot.feishu.mention_keys import ALL_KEY, SOMEONE, Mention, is_joining
from bot.text.file_names import safe_name

UNREADABLE_CARD = "[card]"
# Of a text message, and more than of any other kind (Feishu, "Send message"). An event could be
# larger; nothing looks at the rest.
MOST_BYTES = 150 * 1024
SHORTENED = "\n[shortened: the rest is longer than a message can be]"

_NOBODY: Mapping[str, str] = MappingProxyType({})
_ATTACHED = re.compile(r"\[(?:file|image|voice message)(?:: [^\]\n]*)?\]|!\[image\]\(")
_STYLES = {"bold": "**", "italic": "*", "lineThrough": "~~"}


@dataclass(frozen=True, slots=True)
class Attachment:
    """A resource of a message. `kind`: image, file, audio, media, sticker or folder; size in bytes
    and duration, each None where Feishu does not say (of the size events never do)."""

    kind: str
    key: str
    name: str
    size: int | None = None
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """`template` still holds the mention keys; `render_mentions` puts the names in."""

    template: str
    attachments: tuple[Attachment, ...] = ()


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
    rendered = renderer(body)
    return Content(_cut(as_text(rendered.template)), rendered.attachments)


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


def _post(body: dict[str, Any]) -> Content:
    """Events bring posts flat; fetched ones may be wrapped by locale. `content_v2` (seen, not
    documented) keeps the Markdown that `content` flattens, so it is preferred when present."""
    post = _unwrapped(body)
    paragraphs = as_list(post.get("content_v2")) or as_list(post.get("content"))
    nodes = [[as_dict(node) for node in as_list(line)] for line in paragraphs]
    title = as_text(post.get("title"))
    lines = [_line(line) for line in nodes]
    text = "\n".join([f"**{title}**", *lines] if title else lines)
    found = [_post_attachment(node) for line in nodes for node in line]
    return Content(text.strip("\n"), tuple(item for item in found if item and item.key))


def _unwrapped(body: dict[str, Any]) -> dict[str, Any]:
    if "content" in body or "content_v2" in body:
        return body
    wrapped = [as_dict(body.get(locale)) for locale in LOCALES]
    return next((post for post in wrapped if post), {})


def _line(nodes: list[dict[str, Any]]) -> str:
    """A key must not grow together with the digits of the text after it."""
    line, after_key = "", False
    for node in nodes:
        piece = _node(node)
        line += f" {piece}" if after_key and is_joining(piece[:1]) else piece
        after_key = node.get("tag") == "at"
    return line


def _node(node: dict[str, Any]) -> str:
    text = as_text(node.get("text"))
    match node.get("tag"):
        case "text":
            return _styled(text, node)
        case "a":
            return f"[{text}]({as_text(node.get('href'))})"
        case "at":
            return _at(as_text(node.get("user_id")), as_text(node.get("user_name")))
        case "md":
            return resolve_at_tags(text, lambda key, user_id, name: _at(key or user_id, name))
        case "code_block":
            language = as_text(node.get("language")).lower()
            return f"```{language}\n{text.rstrip()}\n```"
        case "img":
            return f"![image]({as_text(node.get('image_key'))})"
        case "media":
            return "[video]"
        case "emotion":
            return f":{as_text(node.get('emoji_type'))}:"
        case "hr":
            return "---"
        case _:
            return text


def _styled(text: str, node: dict[str, Any]) -> str:
    core = text.strip()
    marks = "".join(_STYLES.get(as_text(style), "") for style in as_list(node.get("style")))
    if not core or not marks:
        return text
    start = text.index(core)
    return f"{text[:start]}{marks}{core}{marks[::-1]}{text[start + len(core) :]}"


def _at(user_id: str, name: str) -> str:
    """The key of a mention stays as it is; `mentions[]` has the name for it."""
    if user_id == "all":
        return ALL_KEY
    return user_id if user_id.startswith("@_") else f"@{name or SOMEONE}"


def _post_attachment(node: dict[str, Any]) -> Attachment | None:
    match node.get("tag"):
        case "img":
            return Attachment("image", as_text(node.get("image_key")), "")
        case "media":
            name = as_text(node.get("name"))
            return Attachment(
                "media", as_text(node.get("file_key")), safe_name(name) if name else ""
            )
        case _:
            return None


def _card(body: dict[str, Any], mentions: Sequence[Mention], names: Mapping[str, str]) -> str:
    """Names are escaped until the rest is unescaped, so that they stay what they are."""
    resolve = partial(_card_at, {mention.key: mention for mention in mentions}, names)
    return (
        unescape(resolve_at_tags(without_decoration(card_text(body)), resolve)) or UNREADABLE_CARD
    )


def _card_at(
    listed: Mapping[str, Mention], names: Mapping[str, str], key: str, user_id: str, label: str
) -> str:
    """A tag's id may be one that another app knows the person by; its key is in `mentions[]`."""
    if key in listed:
        return key
    if user_id == "all" or key == ALL_KEY:
        return ALL_KEY
    by_id = (one.key for one in listed.values() if one.open_id and one.open_id == user_id)
    known = next(by_id, "")
    return known or f"@{escape(names.get(user_id, '')) or label or SOMEONE}"


def _resource(kind: str, label: str, key: str) -> Callable[[dict[str, Any]], Content]:
    def render(body: dict[str, Any]) -> Content:
        given = as_text(body.get("file_name"))
        name = safe_name(given) if given else ""
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
    return Content(f"[task: {_post(as_dict(body.get('summary'))).template}]")


def _vote(body: dict[str, Any]) -> Content:
    options = " / ".join(as_text(option) for option in as_list(body.get("options")))
    return Content(f"[vote: {as_text(body.get('topic'))} ({options})]")


_RENDERERS: dict[str, Callable[[dict[str, Any]], Content]] = {
    "text": _text,
    "post": _post,
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
