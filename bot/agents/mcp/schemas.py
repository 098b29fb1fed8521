"""Repairs the input schemas of MCP tools for model endpoints. Pure.

Endpoints refuse a whole request for one schema that is no object at its top, for an array without
`items`, or for a keyword with a value that JSON Schema does not know (OpenAI, "Function calling";
Gemini, "Schema"). One bad schema must not cost the other tools."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

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
