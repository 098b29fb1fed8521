"""A request without what its endpoint refuses. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import Any

from bot.agents.llm.model import Feature, Message, Request
from bot.agents.llm.request_messages import results_in_words

_UNSEEN = "[A picture came with this message. You cannot see pictures: say so.]"
_EARLIER = "[What was said before is not shown.]"
_LIMITS: tuple[Feature, ...] = ("max_completion_tokens", "max_tokens")
OPTIONS: frozenset[Feature] = frozenset((*_LIMITS, "stream_options", "temperature"))
"""What can be left out of any request."""
EARLIER_CALLS: frozenset[Feature] = frozenset(("unsigned_calls", "calls"))
"""What can be told in words."""


def fields_of(request: Request, lacks: Collection[Feature]) -> dict[str, Any]:
    """The fields of the body, without `model` and `tools`."""
    fields: dict[str, Any] = {"messages": adapted(request.messages, lacks)}
    if "stream" not in lacks or "whole" in lacks:
        fields["stream"] = True
        if "stream_options" not in lacks:
            fields["stream_options"] = {"include_usage": True}
    limit = next((name for name in _LIMITS if name not in lacks), None)
    if request.max_tokens is not None and limit:
        fields[limit] = request.max_tokens
    if request.temperature is not None and "temperature" not in lacks:
        fields["temperature"] = request.temperature
    return fields


def sent_features(request: Request, fields: dict[str, Any]) -> frozenset[Feature]:
    """What of a request an endpoint could refuse."""
    messages = fields["messages"]
    names: set[Any] = {name for name in fields if name != "messages"}
    names.add("stream" if "stream" in fields else "whole")
    if request.tools:
        names.add("tools")
    if any(message["role"] == "system" for message in messages):
        names.add("system")
    if any(isinstance(message.get("content"), list) for message in messages):
        names.add("images")
    roles = [message["role"] for message in messages if message["role"] != "system"]
    if roles[:1] == ["assistant"] or any(one == other for one, other in pairwise(roles)):
        names.add("turns")
    return frozenset(names)


def adapted(messages: Sequence[Message], lacks: Collection[Feature]) -> Sequence[Message]:
    """The same words in messages that the endpoint takes."""
    if not {"images", "system", "turns", *EARLIER_CALLS} & set(lacks):
        return messages
    found: Iterable[Message] = messages
    if EARLIER_CALLS & set(lacks):
        found = _without_calls(messages, signed_too="calls" in lacks)
    if "images" in lacks:
        found = map(_in_words, found)
    if "system" in lacks:
        found = ({**one, "role": "user"} if one["role"] == "system" else one for one in found)
    return _in_turns(found) if {"images", "system", "turns"} & set(lacks) else list(found)


def doubtful_calls(messages: Sequence[Message], lacks: Collection[Feature]) -> Feature | None:
    """Which earlier calls an endpoint may have refused for a reason that it does not tell: they
    lack its signature, or have one of another model, or an id that it does not take."""
    signed = [_is_signed(one) for one in messages if "tool_calls" in one]
    if "calls" in lacks or not signed:
        return None
    is_known = "unsigned_calls" in lacks or all(signed)
    return "unsigned_calls" if not is_known else "calls" if any(signed) else None


def _is_signed(message: Message) -> bool:
    """Whether a call of the message has fields of the endpoint's own."""
    return any(
        call.keys() - {"id", "type", "function"} or call["function"].keys() - {"name", "arguments"}
        for call in message["tool_calls"]
    )


def _without_calls(messages: Iterable[Message], *, signed_too: bool) -> Iterable[Message]:
    """The messages with calls and their results told in words."""
    waiting: dict[str, str] = {}
    results: list[tuple[str, str]] = []
    for message in messages:
        if (id := message.get("tool_call_id")) in waiting:
            results.append((waiting.pop(id), message["content"]))
            continue
        if results:
            yield results_in_words(results)
            results = []
        if "tool_calls" not in message or (_is_signed(message) and not signed_too):
            yield message
            continue
        functions = {call["id"]: call["function"] for call in message["tool_calls"]}
        waiting = {id: f"{one['name']} {one['arguments']}" for id, one in functions.items()}
        if content := message.get("content"):
            yield {"role": "assistant", "content": content}
    if results:
        yield results_in_words(results)


def _in_words(message: Message) -> Message:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    texts = [part["text"] for part in content if part["type"] == "text"]
    return {**message, "content": "\n\n".join([*texts, _UNSEEN])}


def _in_turns(messages: Iterable[Message]) -> list[Message]:
    """Neighbours of one role as one message, a person's first; calls and their results stay."""
    merged: list[Message] = []
    for message in messages:
        if message["role"] == "assistant" and all(one["role"] == "system" for one in merged):
            merged.append({"role": "user", "content": _EARLIER})
        last = merged[-1] if merged else {}
        if last.get("role") == message["role"] and _has_text_only(last, message):
            merged[-1] = {**last, "content": f"{last['content']}\n\n{message['content']}"}
        else:
            merged.append(message)
    return merged


def _has_text_only(*messages: Message) -> bool:
    return all(
        isinstance(one.get("content"), str) and not one.keys() & {"tool_calls", "tool_call_id"}
        for one in messages
    )
