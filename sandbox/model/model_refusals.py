"""What the stand-in model is told to refuse, as servers do that lack a feature. Pure.

A refusal is {"feature": name, "status": n, "body": …}. It answers every request that has the
feature: a field of that name, or

    whole     no streaming is asked for
    system    a message of that role
    turns     two messages of one role in a row
    images    a message with a picture
    unsigned  a call without the signature that it came with (`extra_content`), as Gemini refuses it
    long_ids  a call whose id is not nine letters or digits, as Mistral refuses it
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from sandbox.model.model_script import ScriptedReply

_NINE = re.compile(r"[A-Za-z0-9]{9}")


class Refusals:
    """The first that fits answers."""

    def __init__(self, refusals: Sequence[Mapping[str, Any]] = ()) -> None:
        self._refusals = refusals

    def reply_to(self, request: Mapping[str, Any]) -> ScriptedReply | None:
        """The refusal of `request`; None when it has nothing that is refused."""
        for one in self._refusals:
            if _has(request, one["feature"]):
                return ScriptedReply(status=one.get("status", 400), body=one.get("body", {}))
        return None


def _has(request: Mapping[str, Any], feature: str) -> bool:
    messages = request["messages"]
    match feature:
        case "whole":
            return not request.get("stream")
        case "system":
            return any(message["role"] == "system" for message in messages)
        case "turns":
            roles = [message["role"] for message in messages]
            return any(one == other for one, other in pairwise(roles))
        case "images":
            return any(isinstance(message.get("content"), list) for message in messages)
        case "unsigned":
            return not all(call.get("extra_content") for call in _calls(messages))
        case "long_ids":
            return not all(_NINE.fullmatch(call.get("id", "")) for call in _calls(messages))
        case _:
            return bool(request.get(feature))


def _calls(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [call for message in messages for call in message.get("tool_calls") or ()]
