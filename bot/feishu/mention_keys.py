"""The mentions of a message and the keys that stand for them in its content. Pure.

Only `mentions[]` says which keys a text holds: text may follow a key directly, so `@_user_19:00` is
either `@_user_19` and “:00” or `@_user_1` and “9:00”. Seen in production.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from bot.feishu.fields import as_dict, as_list, as_text

ALL_KEY = "@_all"
SOMEONE = "someone"

# Events may leave @all out of `mentions[]`, so its key counts without being listed.
_UNLISTED_ALL = re.escape(ALL_KEY) + r"(?![A-Za-z0-9_])"


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
    names = {ALL_KEY: "all"} | {
        mention.key: mention.name or SOMEONE for mention in mentions if mention.key != ALL_KEY
    }
    texts, rendered_names, end = [], [], 0
    for match in key_pattern(mentions).finditer(template):
        texts.append(template[end : match.start()])
        rendered_names.append(f"@{names[match.group()]}")
        end = match.end()
    texts.append(template[end:])
    spaced_texts = [
        _apart(text, after_name=number > 0, before_name=number < len(rendered_names))
        for number, text in enumerate(texts)
    ]
    return "".join(
        text + name for text, name in zip(spaced_texts, [*rendered_names, ""], strict=True)
    )


def _apart(text: str, *, after_name: bool, before_name: bool) -> str:
    """What stands between two names, with a space where a name would grow together with it."""
    if not text:
        return " " if after_name and before_name else ""
    lead = " " if after_name and is_joining(text[0]) else ""
    return f"{lead}{text}{' ' if before_name and is_joining(text[-1]) else ''}"


def is_joining(sign: str) -> bool:
    """Whether a name and this neighbour would read as one word."""
    return sign.isalnum() or sign == "_"
