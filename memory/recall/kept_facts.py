"""Decides which facts that are kept in a group a new statement replaces. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memory.models import GroupFact
from memory.recall.changes import replaces
from memory.recall.stated_fact import StatedFact
from memory.recall.statements import statements
from memory.text import has_han


def replaced_facts(
    facts: Sequence[GroupFact], patch: Mapping[str, Any], *, statement: str, author: str
) -> tuple[str, ...]:
    """Returns the ids of those of `facts` that hold no more now that `author` has `patch` kept.

    `statement` are the author's own words. A fact of another person is replaced only if a word of
    change stands there (“moved to”, “now”, 改到), and never what people had kept about themselves.
    The same key is the same matter.
    """
    new = [*statements(statement), *_stated(patch)]
    changes = any(one.changes for one in statements(statement))
    return tuple(
        fact.id
        for fact in facts
        if fact.until is None and fact.may_be_replaced_by(author)
        if changes or fact.actor_id == author
        if _has_key(patch, fact.key)
        or any(_replaces(one, old, changes) for one in new for old in _of(fact))
    )


def _has_key(patch: Mapping[str, Any], key: str) -> bool:
    """Whether `patch` sets the key: people and models name a matter in other languages than the
    one in which it is told."""
    set_anew = {_plain(one) for one, value in patch.items() if value is not None}
    return _plain(key) in set_anew


def _plain(key: str) -> str:
    return key.replace("_", " ").casefold().strip()


def _replaces(new: StatedFact, old: StatedFact, changes: bool) -> bool:
    if new.personal or old.personal:
        return False
    return replaces(replace(new, changes=new.changes or changes), old)


def _of(fact: GroupFact) -> Iterator[StatedFact]:
    return _stated({fact.key: fact.value})


def _stated(facts: Mapping[str, Any]) -> Iterator[StatedFact]:
    """What facts state: the sentences of a value, or else what its key is said to be."""
    for key, value in facts.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        told_facts = list(statements(text)) if value is not None else []
        yield from told_facts or statements(_sentence(key.replace("_", " "), text))


def _sentence(key: str, value: str) -> str:
    return f"{key}是{value}" if has_han(key) else f"the {key} is {value}"
