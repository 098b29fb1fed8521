"""Which feature of a request an endpoint refuses, read from the status and text of its error. Pure.

Only the server's own words are read, never the request that some servers repeat in an error, so
that nobody can switch a feature off by writing such a sentence. tests/data/model_refusals.json has
a real message for each rule.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import cast, get_args

from bot.agents.llm.http_errors import words_of
from bot.agents.llm.model import Feature

# 403 from OpenAI before it has verified who streams; 500 and 501 from llama.cpp and its kin.
_STATUSES = (400, 403, 404, 422, 500, 501)
_NOT = r"(?:not support|n't support|不支持)"
_SAYS: dict[Feature, tuple[str, ...]] = {
    "max_tokens": (r"use '?max_completion_tokens'? instead",),
    "temperature": (r"invalid temperature: only",),
    "tools": (
        r"does not support function call|function call(?:ing)? is not (?:supported|enabled)",
        r"tool call(?:s|ing)?`? (?:is|are) not supported",
        r"tool choice requires --enable-auto-tool-choice|--tool-call-parser",
        r"tools param requires --jinja|error rendering prompt with jinja template",
        r"does not support tools?\b|no endpoints found that support tool",
        r"(?:doesn't|not) support (?:the )?(?:tools?|function)\b(?! ?choice)",
        r"不支持.{0,12}(?:工具|函数|\btools?\b|function)",
    ),
    "system": (
        r"'messages\[\d+\]\.role' does not support 'system'|system role (?:is )?not supported",
        rf"{_NOT}.{{0,12}}system (?:role|message|prompt)|developer instruction is not enabled",
        r"role must be in \[user, assistant\]",
    ),
    "turns": (
        r"does not support successive (?:user|assistant)|roles must alternate",
        r"should be alternating|should alternate with assistant",
    ),
    "images": (
        r"image_url is only supported by certain models|unknown variant `image_url`",
        r"do(?:es)? not support image|no endpoints found that support image",
        r"messages\.content\.type 参数非法|is not a multimodal model|at most 0 image",
        r"image input (?:is )?not supported|missing data required for image input",
        rf"{_NOT}.{{0,20}}(?:image|vision|图片|图像)",
    ),
    "whole": (r"only supports? stream mode|enable_thinking must be set to false for non-stream",),
    "stream_options": (r"stream_options",),
    "stream": (
        r"verified to stream this model|stream(?:ing)?\b.{0,30}\bnot supported",
        r"not support stream(?:ing)?\b",
    ),
}
# Sentences that name the fields they are about.
_NAMING = (
    r"un(?:supported|known) (?:parameter|value): '(\w+)",
    r"unrecognized request arguments? supplied: ([\w, ]+)",
    r"does not support (?:the parameter|this) `?(\w+)",
    r"the parameter `(\w+)[^`]*` specified in the request (?:is|are) not (?:valid|supported)",
    r"\('body', '(\w+)'\)|\b(\w+): extra inputs are not permitted|unsupported param: (\w+)",
    r"does not support parameters: (.{1,200})",
)
_FLAGS = re.IGNORECASE | re.DOTALL
_PATTERNS = [(re.compile("|".join(says), _FLAGS), feature) for feature, says in _SAYS.items()]
_NAMED = re.compile("|".join(_NAMING), _FLAGS)


def refused_feature(status: int, body: bytes, sent_features: Collection[Feature]) -> Feature | None:
    """Which of the features in `sent_features` an error refuses; None when it is about something
    else."""
    if status not in _STATUSES or not sent_features:
        return None
    return next((one for one in _refused(words_of(body)) if one in sent_features), None)


def _refused(words: str) -> Iterator[Feature]:
    for match in _NAMED.finditer(words):
        named_words = re.findall(r"\w+", " ".join(filter(None, match.groups())))
        # Without tools nothing is left to choose, so the wider feature counts.
        for name in sorted(set(named_words), key=lambda name: name != "tools"):
            if name in get_args(Feature):
                yield cast("Feature", name)
    yield from (feature for pattern, feature in _PATTERNS if pattern.search(words))
