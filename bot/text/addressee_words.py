"""Words that name the person who asks, or everybody in a chat. Pure."""

from __future__ import annotations

_ME = frozenset("me myself i asker 我 我自己 自己 本人".split())
_ALL = frozenset(
    "us everyone everybody all group team channel chat here "
    "我们 咱们 大家 所有人 全体 全员 群里 各位".split()
)


def means_asker(name: str) -> bool:
    return bare_name(name).casefold() in _ME


def means_everybody(name: str) -> bool:
    return bare_name(name).casefold() in _ALL


def bare_name(name: str) -> str:
    """The name without the sign of a mention."""
    return name.strip().lstrip("@").strip()
