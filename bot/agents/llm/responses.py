"""Assembles one response from what an endpoint sends, whole or in pieces. Pure.

Endpoints that call themselves compatible leave out indices and ids, repeat names, send arguments
as objects, think in fields of their own, and report errors inside an answer. Some send everything
once more at the end, or with each piece, or a placeholder before the real arguments. The fields are
those of https://platform.openai.com/docs/api-reference/chat-streaming and, for thoughts, of
DeepSeek, Qwen, vLLM (`reasoning_content`) and OpenRouter (`reasoning`)."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bot.agents.llm.http_responses import MOST_TEXT, SURE, RestartSigns, StreamedText, json_values
from bot.agents.llm.model import Declined, ModelFailed, Response
from bot.agents.model_text.cleaner import after_thoughts
from bot.agents.tool_types import ToolCall
from bot.text.json_text import dump_json, mend_characters

# Fields of a message that belong to its calls: thoughts, reasoning_details (OpenRouter),
# extra_content (Gemini), thinking_blocks (LiteLLM) and their like.
_BELONGS = re.compile(r"reason|think|thought|signature|encrypted|extra_content|provider_specific")
_CALL_FIELDS = ("index", "id", "type", "function")
_GROWING = ("text", "thinking", "summary", "content")  # of a thought that comes in pieces
_TEXTS = ("text", "output_text")
_PIECE = "chat.completion.chunk"
_CONTENT = "content"
# How an answer ends in the words of DeepSeek, Zhipu, vLLM, Gemini, Mistral and others.
_FAILED = ("error", "insufficient_system_resource", "network_error", "abort")
_FILTERED = ("content_filter", "sensitive", "safety", "prohibited_content", "blocklist", "refusal")
_AT_LIMIT = ("length", "max_tokens", "max_output_tokens", "model_length", "repetition_truncation",
             "model_context_window_exceeded")  # fmt: skip
_WRAPPERS = ("data", "result", "response")  # of gateways that have a code of their own

_numbers = itertools.count(1)


@dataclass(slots=True)
class _PartialCall:
    """A tool call as far as it has come."""

    index: object
    id: str = ""
    name: str = ""
    arguments: StreamedText = field(default_factory=StreamedText)
    extra: dict[str, Any] = field(default_factory=dict)


class ResponseAssembly:
    """Takes the chunks of a stream, or one whole completion, and gives the response.

    `complete`: its end was told, what comes after it no longer matters. `is_completion`: some of it
    had the form of one. `pieces` counts what the model has sent, thoughts and calls too.
    """

    def __init__(self) -> None:
        self._text, self._late = StreamedText(), StreamedText()
        self._refusal = StreamedText()
        self._thoughts: dict[str, StreamedText] = {}
        self._extra: dict[str, Any] = {}
        self._calls: list[_PartialCall] = []
        self._usage: Mapping[str, Any] = {}
        self._finish = ""
        self._signs = RestartSigns()
        self.is_completion = False
        self.complete = False
        self.pieces = 0

    @property
    def calls(self) -> bool:
        """True if a call has begun."""
        return bool(self._calls)

    @property
    def text(self) -> str:
        """Returns the text so far. Text after the end counts unless it repeats the beginning."""
        text = str(self._text)
        if self.complete and not text.startswith(late := str(self._late)):
            text += late
        return text[:MOST_TEXT]

    def add(self, event: Any) -> None:
        """A chunk or a completion. Raises `ModelFailed` when it is neither, or an error."""
        if not isinstance(event, dict):
            raise ModelFailed("no_completion")
        if event.get("error"):
            raise ModelFailed("provider_error")
        if isinstance(usage := event.get("usage"), dict):
            self._usage = usage
        choices = event.get("choices")
        if not isinstance(choices, list):
            inner = next((one for one in map(event.get, _WRAPPERS) if isinstance(one, dict)), {})
            if isinstance(inner.get("choices"), list):
                self.add(inner)
            return
        self.is_completion = True
        for choice in choices:
            if not isinstance(choice, dict):
                continue
            finish = _str(choice.get("finish_reason")).lower()
            if choice.get("error") or finish in _FAILED:
                raise ModelFailed("provider_error")
            is_piece = event.get("object") == _PIECE or not (finish or self.complete)
            delta, message = choice.get("delta"), choice.get("message")
            if isinstance(message, dict) and not (is_piece and delta):
                self._add(message, instead=not is_piece, whole=True)
            elif isinstance(delta, dict):
                id = _str(event.get("id"))
                if self._signs.begins_again(id, has_role=bool(delta.get("role"))):
                    self._mark_restart()
                self._add(delta)
            self._finish = finish or self._finish
            self.complete = self.complete or bool(self._finish) or self._text.is_full
            return

    def broken_off(self, why: Literal["time", "connection"]) -> Response:
        """Returns what was said before it broke off."""
        return Response(
            text=mend_characters(self.text),
            input_tokens=self._tokens("prompt_tokens"),
            output_tokens=self._tokens("completion_tokens"),
            break_reason=why,
        )

    def response(self) -> Response:
        """Returns the whole response. Raises `Declined`."""
        refusal = mend_characters(str(self._refusal)).strip()
        if refusal or self._finish in _FILTERED:
            raise Declined(refusal)
        text, calls = self.text, tuple(self._complete_calls())
        if not (calls or text.strip()):
            text = next(filter(None, map(after_thoughts, self._thought_texts())), text)
        return Response(
            text=mend_characters(text),
            calls=calls,
            input_tokens=self._tokens("prompt_tokens"),
            output_tokens=self._tokens("completion_tokens"),
            cut_off=self._finish in _AT_LIMIT or len(text) >= MOST_TEXT,
            thoughts={
                **self._extra,
                **{name: mend_characters(str(thought)) for name, thought in self._thoughts.items()},
                **self._thoughtful_content(text),
            },
        )

    def _add(
        self, message: Mapping[str, Any], *, instead: bool = False, whole: bool = False
    ) -> None:
        """Adds a piece, or takes what is in `message` `instead` of what came before."""
        content = message.get("content")
        if text := content if isinstance(content, str) else _stated_text(content):
            if instead:
                self._late = StreamedText()
            if self.complete and not instead:
                self._late = self._add_piece(self._late, text)
            else:
                self._text = self._add_piece(self._text, text, instead=instead)
        if thoughts := _thought_parts(content):
            self.pieces += 1
            before = None if instead else self._extra.get(_CONTENT)
            self._extra[_CONTENT] = _extend_field(before, thoughts)
        if (refusal := message.get("refusal")) and isinstance(refusal, str):
            self._refusal = self._add_piece(self._refusal, refusal, instead=instead)
        for name, value in message.items():
            if not value or not _BELONGS.search(name):
                continue
            if not isinstance(value, str):
                self._extra[name] = (
                    value if instead else _extend_field(self._extra.get(name), value)
                )
            else:
                before = self._thoughts.get(name) or StreamedText()
                self._thoughts[name] = self._add_piece(before, value, instead=instead)
        if calls := _dicts(message.get("tool_calls")) or _older_call(message):
            self.pieces += 1
            earlier = self._calls
            if instead:
                self._calls = []
            is_separate = whole or len(calls) > 1  # calls that stand beside one another are not one
            for place, call in enumerate(calls):
                self._add_call(call, place if is_separate else None, is_beside=place > 0)
            if instead:
                self._keep_signatures(earlier)

    def _add_piece(
        self, before: StreamedText, piece: str, *, instead: bool = False
    ) -> StreamedText:
        self.pieces += 1
        if instead:
            before = StreamedText()
        before.add(piece)
        return before

    def _mark_restart(self) -> None:
        arguments = (call.arguments for call in self._calls)
        for text in (self._text, *self._thoughts.values(), *arguments):
            text.mark_restart()

    def _keep_signatures(self, before: list[_PartialCall]) -> None:
        """Gives the calls of a repetition what the same calls carried `before`."""
        for place, call in enumerate(self._calls):
            same = next((one for one in before if call.id and one.id == call.id), None)
            if same is None and place < len(before) and before[place].name == call.name:
                same = before[place]
            if same is not None:
                call.extra = _extend_field(same.extra, call.extra)

    def _add_call(self, piece: Mapping[str, Any], place: int | None, *, is_beside: bool) -> None:
        function = piece.get("function")
        function_fields: Mapping[str, Any] = function if isinstance(function, dict) else {}
        id, name, index = (
            _str(piece.get("id")),
            _str(function_fields.get("name")),
            piece.get("index", place),
        )
        call = self._open_call(index, id, name, is_beside=is_beside)
        if call is None:
            call = _PartialCall(index)
            self._calls.append(call)
        call.id = call.id or id
        extra = {key: value for key, value in piece.items() if key not in _CALL_FIELDS and value}
        if own := {
            k: v for k, v in function_fields.items() if k not in ("name", "arguments") and v
        }:
            extra["function"] = own
        call.extra = _extend_field(call.extra, extra)
        if not str(call.arguments):  # a name that comes again with the arguments is only repeated
            call.name = _join_piece(call.name, name)
        if arguments := _arguments(function_fields.get("arguments")):
            call.arguments.add(arguments)

    def _open_call(
        self, index: object, id: str, name: str, *, is_beside: bool
    ) -> _PartialCall | None:
        """The call that a piece goes on with; None begins another.

        The index decides, where there is one and it is not the same for calls of different names
        and ids (Gemini counts none of them). Without an index an id does, and a piece with neither
        goes on with the last call. `is_beside`: another call stands before it in the same chunk.
        """
        if index is None:
            if id:
                return next((call for call in self._calls if call.id == id), None)
            last = self._calls[-1] if self._calls else None
            return None if last and name and str(last.arguments) else last
        open_call = next((one for one in reversed(self._calls) if one.index == index), None)
        if open_call is None and not (id or name) and self._calls and self._calls[-1].index is None:
            return self._calls[-1]  # counted from its second piece on
        if open_call is None or not name:
            return open_call
        if id and open_call.id:
            return open_call if id == open_call.id else None
        has_ended = bool(_object(str(open_call.arguments))) or str(open_call.arguments) == "{}"
        return None if has_ended and (is_beside or name != open_call.name) else open_call

    def _complete_calls(self) -> Iterator[ToolCall]:
        """Each call once: one that comes again without an id of its own is a repetition."""
        taken_ids: set[str] = set()
        seen_calls: set[tuple[str, str]] = set()
        for call in filter(self._is_last_attempt, self._calls):
            name, arguments = (
                mend_characters(call.name),
                mend_characters(_without_repetition(call.arguments)),
            )
            has_own_id = call.id and call.id not in taken_ids
            if not has_own_id and (name, arguments) in seen_calls:
                continue
            seen_calls.add((name, arguments))
            id = call.id if has_own_id else _new_id()
            taken_ids.add(id)
            yield ToolCall(id, name, arguments, call.extra)

    def _is_last_attempt(self, call: _PartialCall) -> bool:
        """False if the same call follows whole, because its arguments broke off."""
        if _object(str(call.arguments)):
            return True
        later = self._calls[self._calls.index(call) + 1 :]
        same = (one for one in later if (one.index, one.name) == (call.index, call.name))
        return not any(_object(str(one.arguments)) for one in same)

    def _thoughtful_content(self, text: str) -> dict[str, Any]:
        """The content as parts, where thoughts are among them (Mistral)."""
        if not (thoughts := self._extra.get(_CONTENT)):
            return {}
        return {_CONTENT: [*thoughts, *([{"type": "text", "text": text}] if text else [])]}

    def _thought_texts(self) -> Iterator[str]:
        yield from map(str, self._thoughts.values())
        for parts in map(_dicts, self._extra.values()):
            yield "".join(
                _str(part.get("text")) or _stated_text(part.get("thinking")) for part in parts
            )

    def _tokens(self, name: str) -> int:
        count = self._usage.get(name)
        return count if isinstance(count, int) else 0


def _extend_field(before: Any, value: Any) -> Any:
    """A field that may come in several pieces: lists go on, and objects gain fields and text. What
    is empty takes nothing away, and all else is replaced."""
    if isinstance(before, list) and isinstance(value, list):
        return functools.reduce(_with_part, value, before)
    if not (isinstance(before, dict) and isinstance(value, dict)):
        return value or before
    merged_fields = {
        **before,
        **{key: _extend_field(before.get(key), one) for key, one in value.items()},
    }
    grown_texts = {
        key: before[key] + value[key]
        for key in _GROWING
        if isinstance(before.get(key), str) and isinstance(value.get(key), str)
        if before[key] != value[key] or len(value[key]) < SURE
    }
    return {**merged_fields, **grown_texts}


def _with_part(parts: list[Any], part: Any) -> list[Any]:
    """`parts` with one more. It goes on with the last one where both are pieces of one thought: an
    endpoint wants a thought back whole, together with its signature."""
    last = parts[-1] if parts else None
    if not (isinstance(last, dict) and isinstance(part, dict)):
        return parts if part in parts else [*parts, part]
    is_same = all(last.get(mark) == part.get(mark) for mark in ("type", "index"))
    has_ended = any(last.get(mark) for mark in ("signature", "data", "closed")) or part.get("data")
    is_piece = any(key in part for key in (*_GROWING, "signature"))
    if is_same and is_piece and not has_ended:
        return [*parts[:-1], _extend_field(last, part)]
    return parts if part in parts else [*parts, part]


def _older_call(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The call in the form that came before `tool_calls`."""
    function = message.get("function_call")
    return [{"index": 0, "function": function}] if isinstance(function, dict) else []


def _new_id() -> str:
    """An id for a call without one: nine letters and digits, which every endpoint takes."""
    return f"c{next(_numbers) % 10**8:08d}"


def _join_piece(name: str, piece: str) -> str:
    """A name that comes in pieces, again and again, or growing."""
    return piece if piece.startswith(name) else name if name == piece else name + piece


def _without_repetition(arguments: StreamedText) -> str:
    """The arguments without placeholders and repetitions around them."""
    arguments_text = str(arguments)
    try:
        values = json_values(arguments_text)
    except ValueError:
        parts = (arguments.last, arguments_text[arguments_text.find("{") :])
        return next((part for part in parts if _object(part)), arguments_text)
    if len(values) == 1:
        return arguments_text
    objects = [one for one in map(_object, values) if one]
    for fullest in [*objects, {}]:
        if all(_holds(fullest, one) for one in objects):
            return dump_json(fullest).decode()
    return arguments_text


def _holds(arguments: dict[str, Any], others: dict[str, Any]) -> bool:
    """True if `arguments` have all that `others` say."""
    return all(
        value in (None, "", [], {}) or arguments.get(key) == value for key, value in others.items()
    )


def _object(value: Any) -> dict[str, Any]:
    """The object that `value` is, or has as its JSON; {} otherwise."""
    if isinstance(value, str):
        try:
            [value] = json_values(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def _arguments(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return dump_json(value).decode()


def _stated_text(content: Any) -> str:
    """Text, also where it comes as parts; parts that are no text are left out."""
    if isinstance(content, list | dict):
        parts = (part for part in _dicts(content) if part.get("type", "text") in _TEXTS)
        return "".join(_str(part.get("text")) for part in parts)
    return _str(content)


def _thought_parts(content: Any) -> list[dict[str, Any]]:
    """The parts of a content that are thoughts."""
    return [part for part in _dicts(content) if _BELONGS.search(_str(part.get("type")))]


def _dicts(values: Any) -> list[dict[str, Any]]:
    """The objects of a list, or the only one that there is."""
    if isinstance(values, dict):
        return [values]
    items: Iterable[Any] = values if isinstance(values, list) else ()
    return [one for one in items if isinstance(one, dict)]


def _str(value: Any) -> str:
    return value if isinstance(value, str) else ""
