"""Reads the `content` of a message, one shape per type, as Markdown text. Pure.

Nothing here raises: content that is not of the documented shape gives an empty or shorter text.
Clients send more shapes of posts than Feishu documents ("Receive message content"): a Markdown
version in `content_v2`, files beside the rows, posts wrapped by locale."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from bot.feishu.card_text import CARD_LOCALES, card_text
from bot.feishu.fields import (
    MENTION_ALL_KEY,
    SOMEONE_NAME,
    Attachment,
    Mention,
    MessageContent,
    as_dict,
    as_list,
    as_text,
    joins_name,
    resolve_at_tags,
)
from bot.feishu.markup import escape, unescape, without_decoration
from bot.text.file_names import safe_name
from bot.text.markdown import certain_spans, fenced_lines

UNREADABLE_CARD = "[card]"

# Of a text message, and more than of any other kind (Feishu, "Send message"). An event could be
# larger; nothing looks at the rest.
MOST_CONTENT_BYTES = 150 * 1024
SHORTENED_MARK = "\n[shortened: the rest is longer than a message can be]"
_NOBODY: Mapping[str, str] = MappingProxyType({})
_ATTACHED = re.compile(r"\[(?:file|image|voice message)(?:: [^\]\n]*)?\]|!\[image\]\(")

FILE_WITHOUT_KEY = "file that Feishu sent without a key"
_ROWS = ("content_v2", "content")
_STYLES = {"bold": "**", "italic": "*", "lineThrough": "~~"}
_WRAPPERS = 3  # levels
_DEEPEST = 8  # levels of nodes in nodes
_INSIDE = ("content", "elements", "children", "items")
_KEY = r"img_[\w-]{1,200}"
# Where a picture, or the definition that one refers to, names its key.
_PICTURE = re.compile(rf"\](?:\(|:) ?<?({_KEY})(?![\w-])")
_WORD = re.compile(r"\w+")
_MENTION = re.compile(r"@_user_\d+|@_all")
_BACKTICKS = re.compile(r"`{3,}")
PostRow = list[Mapping[str, Any]]


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
    """Content as an object. Merged forwards arrive as a bare string, recalled messages too."""
    try:
        return as_dict(json.loads(as_text(content)))
    except (ValueError, RecursionError):
        return {}


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


def _label_renderer(label: str, field: str = "") -> Callable[[dict[str, Any]], MessageContent]:
    def render(body: dict[str, Any]) -> MessageContent:
        detail = as_text(body.get(field))
        return MessageContent(f"[{label}: {detail}]" if detail else f"[{label}]")

    return render


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
    return MessageContent(f"[task: {read_post(as_dict(body.get('summary'))).template}]")


def _vote(body: dict[str, Any]) -> MessageContent:
    options = " / ".join(as_text(option) for option in as_list(body.get("options")))
    return MessageContent(f"[vote: {as_text(body.get('topic'))} ({options})]")


def read_post(body: dict[str, Any]) -> MessageContent:
    """Text and attachments of a post, each attachment once."""
    post = _unwrap_body(body)
    versions = [_rows(post.get(name)) for name in _ROWS]
    beside = [*_beside(post), *(_beside(body) if post is not body else ())]
    title = as_text(post.get("title"))
    lines = [*([f"**{title}**"] if title else []), _post_text(*versions)]
    lines += dict.fromkeys(f"[{_label(one)}: {one.name or 'without a name'}]" for one in beside)
    inside = [one for rows in reversed(versions) for row in rows for one in _attachments(row)]
    attachments = {(one.kind, one.key or one.name): one for one in (*inside, *beside)}
    return MessageContent("\n".join(lines).strip("\n"), tuple(attachments.values()))


def _unwrap_body(body: dict[str, Any]) -> dict[str, Any]:
    """The post itself: events bring it flat, other ways in `post`, by locale, or both."""
    post = body
    for _ in range(_WRAPPERS):
        if any(post.get(name) for name in _ROWS):
            return post
        inner = [as_dict(post.get(name)) for name in ("post", *CARD_LOCALES)]
        inner += map(as_dict, post.values())
        if not (inner_value := next((one for one in inner if one), None)):
            return post
        post = inner_value
    return post


def _rows(value: object) -> list[PostRow]:
    """Rows of nodes. Nodes that are in no row make one of their own; text is a text node."""
    rows: list[PostRow] = []
    loose: PostRow = []
    for item in _as_rows(value):
        if isinstance(item, list):
            rows += [loose] if loose else []
            loose = []
            rows.append(list(_nodes(item)))
        else:
            loose += _nodes([item])
    return [*rows, loose] if loose else rows


def _as_rows(value: object) -> list[Any]:
    if not isinstance(value, str):
        return [value] if isinstance(value, dict) else as_list(value)
    try:
        return as_list(json.loads(value)) or [value]
    except (ValueError, RecursionError):
        return [value]


def _nodes(items: list[Any], depth: int = 0) -> Iterator[Mapping[str, Any]]:
    for item in items:
        if isinstance(item, str):
            yield {"tag": "text", "text": item}
        elif isinstance(item, dict):
            yield item
        elif isinstance(item, list) and depth < _DEEPEST:
            yield from _nodes(item, depth + 1)


def _post_text(markdown: list[PostRow], plain: list[PostRow]) -> str:
    """The Markdown version, which keeps what the plain one flattens, unless it says less."""
    first, second = ("\n".join(map(_row_text, rows)) for rows in (markdown, plain))
    is_whole = bool(first.strip()) and 2 * _letters_and_digits(first) >= _letters_and_digits(second)
    return first if is_whole or not second.strip() else second


def _letters_and_digits(text: str) -> int:
    """The number of letters and digits, mentions left out."""
    return sum(map(len, _WORD.findall(_MENTION.sub("", text))))


def _row_text(nodes: PostRow) -> str:
    """A key must not grow together with the digits of the text after it."""
    line, after_key = "", False
    for node in nodes:
        piece = _node_text(node)
        line += f" {piece}" if after_key and joins_name(piece[:1]) else piece
        after_key = node.get("tag") == "at"
    return line


def _node_text(node: Mapping[str, Any], depth: int = 0) -> str:
    text = as_text(node.get("text")) or as_text(node.get("content"))
    match node.get("tag"):
        case "text":
            return _style_text(text, node)
        case "a":
            return f"[{text}]({as_text(node.get('href'))})"
        case "at":
            return _at(as_text(node.get("user_id")), as_text(node.get("user_name")))
        case "md" | "markdown":
            return resolve_at_tags(text, lambda key, user_id, name: _at(key or user_id, name))
        case "code_block":
            return _fence_code(text.rstrip(), as_text(node.get("language")).lower())
        case "img":
            return f"![image]({as_text(node.get('image_key'))})"
        case "media":
            return "[video]"
        case "emotion":
            return f":{as_text(node.get('emoji_type'))}:"
        case "hr":
            return "---"
        case tag:
            return text or _unknown(node, as_text(tag), depth)


def _unknown(node: Mapping[str, Any], tag: str, depth: int) -> str:
    """A node that is in no documentation: what is in it, else its tag, so that it is not lost."""
    inside = [one for name in _INSIDE for one in _nodes(as_list(node.get(name)))]
    if inside and depth < _DEEPEST:
        return "".join(_node_text(one, depth + 1) for one in inside)
    if resource := _node_attachment(node):
        return f"[{_label(resource)}: {resource.name or 'without a name'}]"
    return f"[{tag}]" if tag else ""


def _fence_code(code: str, language: str) -> str:
    """The code in a fence that is longer than any in it."""
    ticks = max((len(run) + 1 for run in _BACKTICKS.findall(code)), default=3)
    info = language if _WORD.fullmatch(language) else ""
    return f"{'`' * ticks}{info}\n{code}\n{'`' * ticks}"


def _style_text(text: str, node: Mapping[str, Any]) -> str:
    core = text.strip()
    marks = "".join(_STYLES.get(as_text(style), "") for style in as_list(node.get("style")))
    if not core or not marks:
        return text
    start = text.index(core)
    return f"{text[:start]}{marks}{core}{marks[::-1]}{text[start + len(core) :]}"


def _at(user_id: str, name: str) -> str:
    """The key of a mention stays as it is; `mentions[]` has the name for it."""
    if user_id == "all":
        return MENTION_ALL_KEY
    return user_id if user_id.startswith("@_") else f"@{name or SOMEONE_NAME}"


def _attachments(row: PostRow) -> Iterator[Attachment]:
    for node in row:
        if node.get("tag") in ("md", "markdown"):
            text = as_text(node.get("text")) or as_text(node.get("content"))
            for line in _prose_lines(text):
                yield from (Attachment("image", key, "") for key in _PICTURE.findall(line))
        elif (resource := _node_attachment(node)) and resource.key:
            yield resource


def _prose_lines(markdown: str) -> Iterator[str]:
    """The lines of Markdown without code."""
    lines = markdown.splitlines()
    for line, is_code in zip(lines, fenced_lines(lines), strict=True):
        if not is_code:
            for span in reversed(certain_spans(line)):
                line = line[: span.start] + line[span.end :]
            yield line


def _beside(post: dict[str, Any]) -> list[Attachment]:
    """What stands next to the rows, mostly in a list `files`."""
    lists = [_as_rows(value) for name, value in post.items() if name not in _ROWS]
    resources = [_node_attachment(as_dict(item)) for items in lists for item in items]
    return [one for one in resources if one]


def _node_attachment(node: Mapping[str, Any]) -> Attachment | None:
    if key := as_text(node.get("image_key")):
        is_video = node.get("tag") == "media" and as_text(node.get("file_key"))
        if not is_video:
            return Attachment("image", key, "")
    key = as_text(node.get("file_key"))
    raw_name = as_text(node.get("file_name")) or as_text(node.get("name"))
    name = safe_name(raw_name) if raw_name else ""
    if node.get("tag") == "media":
        return Attachment("media", key, name)
    if node.get("is_folder") is True:
        return Attachment("folder", key, name)
    if key:
        return Attachment("file", key, name)
    return Attachment(FILE_WITHOUT_KEY, "", name) if as_text(node.get("file_name")) else None


def _label(one: Attachment) -> str:
    kinds = {"media": "video", FILE_WITHOUT_KEY: "file"}
    return kinds.get(one.kind, one.kind)


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
    "share_calendar_event": _label_renderer("calendar event", "summary"),
    "calendar": _label_renderer("calendar invitation", "summary"),
    "general_calendar": _label_renderer("calendar notice", "summary"),
    "location": _label_renderer("location", "name"),
    "video_chat": _label_renderer("video call", "topic"),
    "hongbao": _label_renderer("red packet"),
    "system": _system,
    "todo": _todo,
    "vote": _vote,
}
