"""What one clause states. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StatedFact:
    """What one clause states.

    `subject` are the words of what it is about, none if it points back (“no, it is now …”).
    `relation` is its verb and preposition, or how it
    changed (change, move, join, become, end, leave off). `kinds` are
    those of `value` (`memory.recall.kinds`). `changes`: a word says that this is new. `ends`: what
    was said before holds no more, and nothing takes its place.
    """

    subject: frozenset[str]
    relation: str
    value: str
    kinds: tuple[str, ...]
    changes: bool = False
    ends: bool = False
    personal: bool = False
