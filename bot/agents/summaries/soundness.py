"""Whether a summary that a model wrote can stand in for what it summarises. Pure.

Small models copy their instructions, change the subject, or drop what was kept so far. The test is
by words, so it cannot tell a wrong sentence from a right one, but it is the same for every model.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory.recall.passages import content_words
from memory.summary.text import Line

_MOST_NEEDED = 3  # words in common with a long source
_OF_SOURCE = 0.05  # of its words, where it is short
_OF_SUMMARY = 0.4  # of its words that stand in the source
_OF_EARLIER = 0.3  # of the words so far that are kept


def is_sound(summary: str, earlier: str, lines: Sequence[Line]) -> bool:
    """Whether `summary` speaks of the messages, and keeps what `earlier`, the one before, held."""
    words, before = content_words(summary), content_words(earlier)
    source = before | content_words("\n".join(f"{line.author} {line.text}" for line in lines))
    shared_words = len(words & source)
    needed_words = max(1, min(_MOST_NEEDED, _OF_SOURCE * len(source)), _OF_SUMMARY * len(words))
    return shared_words >= needed_words and len(words & before) >= _OF_EARLIER * len(before)
