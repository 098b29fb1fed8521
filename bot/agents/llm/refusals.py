"""What an endpoint refuses, read from the status and text of its error. Pure.

Only the server's own words are read, never the request that some servers repeat in an error, so
that nobody can switch a feature off by writing such a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, cast, get_args

from bot.agents.llm.refusal_table import REFUSALS, Feature, Refusal
from bot.text.lenient_json import loads

Sent = Callable[[], Collection[Feature]]

_LONGEST = 2000
_PATTERNS = tuple((re.compile(one.says, re.IGNORECASE | re.DOTALL), one) for one in REFUSALS)


def refused_feature(status: int, body: bytes, sent: Collection[Feature]) -> Feature | None:
    """Which of the features in `sent` an error refuses; None when it is about something else."""
    words = _words(body)
    for pattern, refusal in _PATTERNS:
        match = pattern.search(words) if status in refusal.statuses else None
        for feature in _features(refusal, match) if match else ():
            if feature in sent:
                return feature
    return None


def is_used_up(body: bytes) -> bool:
    """Whether an error says that the account may not ask any more (OpenAI, "Error codes")."""
    try:
        error = loads(body).get("error")
        return isinstance(error, dict) and error.get("code") == "insufficient_quota"
    except (ValueError, AttributeError):
        return False


def _features(refusal: Refusal, match: re.Match[str]) -> Iterator[Feature]:
    if refusal.feature:
        yield refusal.feature
        return
    named = " ".join(group for group in match.groups() if group)
    # Without tools nothing is left to choose, so the wider feature counts.
    found = sorted(set(re.findall(r"\w+", named)), key=lambda name: name != "tools")
    yield from (cast("Feature", name) for name in found if name in get_args(Feature))


def _words(body: bytes) -> str:
    """What the server itself says in an error, without what it repeats of the request."""
    try:
        told = loads(body)
    except ValueError:
        return body[:_LONGEST].decode("utf-8", "replace")
    return "\n".join(_said(told))[:_LONGEST]


def _said(told: Any) -> Iterator[str]:
    """The message where OpenAI, Ollama, LM Studio, FastAPI and OpenRouter put it."""
    if isinstance(told, str):
        yield told
    elif isinstance(told, list):
        yield from (text for one in told[:20] for text in _said(one))
    elif isinstance(told, Mapping):
        if isinstance(place := told.get("loc"), list):
            yield f"{'.'.join(map(str, place))}: {told.get('msg')}"
            return
        for key in ("message", "error", "detail", "msg", "metadata", "raw"):
            yield from _said(told.get(key))
