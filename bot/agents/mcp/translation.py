"""Translates the names and results of MCP tools into what model endpoints accept. Pure.

Source: https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bot.agents.tool_types import ToolFailed
from bot.text.json_text import load_json

if TYPE_CHECKING:
    from mcp_types import CallToolResult

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64  # OpenAI, function names
_HASH = 8
_LONGEST = 24_000  # characters
RESULT_FIELDS = {"content", "structuredContent", "isError", "toolResult"}
_OF_PROTOCOL = RESULT_FIELDS | {"_meta", "resultType"}
_WRAPPED = "result"
_INTERNAL_ERROR = -32603  # JSON-RPC 2.0, error codes
_NO_ANSWER = "it gave neither a result nor an error"
_LINK_TEXTS = ("name", "title", "description")
_TEXT_KINDS = re.compile(r"^text/|\b(?:json|xml|yaml|csv)\b")


def public_names(server: str, tools: Sequence[str]) -> dict[str, str]:
    """The tools by their names for models, who take 64 letters, digits, - and _ only. Names that
    would become equal are told apart by a hash of the original, so that no tool is called in place
    of another; also where a tool is called like another with its hash."""
    hashed = {
        name: tool for tool in tools if (name := _public_name(server, tool)) != f"{server}__{tool}"
    }
    names: dict[str, str] = {}
    for tool in tools:
        name = _public_name(server, tool)
        if hashed.get(name, tool) != tool:
            name = _hashed_name(name, tool)
        names.setdefault(name, tool)
    return names


def _public_name(server: str, tool: str) -> str:
    full = f"{server}__{tool}"
    fit = _NOT_IN_NAMES.sub("_", full)[:_LONGEST_NAME]
    return fit if fit == full else _hashed_name(fit, tool)


def _hashed_name(name: str, tool: str) -> str:
    digest = hashlib.sha256(tool.encode("utf-8", "replace")).hexdigest()[:_HASH]
    return f"{name[: _LONGEST_NAME - _HASH - 1]}_{digest}"


def repair_result(result: dict[str, Any]) -> None:
    """Gives the result of a call the form that the client below takes, with all that it holds: that
    refuses the whole for one part, and what the tool did would not be known."""
    content = result.get("content")
    blocks = content if isinstance(content, list) else [] if content is None else [content]
    beside = {name: value for name, value in result.items() if name not in _OF_PROTOCOL}
    result["content"] = [_repair_block(one) for one in (*blocks, *([beside] if beside else ()))]
    structured_value = result.pop("structuredContent", None)
    if structured_value is None:
        structured_value = result.pop("toolResult", None)
    if structured_value is not None:
        is_object = isinstance(structured_value, dict)
        result["structuredContent"] = (
            structured_value if is_object else {_WRAPPED: structured_value}
        )
    result["isError"] = result.get("isError") in (True, "true", "True", 1)
    if not isinstance(result.get("_meta"), dict):
        result.pop("_meta", None)


def repaired_answer(message: Any) -> dict[str, Any] | None:
    """The answer to a call, that the client below refuses, as JSON-RPC has it; it would be waited
    for until the time limit otherwise. None if it is no answer."""
    if not isinstance(message, dict) or "method" in message:
        return None
    id = message.get("id")
    if not isinstance(id, str | int) or isinstance(id, bool):
        return None
    error, result = message.get("error"), message.get("result")
    if result is not None and not error:
        fields = result if isinstance(result, dict) else {"content": result}
        return {"jsonrpc": "2.0", "id": id, "result": fields}
    return {"jsonrpc": "2.0", "id": id, "error": _repaired_error(error)}


def _repaired_error(error: Any) -> dict[str, Any]:
    """The error with all of its words, where its code or its message is none."""
    fields = error if isinstance(error, dict) else {"message": error or _NO_ANSWER}
    code, words = fields.get("code"), fields.get("message")
    has_code = isinstance(code, int) and not isinstance(code, bool)
    if not (isinstance(words, str) and (has_code or fields.keys() <= {"message"})):
        words = _as_text(error)
    return {"code": code if has_code else _INTERNAL_ERROR, "message": words}


def _repair_block(block: Any) -> dict[str, Any]:
    """The block with the fields it needs and those that are read. What is none is told as text."""
    match block:
        case {"type": "text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": ("image" | "audio") as kind, "data": str(data)}:
            return {"type": kind, "data": data, "mimeType": str(block.get("mimeType") or "unknown")}
        case {"type": "resource_link", "uri": str(uri)}:
            texts = {name: block[name] for name in _LINK_TEXTS if isinstance(block.get(name), str)}
            return {"type": "resource_link", "name": uri, "uri": uri, **texts}
        case {"type": "resource", "resource": {"text": str()} | {"blob": str()} as resource}:
            names = ("text", "blob", "mimeType", "uri")
            texts = {name: resource[name] for name in names if isinstance(resource.get(name), str)}
            return {"type": "resource", "resource": {"uri": "", **texts}}
    words = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else block
    text = words if isinstance(words, str) else "" if words is None else _as_text(words)
    return {"type": "text", "text": text}


def result_value(result: CallToolResult) -> Any:
    """The value. Raises `ToolFailed` with the server's words when it is an error."""
    blocks = [_of_block(one) for one in result.content]
    parts = _without_repetition(result.structured_content, blocks)
    if result.is_error:
        words = "\n".join(one if isinstance(one, str) else _as_text(one) for one in parts)
        raise ToolFailed(
            str(_bound_value(words)) if words else "The tool failed and does not say why."
        )
    return _bound_value(_join_values(parts))


def _without_repetition(structured_value: Any, blocks: list[Any]) -> list[Any]:
    """All that the result holds. Servers put the same value into both parts, or more into one."""
    if structured_value is None:
        return blocks
    value = _unwrap_result(structured_value)
    if any(_holds(block, structured_value) for block in blocks):
        return blocks
    repeated_values = ("", value, str(value), _as_text(value), structured_value)
    return [
        value,
        *(
            one
            for one in blocks
            if one not in repeated_values and not _holds(structured_value, one)
        ),
    ]


def _holds(whole: Any, part: Any) -> bool:
    """True if both are objects and every value of `part` stands in `whole`, which has more."""
    both = isinstance(whole, dict) and isinstance(part, dict)
    return both and whole != part and part.items() <= whole.items()


def _bound_value(value: Any) -> Any:
    """The value, or the beginning of its text where it is too long for a prompt."""
    text = value if isinstance(value, str) else _as_text(value)
    return value if len(text) <= _LONGEST else f"{text[:_LONGEST]} … (cut: {len(text)} characters)"


def _as_text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError as exc:
        raise ToolFailed("The result is nested too deeply to be read.") from exc


def _unwrap_result(structured_value: Any) -> Any:
    """Servers wrap a value that is no object in one with the key `result`."""
    if isinstance(structured_value, dict) and structured_value.keys() == {_WRAPPED}:
        return structured_value[_WRAPPED]
    return structured_value


def _join_values(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values


def _of_block(block: Any) -> Any:
    """Text as it is, or the JSON it holds; of what a model cannot read here, what it is."""
    match block.type:
        case "text":
            return _text(block.text)
        case "resource":
            resource = block.resource
            return (
                getattr(resource, "text", None)
                or _text_of_blob(getattr(resource, "blob", ""), resource.mime_type or "")
                or f"[{resource.mime_type or 'file'} at {resource.uri}]"
            )
        case "resource_link":
            about = ": ".join(one for one in (block.title or block.name, block.description) if one)
            return f"{about} ({block.uri})"
    return f"[{block.type}: {block.mime_type}]"


def _text_of_blob(blob: str, kind: str) -> str:
    """The text of a file that is one, else ""."""
    if not _TEXT_KINDS.search(kind):
        return ""
    try:
        return base64.b64decode(blob, validate=True).decode()
    except ValueError:
        return ""


def _text(text: str) -> Any:
    if not text.startswith(("{", "[")):
        return text
    try:
        return load_json(text)
    except (ValueError, RecursionError):
        return text
