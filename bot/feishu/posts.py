"""Reads posts (rich text): the rows, the Markdown version of the rows, and what comes beside them.

Clients send more shapes than Feishu documents ("Receive message content", post). Seen in practice:
a Markdown version in `content_v2`, next to a full `content`, and either of them empty or malformed;
files beside the rows; posts wrapped by locale or in `post`; nodes that are in no row. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from bot.feishu.at_tags import resolve_at_tags
from bot.feishu.card_elements import LOCALES
from bot.feishu.fields import as_dict, as_list, as_text
from bot.feishu.mention_keys import ALL_KEY, SOMEONE, is_joining
from bot.feishu.resources import Attachment, Content
from bot.text.file_names import safe_name
from bot.text.markdown import certain_spans, in_fences

WITHOUT_KEY = "file that Feishu sent without a key"

_ROWS = ("content_v2", "content")
_STYLES = {"bold": "**", "italic": "*", "lineThrough": "~~"}
_WRAPPERS = 3  # levels
_DEEPEST = 8  # levels of nodes in nodes
_INSIDE = ("content", "elements", "children", "items")
_KEY = r"img_[\w-]{1,200}"
_PICTURE = re.compile(rf"!\[[^\[\]\n]{{0,500}}\]\( ?<?({_KEY})>?(?: [\"'][^\n()]{{0,200}})?\)")
_WORD = re.compile(r"\w+")
_MENTION = re.compile(r"@_user_\d+|@_all")
_BACKTICKS = re.compile(r"`{3,}")

Row = list[Mapping[str, Any]]


def read_post(body: dict[str, Any]) -> Content:
    """Text and attachments of a post, each attachment once."""
    post = _unwrapped(body)
    versions = [_rows(post.get(name)) for name in _ROWS]
    beside = [*_beside(post), *(_beside(body) if post is not body else ())]
    title = as_text(post.get("title"))
    lines = [*([f"**{title}**"] if title else []), _text(*versions)]
    lines += dict.fromkeys(f"[{_label(one)}: {one.name or 'without a name'}]" for one in beside)
    inside = [one for rows in reversed(versions) for row in rows for one in _attachments(row)]
    attachments = {(one.kind, one.key or one.name): one for one in (*inside, *beside)}
    return Content("\n".join(lines).strip("\n"), tuple(attachments.values()))


def _unwrapped(body: dict[str, Any]) -> dict[str, Any]:
    """The post itself: events bring it flat, other ways in `post`, by locale, or both."""
    post = body
    for _ in range(_WRAPPERS):
        if any(post.get(name) for name in _ROWS):
            return post
        inner = [as_dict(post.get(name)) for name in ("post", *LOCALES)]
        inner += map(as_dict, post.values())
        if not (inner_value := next((one for one in inner if one), None)):
            return post
        post = inner_value
    return post


def _rows(value: object) -> list[Row]:
    """Rows of nodes. Nodes that are in no row make one of their own; text is a text node."""
    rows: list[Row] = []
    loose: Row = []
    for item in _listed(value):
        if isinstance(item, list):
            rows += [loose] if loose else []
            loose = []
            rows.append(list(_nodes(item)))
        else:
            loose += _nodes([item])
    return [*rows, loose] if loose else rows


def _listed(value: object) -> list[Any]:
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


def _text(markdown: list[Row], plain: list[Row]) -> str:
    """The Markdown version, which keeps what the plain one flattens, unless it says less."""
    first, second = ("\n".join(map(_line, rows)) for rows in (markdown, plain))
    is_whole = bool(first.strip()) and 2 * _said(first) >= _said(second)
    return first if is_whole or not second.strip() else second


def _said(text: str) -> int:
    """The number of letters and digits, mentions left out."""
    return sum(map(len, _WORD.findall(_MENTION.sub("", text))))


def _line(nodes: Row) -> str:
    """A key must not grow together with the digits of the text after it."""
    line, after_key = "", False
    for node in nodes:
        piece = _node(node)
        line += f" {piece}" if after_key and is_joining(piece[:1]) else piece
        after_key = node.get("tag") == "at"
    return line


def _node(node: Mapping[str, Any], depth: int = 0) -> str:
    text = as_text(node.get("text")) or as_text(node.get("content"))
    match node.get("tag"):
        case "text":
            return _styled(text, node)
        case "a":
            return f"[{text}]({as_text(node.get('href'))})"
        case "at":
            return _at(as_text(node.get("user_id")), as_text(node.get("user_name")))
        case "md" | "markdown":
            return resolve_at_tags(text, lambda key, user_id, name: _at(key or user_id, name))
        case "code_block":
            return _fenced(text.rstrip(), as_text(node.get("language")).lower())
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
        return "".join(_node(one, depth + 1) for one in inside)
    if resource := _resource(node):
        return f"[{_label(resource)}: {resource.name or 'without a name'}]"
    return f"[{tag}]" if tag else ""


def _fenced(code: str, language: str) -> str:
    """The code in a fence that is longer than any in it."""
    ticks = max((len(run) + 1 for run in _BACKTICKS.findall(code)), default=3)
    info = language if _WORD.fullmatch(language) else ""
    return f"{'`' * ticks}{info}\n{code}\n{'`' * ticks}"


def _styled(text: str, node: Mapping[str, Any]) -> str:
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


def _attachments(row: Row) -> Iterator[Attachment]:
    for node in row:
        if node.get("tag") in ("md", "markdown"):
            text = as_text(node.get("text")) or as_text(node.get("content"))
            for line in _prose(text):
                yield from (Attachment("image", key, "") for key in _PICTURE.findall(line))
        elif (resource := _resource(node)) and resource.key:
            yield resource


def _prose(markdown: str) -> Iterator[str]:
    """The lines of Markdown without code."""
    lines = markdown.splitlines()
    for line, is_code in zip(lines, in_fences(lines), strict=True):
        if not is_code:
            for span in reversed(certain_spans(line)):
                line = line[: span.start] + line[span.end :]
            yield line


def _beside(post: dict[str, Any]) -> list[Attachment]:
    """What stands next to the rows, mostly in a list `files`."""
    lists = [_listed(value) for name, value in post.items() if name not in _ROWS]
    resources = [_resource(as_dict(item)) for items in lists for item in items]
    return [one for one in resources if one]


def _resource(node: Mapping[str, Any]) -> Attachment | None:
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
    return Attachment(WITHOUT_KEY, "", name) if as_text(node.get("file_name")) else None


def _label(one: Attachment) -> str:
    kinds = {"media": "video", WITHOUT_KEY: "file"}
    return kinds.get(one.kind, one.kind)
