"""Reads the fields of Feishu's JSON: texts, mentions, at-tags and attachments. Pure.

Only `mentions[]` says which keys a text holds: text may follow a key directly, so
`@_user_19:00` is `@_user_19` and “:00”, or `@_user_1` and “9:00”. Feishu writes at-tags with
and without quotes, and for several people at once (seen in production)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from memory.text import storable

MENTION_ALL_KEY = "@_all"
SOMEONE_NAME = "someone"

# Events may leave @all out of `mentions[]`, so its key counts without being listed.
_UNLISTED_ALL = re.escape(MENTION_ALL_KEY) + r"(?![A-Za-z0-9_])"

# (key of the mention, id, what stands in the tag) → what takes the tag's place; each may be "".
AtTagResolver = Callable[[str, str, str], str]
_TAG = re.compile(
    r"<(?:at|person)(?=[\s/>])([^<>]*)>(?:([^<>]*)</(?:at|person)\s*>)?|</(?:at|person)\s*>", re.I
)
_ATTRIBUTE = re.compile(r"""(?<![a-z_])([a-z_]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"']+))""", re.I)
_KEYS = ("mention_key", "mentions_key")
_IDS = ("id", "ids", "user_id", "open_id", "email")


def as_text(value: object) -> str:
    """`value` when it is text, else ""; without what UTF-8 or Postgres cannot hold."""
    return storable(value) if isinstance(value, str) else ""


def milliseconds(value: object) -> int:
    """Milliseconds since the epoch; 0 when `value` is no time.

    Feishu sends text, in seconds (schema 1.0), milliseconds (events) or microseconds (callbacks).
    """
    digits = str(value).partition(".")[0]
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
        return 0
    number = int(digits)
    if number >= 10**14:
        return number // 1000
    return number if number >= 10**11 else number * 1000


def as_dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


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
class MessageContent:
    """`template` still holds the mention keys; `render_mentions` puts the names in."""

    template: str
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class Mention:
    """One @ in a message; `key` is its placeholder in the content (`@_user_1`)."""

    key: str
    open_id: str
    name: str
    is_bot: bool
    tenant_key: str


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


def key_pattern(mentions: Sequence[Mention]) -> re.Pattern[str]:
    """Matches the keys of `mentions`, the longest first, and `@_all`."""
    keys = sorted({mention.key for mention in mentions if mention.key}, key=len, reverse=True)
    return _pattern(tuple(keys))


@lru_cache(maxsize=64)
def _pattern(keys: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join([*map(re.escape, keys), _UNLISTED_ALL]))


def render_mentions(template: str, mentions: Sequence[Mention]) -> str:
    """`template` with each listed key as @Name and `@_all` as @all, apart from the words around."""
    names = {MENTION_ALL_KEY: "all"} | {
        mention.key: mention.name or SOMEONE_NAME
        for mention in mentions
        if mention.key != MENTION_ALL_KEY
    }
    texts, rendered_names, end = [], [], 0
    for match in key_pattern(mentions).finditer(template):
        texts.append(template[end : match.start()])
        rendered_names.append(f"@{names[match.group()]}")
        end = match.end()
    texts.append(template[end:])
    spaced_texts = [
        _space_names(text, after_name=number > 0, before_name=number < len(rendered_names))
        for number, text in enumerate(texts)
    ]
    return "".join(
        text + name for text, name in zip(spaced_texts, [*rendered_names, ""], strict=True)
    )


def _space_names(text: str, *, after_name: bool, before_name: bool) -> str:
    """What stands between two names, with a space where a name would grow together with it."""
    if not text:
        return " " if after_name and before_name else ""
    lead = " " if after_name and joins_name(text[0]) else ""
    return f"{lead}{text}{' ' if before_name and joins_name(text[-1]) else ''}"


def joins_name(sign: str) -> bool:
    """Whether a name and this neighbour would read as one word."""
    return sign.isalnum() or sign == "_"


def resolve_at_tags(markdown: str, resolve: AtTagResolver) -> str:
    """`markdown` with each at-tag replaced, apart from the words around it."""

    def replace(match: re.Match[str]) -> str:
        if match[1] is None:
            return ""
        people = _people(match[1], (match[2] or "").strip().removeprefix("@"), resolve)
        text, start, end = match.string, match.start(), match.end()
        before = " " if people and joins_name(text[start - 1 : start]) else ""
        after = " " if people and joins_name(text[end : end + 1]) else ""
        return f"{before}{people}{after}"

    return _TAG.sub(replace, markdown) if "<" in markdown else markdown


def _people(attributes: str, label: str, resolve: AtTagResolver) -> str:
    values = {
        match[1].lower(): match[2] or match[3] or (match[4] or "").rstrip("/")
        for match in _ATTRIBUTE.finditer(attributes)
    }
    keys, ids = _listed_values(values, _KEYS), _listed_values(values, _IDS)
    pairs = list(zip_longest(keys, ids, fillvalue="")) or [("", "")]
    return " ".join(resolve(key, one, label if len(pairs) == 1 else "") for key, one in pairs)


def _listed_values(values: dict[str, str], names: tuple[str, ...]) -> list[str]:
    value = next((values[name] for name in names if values.get(name)), "")
    return [one.strip() for one in value.split(",")] if value else []
