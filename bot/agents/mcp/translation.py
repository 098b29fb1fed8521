"""Translates the schemas and results of MCP tools into what model endpoints accept. Pure.

Source: https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result

Endpoints refuse a whole request for one schema that is no object at its top, or for an array
without `items` (OpenAI, "Function calling"; Gemini, "Schema"). One bad schema must not cost the
other tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bot.agents.tool_types import ToolFailed
from bot.text.json_text import load_json

if TYPE_CHECKING:
    from mcp_types import CallToolResult

_LONGEST = 24_000  # characters

_COMBINED = ("anyOf", "oneOf", "allOf")
_SCHEMAS = ("items", "additionalProperties", "not", "if", "then", "else", "contains")
_LISTS = (*_COMBINED, "prefixItems")
_NAMED = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_KINDS = ("string", "number", "integer", "boolean", "object", "array", "null")
_DEEPEST = 30  # levels


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
    if isinstance(structured_value, dict) and structured_value.keys() == {"result"}:
        return structured_value["result"]
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
        return load_json(text)
    except (ValueError, RecursionError):
        return text


class SchemaUnfit(Exception):
    """No object can be made of the schema; the message says why."""


def repaired_schema(schema: Any) -> dict[str, Any]:
    """The schema as an object with named properties. Raises `SchemaUnfit`."""
    if schema is None or schema is True:
        schema = {}
    if not isinstance(schema, dict):
        raise SchemaUnfit("its input is no schema")
    kinds = _kinds(schema)
    if kinds and "object" not in kinds:
        raise SchemaUnfit("its input is no object")
    whole = _nested_schema(schema, 0)
    branches = [whole, *(one for name in _COMBINED for one in whole.pop(name, ()))]
    whole.pop("enum", None)
    whole.pop("not", None)
    whole["type"] = "object"
    whole["properties"] = {
        name: value for one in branches for name, value in (one.get("properties") or {}).items()
    }
    if required_names := _required_names(schema, branches, whole["properties"]):
        whole["required"] = required_names
    else:
        whole.pop("required", None)
    return whole


def _required_names(
    schema: dict[str, Any], branches: list[dict[str, Any]], properties: dict[str, Any]
) -> list[str]:
    """What every way of filling in the schema needs."""
    needed_names = set(_texts(schema.get("required")))
    for name in _COMBINED:
        of_each = [set(_texts(one.get("required"))) for one in _dicts(schema.get(name))]
        if of_each:
            needed_names |= set.union(*of_each) if name == "allOf" else set.intersection(*of_each)
    return [name for name in properties if name in needed_names]


def _nested_schema(schema: dict[str, Any], depth: int) -> dict[str, Any]:
    """A copy in which every part has the form that it must have."""
    if depth > _DEEPEST:
        raise SchemaUnfit("its input is nested too deeply")
    fit = dict(schema)
    for name in _NAMED:
        if name in fit:
            name_schema = fit[name] if isinstance(fit[name], dict) else {}
            fit[name] = {key: _part(value, depth) for key, value in name_schema.items()}
    for name in _LISTS:
        if name in fit:
            fit[name] = [_nested_schema(one, depth + 1) for one in _dicts(fit[name])]
            if not fit[name]:
                del fit[name]
    for name in _SCHEMAS:
        if isinstance(fit.get(name), dict):
            fit[name] = _nested_schema(fit[name], depth + 1)
    if "type" in fit:
        fit["type"] = _known_kinds(fit)
        if not fit["type"]:
            del fit["type"]
    if "enum" in fit and not (isinstance(fit["enum"], list) and fit["enum"]):
        del fit["enum"]
    if "required" in fit:
        fit["required"] = _texts(fit["required"])
    if "array" in _kinds(fit) and not isinstance(fit.get("items"), dict):
        fit["items"] = {}
    return fit


def _part(value: Any, depth: int) -> dict[str, Any]:
    return _nested_schema(value, depth + 1) if isinstance(value, dict) else {}


def _kinds(schema: dict[str, Any]) -> list[str]:
    kind = schema.get("type")
    return [kind] if isinstance(kind, str) else _texts(kind)


def _known_kinds(schema: dict[str, Any]) -> str | list[str]:
    """Its types, in the form it has, as far as JSON Schema knows them."""
    known = [kind for kind in _kinds(schema) if kind in _KINDS]
    return known[0] if known and isinstance(schema["type"], str) else known


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
