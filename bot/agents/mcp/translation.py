"""Translates the names, schemas and results of MCP tools into what model endpoints accept. Pure.

Endpoints refuse a whole request for one schema that is no object at its top, for an array without
`items`, or for a keyword with a value that JSON Schema does not know (OpenAI, "Function calling";
Gemini, "Schema"). One bad schema must not cost the other tools.

Source: https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

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


_COMBINED = ("anyOf", "oneOf", "allOf")
_SCHEMAS = (
    *("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"),
    *("additionalItems", "unevaluatedProperties", "unevaluatedItems"),
)
_LISTS = (*_COMBINED, "prefixItems")
_NAMED = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_KINDS = ("string", "number", "integer", "boolean", "object", "array", "null")
_ALIASES = {
    **dict.fromkeys(("str", "text"), "string"),
    **dict.fromkeys(("int", "long"), "integer"),
    **dict.fromkeys(("float", "double"), "number"),
    **dict.fromkeys(("dict", "map"), "object"),
    "bool": "boolean",
    "list": "array",
    "none": "null",
}
# The values of keywords, by their kinds; none of them is true or false.
_VALUES: tuple[tuple[type | tuple[type, ...], tuple[str, ...]], ...] = (
    (str, ("description", "title", "format", "pattern")),
    (int, ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")),
    (
        (int, float),
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    ),
)
# What not every dialect of patterns has: assertions, flags, classes by name.
_ODD_PATTERN = re.compile(r"\(\?(?!:)|\\[pPAZzGk]|[*+?}]\+")
_MOST_VALUES = 1000
_DEEPEST = 30  # levels


class SchemaUnfit(Exception):
    """No object can be made of the schema; the message says why."""


def repaired_schema(schema: Any) -> dict[str, Any]:
    """The schema as an object with named properties. Raises `SchemaUnfit`."""
    if schema is None or schema is True:
        schema = {}
    if not isinstance(schema, dict):
        raise SchemaUnfit("its input is no schema")
    schema = _without_root_reference(schema)
    kinds = _kinds(schema)
    if kinds and "object" not in kinds:
        raise SchemaUnfit("its input is no object")
    whole = _nested_schema(schema, 0, schema)
    branches = [whole, *(one for name in _COMBINED for one in whole.pop(name, ()))]
    for name in ("enum", "not", "$schema"):  # Gemini refuses the last
        whole.pop(name, None)
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


def _without_root_reference(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema that the whole refers to, with what stands beside the reference."""
    for _ in range(_DEEPEST):
        if "$ref" not in schema:
            return schema
        target = _target(schema["$ref"], schema)
        others = {name: value for name, value in schema.items() if name != "$ref"}
        schema = {**(target or {}), **others}
    raise SchemaUnfit("its input refers to itself")


def _target(reference: Any, root: dict[str, Any]) -> dict[str, Any] | None:
    """The part of `root` that a reference names; None if it names none there."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    part = root
    for name in filter(None, reference[1:].split("/")):
        inner = part.get(unquote(name).replace("~1", "/").replace("~0", "~"))
        if not isinstance(inner, dict):
            return None
        part = inner
    return part


def _nested_schema(schema: dict[str, Any], depth: int, root: dict[str, Any]) -> dict[str, Any]:
    """A copy in which every part has the form that it must have."""
    if depth > _DEEPEST:
        raise SchemaUnfit("its input is nested too deeply")
    fit = dict(schema)
    for name in _NAMED:
        if name in fit:
            name_schema = fit[name] if isinstance(fit[name], dict) else {}
            fit[name] = {key: _part(value, depth, root) for key, value in name_schema.items()}
    for name in _LISTS:
        if name in fit:
            fit[name] = [_nested_schema(one, depth + 1, root) for one in _dicts(fit[name])]
            if not fit[name]:
                del fit[name]
    for name in _SCHEMAS:
        if isinstance(fit.get(name), dict):
            fit[name] = _nested_schema(fit[name], depth + 1, root)
    if "type" in fit:
        fit["type"] = _known_kinds(fit)
        if not fit["type"]:
            del fit["type"]
    if "$ref" in fit and _target(fit["$ref"], root) is None:
        del fit["$ref"]
    if "required" in fit:
        fit["required"] = _texts(fit["required"])
    if "array" in _kinds(fit) and not isinstance(fit.get("items"), dict):
        fit["items"] = {}
    return _with_known_values(fit)


def _with_known_values(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without the keywords whose values JSON Schema does not know."""
    fit = dict(schema)
    for end, other in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if fit.get(end) is True and other in fit:  # as in draft 4
            fit[end] = fit.pop(other)
    for kinds, names in _VALUES:
        for name in names:
            value = fit.get(name)
            if name in fit and (not isinstance(value, kinds) or isinstance(value, bool)):
                del fit[name]
    if "enum" in fit:
        values = fit["enum"] if isinstance(fit["enum"], list) else []
        few = values if len(values) <= _MOST_VALUES else []
        fit["enum"] = [value for at, value in enumerate(few) if value not in few[:at]]
        if not few:
            del fit["enum"]
    if _ODD_PATTERN.search(fit.get("pattern", "")):
        del fit["pattern"]
    return fit


def _part(value: Any, depth: int, root: dict[str, Any]) -> dict[str, Any]:
    return _nested_schema(value, depth + 1, root) if isinstance(value, dict) else {}


def _kinds(schema: dict[str, Any]) -> list[str]:
    """Its types by the names that JSON Schema has for them."""
    kind = schema.get("type")
    kinds = [kind] if isinstance(kind, str) else _texts(kind)
    return [_ALIASES.get(one.lower(), one.lower()) for one in kinds]


def _known_kinds(schema: dict[str, Any]) -> str | list[str]:
    """Its types, in the form it has, as far as JSON Schema knows them."""
    known = [kind for kind in _kinds(schema) if kind in _KINDS]
    return known[0] if known and isinstance(schema["type"], str) else known


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
