"""What a tool of an MCP server gave back, as a value for the model. Pure.

Source: https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bot.agents.lenient_json import loads
from bot.agents.tools.tool import ToolFailed

if TYPE_CHECKING:
    from mcp_types import CallToolResult


def value_of(result: CallToolResult) -> Any:
    """The value. Raises `ToolFailed` with the server's words when it is an error."""
    structured, blocks = result.structured_content, result.content
    told = structured is not None and (result.is_error or _only_text(blocks))
    value = _unwrapped(structured) if told else _joined([_of_block(one) for one in blocks])
    if result.is_error:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        raise ToolFailed(text if value else "The tool failed and does not say why.")
    return value


def _only_text(blocks: Sequence[Any]) -> bool:
    return all(one.type == "text" for one in blocks)


def _unwrapped(structured: Any) -> Any:
    """Servers wrap a value that is no object in one with the key `result`."""
    if isinstance(structured, dict) and structured.keys() == {"result"}:
        return structured["result"]
    return structured


def _joined(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values


def _of_block(block: Any) -> Any:
    """Text as it is, or the JSON it holds; of what a model cannot read here, what it is."""
    match block.type:
        case "text":
            return _text(block.text)
        case "resource":
            held = block.resource
            return getattr(held, "text", None) or f"[{held.mime_type or 'file'} at {held.uri}]"
        case "resource_link":
            return str(block.uri)
    return f"[{block.type}: {block.mime_type}]"


def _text(text: str) -> Any:
    if not text.startswith(("{", "[")):
        return text
    try:
        return loads(text)
    except ValueError:
        return text
