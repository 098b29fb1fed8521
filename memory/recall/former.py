"""What facts said before they changed, told where a question asks for it. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from memory.models import Former
from memory.recall.passages import content_words
from memory.recall.reading import Recalled, snippet, when

_ASKED = re.compile(
    r"以前|之前|原[来先本]|先前|从前|曾经?|过去|最初|起初|一开始|旧的?|改[过前]|变更前|[上前]一个"
    r"|\b(?:before|previous(?:ly)?|former(?:ly)?|earlier|used\s+to|originally|old|prior|initial(?:ly)?"
    r"|at\s+first|in\s+the\s+past|changed?)\b"
    r"|\bwas\b[^?\n]{0,40}\boriginal\b",
    re.IGNORECASE,
)
_MOST = 5
_VALUE_LENGTH = 300


def asks_for_former(question: str) -> bool:
    """Whether `question` asks how things were before they changed."""
    return _ASKED.search(question) is not None


def with_former(
    recall: Recalled, former: Sequence[Former], *, question: str, subject: str, now: datetime
) -> Recalled:
    """`recall` with a line in front for each of the values that facts about `subject` had before,
    five at most: first those that share words with `question`, then the last replaced."""
    words = content_words(question)

    def shared(one: Former) -> int:
        return len(words & content_words(f"{one.key.replace('_', ' ')} {_text(one.value)}"))

    best = sorted(former, key=shared, reverse=True)[:_MOST]
    lines = [_line(one, subject, now) for one in sorted(best, key=lambda one: one.until)]
    text = "\n".join(filter(None, (*lines, recall.text)))
    return replace(recall, text=text, worth=(math.inf,) * len(lines) + recall.worth)


def _line(one: Former, subject: str, now: datetime) -> str:
    span = f"{when(one.since, now)} · " if one.since else ""
    fact_text = snippet(f"{one.key}: {_text(one.value)}", _VALUE_LENGTH)
    return (
        f"[{span}earlier, until {when(one.until, now)}] kept of {snippet(subject, 60)}: {fact_text}"
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
