"""One response put together from what an endpoint sends, whole or in pieces. Pure.

Endpoints that call themselves compatible leave out indices and ids, repeat names, send arguments
as objects, think in fields of their own, and report errors inside an answer. The fields are those
of https://platform.openai.com/docs/api-reference/chat-streaming and, for thoughts, of DeepSeek,
Qwen, vLLM (`reasoning_content`) and OpenRouter (`reasoning`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bot.agents.llm.model import Declined, ModelFailed, Response, ToolCall
from bot.text.lenient_json import dumps, mended

_THOUGHTS = ("reasoning_content", "reasoning")
_TEXTS = ("text", "output_text")


@dataclass(slots=True)
class _PartialCall:
    """A tool call as far as it has come."""

    index: object
    id: str = ""
    name: str = ""
    arguments: str = ""


class ResponseAssembly:
    """Takes the chunks of a stream, or one whole completion, and gives the response.

    `complete`: its end was told, what comes after it no longer matters. `is_completion`: some of it
    had the form of one. `pieces` counts what the model has sent, thoughts and calls too.
    """

    def __init__(self) -> None:
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._thoughts: dict[str, list[str]] = {}
        self._calls: list[_PartialCall] = []
        self._usage: Mapping[str, Any] = {}
        self._finish = ""
        self.is_completion = False
        self.complete = False
        self.pieces = 0

    @property
    def calls(self) -> bool:
        """Whether a call has begun."""
        return bool(self._calls)

    @property
    def text(self) -> str:
        """What was said so far."""
        if len(self._text) > 1:
            self._text = ["".join(self._text)]
        return self._text[0] if self._text else ""

    def add(self, sent: Any) -> None:
        """A chunk or a completion. Raises `ModelFailed` when it is neither, or an error."""
        if not isinstance(sent, dict):
            raise ModelFailed("no_completion")
        if sent.get("error"):
            raise ModelFailed("provider_error")
        if isinstance(usage := sent.get("usage"), dict):
            self._usage = usage
        self.is_completion = self.is_completion or isinstance(sent.get("choices"), list)
        for choice in _dicts(sent.get("choices"))[:1]:
            if choice.get("error") or choice.get("finish_reason") == "error":
                raise ModelFailed("provider_error")
            self._finish = _str(choice.get("finish_reason")) or self._finish
            if isinstance(delta := choice.get("delta"), dict) and delta:
                self._add(delta, whole=False)
            elif isinstance(message := choice.get("message"), dict):
                self._add(message, whole=True)
            self.complete = self.complete or bool(self._finish)

    def broken_off(self, why: Literal["time", "connection"]) -> Response:
        """What was said before it broke off."""
        return Response(
            text=mended(self.text),
            input_tokens=self._tokens("prompt_tokens"),
            output_tokens=self._tokens("completion_tokens"),
            broken=why,
        )

    def response(self) -> Response:
        """All of it. Raises `Declined`."""
        refusal = mended("".join(self._refusal)).strip()
        if refusal or self._finish == "content_filter":
            raise Declined(refusal)
        return Response(
            text=mended(self.text),
            calls=tuple(self._complete_calls()),
            input_tokens=self._tokens("prompt_tokens"),
            output_tokens=self._tokens("completion_tokens"),
            cut_off=self._finish == "length",
            thoughts={field: mended("".join(parts)) for field, parts in self._thoughts.items()},
        )

    def _add(self, message: Mapping[str, Any], *, whole: bool) -> None:
        if text := _said(message.get("content")):
            self._text.append(text)
            self.pieces += 1
        if refusal := _str(message.get("refusal")):
            self._refusal.append(refusal)
        for field in _THOUGHTS:
            if thought := _str(message.get(field)):
                self._thoughts.setdefault(field, []).append(thought)
                self.pieces += 1
        if calls := _dicts(message.get("tool_calls")):
            self.pieces += 1
            apart = whole or len(calls) > 1  # calls that stand beside one another are not one
            for place, call in enumerate(calls):
                self._add_call(call, place if apart else None)

    def _add_call(self, piece: Mapping[str, Any], place: int | None) -> None:
        function = piece.get("function")
        told: Mapping[str, Any] = function if isinstance(function, dict) else {}
        id, name, index = _str(piece.get("id")), _str(told.get("name")), piece.get("index", place)
        call = self._continued(index, id, name)
        if call is None:
            call = _PartialCall(index)
            self._calls.append(call)
        call.id = call.id or id
        if not call.arguments:  # a name that comes again with the arguments is only repeated
            call.name = _joined(call.name, name)
        call.arguments += _arguments(told.get("arguments"))

    def _continued(self, index: object, id: str, name: str) -> _PartialCall | None:
        """The call that a piece goes on with; None begins another.

        The index decides, where there is one and it is not the same for calls of different names
        and ids. Without an index an id does, and a piece with neither goes on with the last call.
        """
        if index is None:
            if id:
                return next((call for call in self._calls if call.id == id), None)
            last = self._calls[-1] if self._calls else None
            return None if last and name and last.arguments else last
        found = next((one for one in reversed(self._calls) if one.index == index), None)
        another = found and id and found.id and id != found.id and name
        return None if another else found

    def _complete_calls(self) -> Iterator[ToolCall]:
        taken: set[str] = set()
        for number, call in enumerate(self._calls):
            id = call.id if call.id and call.id not in taken else f"call_{number}"
            taken.add(id)
            yield ToolCall(id, mended(call.name), mended(call.arguments))

    def _tokens(self, name: str) -> int:
        count = self._usage.get(name)
        return count if isinstance(count, int) else 0


def _joined(name: str, piece: str) -> str:
    """A name that comes in pieces, again and again, or growing."""
    return piece if piece.startswith(name) else name if name == piece else name + piece


def _arguments(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return dumps(value).decode()


def _said(content: Any) -> str:
    """Text, also where it comes as a list of parts; parts that are no text are left out."""
    if isinstance(content, list):
        parts = (part for part in _dicts(content) if part.get("type", "text") in _TEXTS)
        return "".join(_str(part.get("text")) for part in parts)
    return _str(content)


def _dicts(values: Any) -> list[dict[str, Any]]:
    given: Iterable[Any] = values if isinstance(values, list) else ()
    return [one for one in given if isinstance(one, dict)]


def _str(value: Any) -> str:
    return value if isinstance(value, str) else ""
