"""What a message says: its `content` (a JSON string, one shape per type) as Markdown text.

Nothing here raises: content that is not JSON, or not of the documented shape, gives an empty or
shorter text. Source: Feishu, "Receive message content"; shapes that only show up in practice
(`content_v2`, wrapped posts, bare strings) are named where they are handled.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.files.names import safe_name
from memory.text import storable

MENTION_KEY = re.compile(r"@_(?:user_[0-9]+|all)(?![A-Za-z0-9_])")
ALL_KEY = "@_all"

_LOCALES = ("zh_cn", "en_us", "ja_jp", "zh_hk", "zh_tw")
_MD_AT = re.compile(r"<at\s+(?:user_)?id=\"?([^\"\s>]{1,80})\"?\s*>([^<]{0,80})</at>")
_ATTACHED = re.compile(r"\[(?:file|image)(?:: [^\]\n]*)?\]|!\[image\]\(")
_STYLES = {"bold": "**", "italic": "*", "lineThrough": "~~"}


@dataclass(frozen=True, slots=True)
class Mention:
    """One @ in a message; `key` is its placeholder in the content (`@_user_1`)."""

    key: str
    open_id: str
    name: str
    is_bot: bool
    tenant_key: str


@dataclass(frozen=True, slots=True)
class Attachment:
    """A resource of a message. `kind`: image, file, audio, media, sticker or folder; size in bytes,
    None where Feishu does not say (events never do)."""

    kind: str
    key: str
    name: str
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """`template` still holds the mention keys; `render_mentions` puts the names in."""

    template: str
    attachments: tuple[Attachment, ...] = ()


def as_text(value: object) -> str:
    """`value` when it is text, else ""; without what UTF-8 or Postgres cannot hold."""
    if not isinstance(value, str):
        return ""
    return storable(value)


def as_dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def parse_mentions(raw: object) -> tuple[Mention, ...]:
    """Mentions of an event (`id` is an object) or of a REST message (`id` is text)."""
    return tuple(_mention(as_dict(entry)) for entry in as_list(raw) if isinstance(entry, dict))


def _mention(entry: dict[str, Any]) -> Mention:
    identity = entry.get("id")
    if isinstance(identity, dict):
        open_id = as_text(identity.get("open_id"))
    else:
        open_id = as_text(identity) if entry.get("id_type", "open_id") == "open_id" else ""
    return Mention(
        key=as_text(entry.get("key")),
        open_id=open_id,
        name=as_text(entry.get("name")),
        is_bot=entry.get("mentioned_type") == "bot",
        tenant_key=as_text(entry.get("tenant_key")),
    )


def render_mentions(template: str, mentions: Sequence[Mention]) -> str:
    """`template` with every known key as @Name and `@_all` as @all, in one pass."""
    names = {mention.key: mention.name for mention in mentions if mention.name}

    def name_of(match: re.Match[str]) -> str:
        key = match.group()
        return "@all" if key == ALL_KEY else f"@{names[key]}" if key in names else key

    return MENTION_KEY.sub(name_of, template)


def render_content(message_type: str, content: object) -> Content:
    """Text and attachments of a message; an unknown type gives an empty text."""
    renderer = _RENDERERS.get(message_type)
    if renderer is None:
        return Content("")
    rendered = renderer(_loaded(content))
    return Content(as_text(rendered.template), rendered.attachments)


def holds_attachment(text: str) -> bool:
    """Whether a rendered message seems to hold a file or picture."""
    return _ATTACHED.search(text) is not None


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
    lines = ["".join(_node(node) for node in line) for line in nodes]
    text = "\n".join([f"**{title}**", *lines] if title else lines)
    found = [_post_attachment(node) for line in nodes for node in line]
    return Content(text.strip("\n"), tuple(item for item in found if item and item.key))


def _unwrapped(body: dict[str, Any]) -> dict[str, Any]:
    if "content" in body or "content_v2" in body:
        return body
    wrapped = [as_dict(body.get(locale)) for locale in _LOCALES]
    return next((post for post in wrapped if post), {})


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
            return _MD_AT.sub(lambda match: _at(match.group(1), match.group(2)), text)
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
    if MENTION_KEY.fullmatch(user_id):
        return user_id
    return ALL_KEY if user_id == "all" else f"@{name or user_id}"


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


def _card(body: dict[str, Any]) -> Content:
    """A card as Feishu hands it back: a title and rows of simplified elements."""
    rows = as_list(body.get("elements"))
    lines = ["".join(_node(as_dict(node)) for node in as_list(row)) for row in rows]
    return Content("\n".join(filter(None, [as_text(body.get("title")), *lines])))


def _resource(kind: str, label: str, key: str) -> Callable[[dict[str, Any]], Content]:
    def render(body: dict[str, Any]) -> Content:
        given, size = as_text(body.get("file_name")), body.get("file_size")
        name = safe_name(given) if given else ""
        attachment = Attachment(
            kind, as_text(body.get(key)), name, size if isinstance(size, int) else None
        )
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
    "interactive": _card,
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
