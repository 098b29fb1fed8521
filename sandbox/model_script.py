"""What the stand-in model answers: scripts, rules and the shapes of Chat Completions. Pure.

A reply is a JSON object, every field optional:

    text, reasoning      what the model says and thinks; `{{name}}` is filled from the rule's
                         regex groups (`{{1}}`, `{{note_id}}`) and `{{last_user}}`
    tool_calls           [{"name": …, "arguments": {…} or a JSON string, "id": …}]
    delay_s              seconds before the first byte
    chunk_delay_s        seconds between the chunks of a stream
    finish_reason, usage override what would be derived
    status, body         an error answer; body is JSON, or text that is sent as it is
    retry_after          value of the Retry-After header
    fault                "hang" (no answer at all), "cut" (connection closed in mid-body) or
                         "malformed" (200 with broken JSON)

A rule is {"when": [condition, …], "reply": reply, "times": n}. All conditions must hold; no
condition always holds. A condition is {"contains": text} or {"regex": pattern}, with
"in": "last_user" (default), "system", "last" (the newest message, whatever its role) or "prompt"
(all messages, one per line as `role: text`). A rule that calls tools does not match right after a
tool result unless it says "after_tool": true; "after_tool": true matches only then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Mode = Literal["echo", "script", "rules"]
Fault = Literal["hang", "cut", "malformed"]
Body = Mapping[str, Any]

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_STREAM_PIECE = re.compile(r".{1,12}", re.DOTALL)


class BadScript(ValueError):
    """The script is not in the described form."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """`arguments` is a JSON string, as on the wire; `id` is made up when empty."""

    name: str
    arguments: str = "{}"
    id: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer; the fields are described at the top of this module."""

    text: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    delay_s: float | None = None
    chunk_delay_s: float = 0.0
    finish_reason: str | None = None
    usage: Body | None = None
    status: int = 200
    body: Any = None
    retry_after: str | None = None
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """A regular expression that has to be found in one part of the request."""

    pattern: re.Pattern[str]
    where: str


@dataclass(slots=True)
class Rule:
    """A reply and when it is given; `times` counts down to 0, None is without limit."""

    when: tuple[Condition, ...]
    reply: Reply
    after_tool: bool | None = None
    times: int | None = None
