"""What a tool of an MCP server gave back, as a value for the model. Pure.

Source: https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bot.agents.tool_types.tool import ToolFailed
from bot.text.lenient_json import loads

if TYPE_CHECKING:
    from mcp_types import CallToolResult

_LONGEST = 24_000  # characters


def value_of(result: CallToolResult) -> Any:
    """The value. Raises `ToolFailed` with the server's words when it is an error."""
    blocks = [_of_block(one) for one in result.content]
    parts = _without_repetition(result.structured_content, blocks)
    if result.is_error:
        words = "\n".join(one if isinstance(one, str) else _as_text(one) for one in parts)
        raise ToolFailed(str(_bounded(words)) if words else "The tool failed and does not say why.")
    return _bounded(_joined(parts))


def _without_repetition(structured_value: Any, blocks: list[Any]) -> list[Any]:
    """All that the result holds. Servers put the same value into both parts, or more into one."""
    if structured_value is None:
        return blocks
    value = _unwrapped(structured_value)
    if any(_holds(block, structured_value) for block in blocks):
        return blocks
    repeated_values = ("", value, str(value), structured_value)
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


def _bounded(value: Any) -> Any:
    """The value, or the beginning of its text where it is too long for a prompt."""
    text = value if isinstance(value, str) else _as_text(value)
    return value if len(text) <= _LONGEST else f"{text[:_LONGEST]} … (cut: {len(text)} characters)"


def _as_text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError as exc:
        raise ToolFailed("The result is nested too deeply to be read.") from exc


def _unwrapped(structured_value: Any) -> Any:
    """Servers wrap a value that is no object in one with the key `result`."""
    if isinstance(structured_value, dict) and structured_value.keys() == {"result"}:
        return structured_value["result"]
    return structured_value


def _joined(values: list[Any]) -> Any:
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
                or f"[{resource.mime_type or 'file'} at {resource.uri}]"
            )
        case "resource_link":
            about = ": ".join(one for one in (block.title or block.name, block.description) if one)
            return f"{about} ({block.uri})"
    return f"[{block.type}: {block.mime_type}]"


def _text(text: str) -> Any:
    if not text.startswith(("{", "[")):
        return text
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return text
