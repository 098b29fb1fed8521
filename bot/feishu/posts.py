"""Reads posts (rich text) as Markdown. Pure.

Clients send more shapes of posts than Feishu documents ("Receive message content"): a Markdown
version in `content_v2`, files beside the rows, posts wrapped by locale, nodes without rows. What a
person sees in Feishu is read, whatever it is wrapped in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from bot.feishu.card_text import CARD_LOCALES
from bot.feishu.fields import (
    MENTION_ALL_KEY,
    SOMEONE_NAME,
    Attachment,
    MessageContent,
    as_dict,
    as_list,
    as_text,
    joins_name,
    resolve_at_tags,
)
from bot.feishu.markup import unescape
from bot.text.file_names import safe_name
from bot.text.markdown import certain_spans, fenced_lines

FILE_WITHOUT_KEY = "file that Feishu sent without a key"
_ROWS = ("content_v2", "content")
_WRAPPERS = frozenset(("post", *_ROWS))
_STYLES = {"bold": "**", "italic": "*", "lineThrough": "~~"}
_DEEPEST = 8  # levels, of wrappers and of nodes in nodes
_NAMES = ("title", "name", "url", "href")  # of what an unknown node shows
_APART = {"items": "\n", "rows": "\n", "cells": " | ", "columns": " | "}
_KEY = r"img_[\w-]{1,200}"
# Where a picture, or the definition that one refers to, names its key.
_PICTURE = re.compile(rf"(?:\](?:\(|:) ?<?|<img\s[^<>]{{0,200}}?src=[\"']?)({_KEY})(?![\w-])")
_RESOURCE_KEY = re.compile(r"(img|file)_v\d[\w-]{1,200}")
_LOCALE = re.compile(r"[a-z]{2}[_-][A-Za-z]{2}")
_WORD = re.compile(r"\w+")
_MENTION = re.compile(r"@_user_\d+|@_all")
_BACKTICKS = re.compile(r"`{3,}")
PostRow = list[Mapping[str, Any]]


def read_post(body: dict[str, Any]) -> MessageContent:
    """Text and attachments of a post, each attachment once."""
    levels = _levels(body)
    post = levels[-1]
    versions = [_rows(post.get(name)) for name in _ROWS]
    beside = [one for level in reversed(levels) for one in _beside(level)]
    title = as_text(post.get("title"))
    lines = [*([f"**{title}**"] if title else []), _post_text(*versions)]
    lines += dict.fromkeys(f"[{_label(one)}: {one.name or 'without a name'}]" for one in beside)
    inside = [one for rows in reversed(versions) for row in rows for one in _attachments(row)]
    attachments = {(one.kind, one.key or one.name): one for one in (*inside, *beside)}
    return MessageContent("\n".join(lines).strip("\n"), tuple(attachments.values()))


def _levels(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The post, last, after what it is wrapped in: events bring it flat, other ways in `post`, by
    locale, or both. The first that says something; one language is enough."""
    found = list(_posts(body, (), 0)) or [[body]]
    return next((one for one in found if _says_something(one[-1])), found[0])


def _posts(
    level: dict[str, Any], above: tuple[dict[str, Any], ...], depth: int
) -> Iterator[list[dict[str, Any]]]:
    levels = (*above, level)
    if depth < _DEEPEST:
        for name in dict.fromkeys((*_ROWS, "post", *CARD_LOCALES, *level)):
            if inner := _wrapped_post(name, _decode(level.get(name))):
                yield from _posts(inner, levels, depth + 1)
    if any(level.get(name) for name in _ROWS):
        yield list(levels)


def _wrapped_post(name: str, value: object) -> dict[str, Any]:
    """The post that stands under that name; {} if there is none. Rows stand under a locale too."""
    if isinstance(value, list | str) and (name == "post" or _LOCALE.fullmatch(name)):
        return {"content": value}
    post = as_dict(value)
    if name not in _ROWS:
        return post
    return post if post.keys() & _WRAPPERS or all(map(_LOCALE.fullmatch, post)) else {}


def _decode(value: object) -> object:
    """What a text that is JSON holds: some programs encode a part of the post once more."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        inner = json.loads(value)
    except (ValueError, RecursionError):
        return value
    is_more = isinstance(inner, dict) or any(isinstance(one, dict | list) for one in inner)
    return inner if is_more else value


def _says_something(post: dict[str, Any]) -> bool:
    rows = [row for name in _ROWS for row in _rows(post.get(name))]
    return any(map(_row_text, rows)) or any(_attachments(row) for row in rows)


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
    value = _decode(value)
    if not isinstance(value, dict):
        return [value] if isinstance(value, str) else as_list(value)
    rows = [one for one in value.values() if isinstance(one, list)]
    if "tag" in value or not rows:
        return [value]
    return rows[0] if len(rows) == 1 else rows


def _nodes(items: list[Any], depth: int = 0) -> Iterator[Mapping[str, Any]]:
    for item in items:
        if isinstance(item, str):
            yield {"tag": "text", "text": item}
        elif isinstance(item, dict):
            yield item
        elif isinstance(item, list) and depth < _DEEPEST:
            yield from _nodes(item, depth + 1)


def _post_text(markdown: list[PostRow], plain: list[PostRow]) -> str:
    """The Markdown version, which keeps what the plain one flattens, unless it says less; and the
    rows of the plain one that it lacks."""
    first, second = ("\n".join(map(_row_text, rows)) for rows in (markdown, plain))
    if not second.strip():
        return first
    if not first.strip() or 2 * len(_letters(first)) < len(_letters(second)):
        return second
    told = _Told(first)
    missing = [text for text in map(_row_text, plain) if text not in told]
    return "\n".join([first, *missing])


class _Told:
    """The rows that a text contains, written in whichever way."""

    def __init__(self, text: str) -> None:
        letters = _letters(unescape(text))
        self._parts = {size: set(_parts(letters, size)) for size in (2, 4)}

    def __contains__(self, row: str) -> bool:
        letters = _letters(unescape(row))
        size = 4 if len(letters) >= 4 else 2
        parts = list(_parts(letters, size))
        known = sum(part in self._parts[size] for part in parts)
        return 2 * known >= len(parts)


def _parts(letters: str, size: int) -> Iterator[str]:
    return (letters[at : at + size] for at in range(len(letters) - size + 1))


def _letters(text: str) -> str:
    """The letters and digits, mentions left out."""
    return "".join(_WORD.findall(_MENTION.sub("", text)))


def _row_text(nodes: PostRow) -> str:
    """A key must not grow together with the digits of the text after it."""
    line, after_key = "", False
    for node in nodes:
        piece = _node_text(node)
        line += f" {piece}" if after_key and joins_name(piece[:1]) else piece
        after_key = node.get("tag") == "at"
    return line


def _node_text(node: Mapping[str, Any], depth: int = 0) -> str:
    text = _words(node.get("text")) or _words(node.get("content"))
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
        case "media" | "video":
            return "[video]"
        case "emotion":
            return f":{as_text(node.get('emoji_type')) or 'emoji'}:"
        case "hr":
            return "---"
        case tag:
            return text or _unknown(node, as_text(tag), depth)


def _words(value: object) -> str:
    """Text, also as a number, or in an object of its own."""
    if isinstance(value, dict):
        value = value.get("content") or value.get("text")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else as_text(value)


def _unknown(node: Mapping[str, Any], tag: str, depth: int) -> str:
    """A node that is in no documentation: what is in it, else its name or tag, so that it is not
    lost."""
    if depth < _DEEPEST:
        inside = [
            _APART.get(name, "").join(_node_text(one, depth + 1) for one in _nodes([value]))
            for name, value in node.items()
            if isinstance(value, list | dict) and name != "style"
        ]
        if any(inside):
            return "\n".join(filter(None, inside))
    if resource := _node_attachment(node):
        return f"[{_label(resource)}: {resource.name or 'without a name'}]"
    name = next(filter(None, (as_text(node.get(one)) for one in _NAMES)), "")
    return f"[{tag}: {name}]" if tag and name else name or (f"[{tag}]" if tag else "")


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


def _attachments(nodes: PostRow, depth: int = 0) -> list[Attachment]:
    """What the nodes, and those in them, show or hold."""
    found: list[Attachment] = []
    for node in nodes:
        if node.get("tag") in ("md", "markdown"):
            text = _words(node.get("text")) or _words(node.get("content"))
            for line in _prose_lines(text):
                found += (Attachment("image", key, "") for key in _PICTURE.findall(line))
        elif (resource := _node_attachment(node)) and resource.key:
            found.append(resource)
        elif depth < _DEEPEST:
            inside = [value for value in node.values() if isinstance(value, list | dict)]
            found += _attachments(list(_nodes(inside)), depth + 1) if inside else []
    return found


def _prose_lines(markdown: str) -> Iterator[str]:
    """The lines of Markdown without code."""
    lines = markdown.splitlines()
    for line, is_code in zip(lines, fenced_lines(lines), strict=True):
        if not is_code:
            for span in reversed(certain_spans(line)):
                line = line[: span.start] + line[span.end :]
            yield line


def _beside(level: dict[str, Any]) -> list[Attachment]:
    """What stands next to the rows, mostly in a list `files`; a key alone may stand for a file."""
    values = [as_list(value) or _as_rows(value) for name, value in level.items()
              if name not in _ROWS and isinstance(value, list | dict | str)]  # fmt: skip
    nodes = [node for items in values for node in _nodes(items)]
    resources = [_node_attachment(one) or _named_key(one) for one in nodes]
    return [one for one in resources if one]


def _named_key(node: Mapping[str, Any]) -> Attachment | None:
    key = as_text(node.get("text")) if node.get("tag") == "text" else ""
    if match := _RESOURCE_KEY.fullmatch(key):
        return Attachment("image" if match[1] == "img" else "file", key, "")
    return None


def _node_attachment(node: Mapping[str, Any]) -> Attachment | None:
    key, picture = as_text(node.get("file_key")), as_text(node.get("image_key"))
    is_video = node.get("tag") in ("media", "video")  # its picture is the first of it
    if picture and not (is_video and key):
        return Attachment("image", picture, "")
    raw_name = as_text(node.get("file_name")) or as_text(node.get("name"))
    name = safe_name(raw_name) if raw_name else ""
    if is_video:
        return Attachment("media", key, name)
    if node.get("is_folder") is True:
        return Attachment("folder", key, name)
    if key:
        return Attachment("file", key, name)
    return Attachment(FILE_WITHOUT_KEY, "", name) if as_text(node.get("file_name")) else None


def _label(one: Attachment) -> str:
    kinds = {"media": "video", FILE_WITHOUT_KEY: "file"}
    return kinds.get(one.kind, one.kind)
