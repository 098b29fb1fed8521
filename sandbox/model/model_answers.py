"""Replies as the Chat Completions API sends them, whole and in chunks. Pure.

Source: OpenAI API reference, Chat Completions; `reasoning_content` as DeepSeek and Qwen send it.
Token counts are a quarter of the bytes: they only have to be plausible and repeatable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.model.model_script import ScriptedReply

_PIECE = re.compile(r".{1,12}", re.DOTALL)


def pieces(text: str | None) -> list[str]:
    """A text as a stream brings it."""
    return _PIECE.findall(text or "")


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A reply to request `number` (from 1) of `prompt_bytes` for `model` at `created` (s)."""

    reply: ScriptedReply
    number: int
    model: str
    prompt_bytes: int
    created: int

    def completion(self) -> dict[str, Any]:
        """The body of an answer that is not streamed."""
        message: dict[str, Any] = {"role": "assistant", "content": self.reply.text}
        if self.reply.reasoning is not None:
            message["reasoning_content"] = self.reply.reasoning
        if self.reply.tool_calls:
            message["tool_calls"] = self._tool_calls()
        choice = {"index": 0, "message": message, "finish_reason": self._finish_reason()}
        return self._object("chat.completion", [choice]) | {"usage": self._usage()}

    def chunks(self, *, include_usage: bool) -> Iterator[dict[str, Any]]:
        """The objects of a stream: role, thinking, text, tool calls, finish reason, usage."""
        yield self._delta({"role": "assistant", "content": ""})
        for piece in pieces(self.reply.reasoning):
            yield self._delta({"reasoning_content": piece})
        for piece in pieces(self.reply.text):
            yield self._delta({"content": piece})
        for index, call in enumerate(self._tool_calls()):
            yield from self._tool_call_deltas(index, call)
        yield self._delta({}, self._finish_reason())
        if include_usage:
            yield self._object("chat.completion.chunk", []) | {"usage": self._usage()}

    def _tool_call_deltas(self, index: int, call: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        function = {"name": call["function"]["name"], "arguments": ""}
        yield self._delta({"tool_calls": [{"index": index, **call, "function": function}]})
        for piece in _PIECE.findall(call["function"]["arguments"]):
            yield self._delta({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})

    def _delta(self, delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return self._object("chat.completion.chunk", [choice])

    def _object(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.number}",
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        }

    def _tool_calls(self) -> list[dict[str, Any]]:
        return [
            {
                **{key: value for key, value in call.items() if key not in ("name", "arguments")},
                "id": call.get("id") or f"call_{self.number}_{index}",
                "type": "function",
                "function": {"name": call["name"], "arguments": _arguments(call)},
            }
            for index, call in enumerate(self.reply.tool_calls)
        ]

    def _finish_reason(self) -> str:
        derived = "tool_calls" if self.reply.tool_calls else "stop"
        return self.reply.finish_reason or derived

    def _usage(self) -> dict[str, Any]:
        said = (self.reply.text or "") + "".join(map(_arguments, self.reply.tool_calls))
        thought = _tokens(self.reply.reasoning or "")
        usage = {
            "prompt_tokens": max(1, self.prompt_bytes // 4),
            "completion_tokens": max(1, _tokens(said) + thought),
            "completion_tokens_details": {"reasoning_tokens": thought},
            **(self.reply.usage or {}),
        }
        return {"total_tokens": usage["prompt_tokens"] + usage["completion_tokens"], **usage}


def error_body(reply: ScriptedReply) -> bytes:
    """The body of an answer with an error status."""
    if isinstance(reply.body, str):
        return reply.body.encode(errors="replace")
    message = f"the script asks for status {reply.status}"
    default = {"error": {"message": message, "type": "sandbox", "param": None, "code": None}}
    return to_json(default if reply.body is None else reply.body)


def to_json(value: object) -> bytes:
    """`value` as compact JSON, in ASCII because echoed text may hold lone surrogates."""
    return json.dumps(value, separators=(",", ":")).encode()


def _arguments(call: Mapping[str, Any]) -> str:
    arguments = call.get("arguments", {})
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _tokens(text: str) -> int:
    return (len(text.encode(errors="replace")) + 3) // 4
