"""The facts kept in the working memory, as the offline model finds them in its prompt. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bot.agents.offline.evidence import words
from bot.agents.offline.prompt_reading import held


def kept_texts(instructions: str) -> list[str]:
    return list(_texts(held(instructions)))


def key_of(about: str, instructions: str) -> str:
    """The key of the fact that shares most words with `about`, the last one of equals; or ""."""
    wanted_words, best, most = words(about), "", 0
    for name, value in held(instructions).items():
        shared_count = len(wanted_words & _words_of(name, value))
        if shared_count and shared_count >= most:
            best, most = name, shared_count
    return best


def is_named(about: str, instructions: str) -> bool:
    """Whether the fact that `key_of` finds has every word of `about`."""
    name = key_of(about, instructions)
    return bool(name) and words(about) <= _words_of(name, held(instructions).get(name))


def _words_of(name: str, value: Any) -> set[str]:
    return words(f"{name.replace('_', ' ')} {' '.join(_texts(value))}")


def _texts(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for name, item in value.items():
                # a bare value says little without the key it stands under
                yield from (f"{name}: {item}",) if _is_short(item) else _texts(item)
        case list():
            for item in value:
                yield from _texts(item)
        case str() | int() | float():
            yield str(value)


def _is_short(item: Any) -> bool:
    return isinstance(item, int | float) or (isinstance(item, str) and len(item.split()) <= 2)
