"""Repairs the input schemas of MCP tools so that model endpoints accept them. Pure.

Endpoints refuse a whole request for one schema that is no object at its top, or for an array
without `items` (OpenAI, "Function calling"; Gemini, "Schema"). One bad schema must not cost the
other tools.
"""

from __future__ import annotations

from typing import Any

_COMBINED = ("anyOf", "oneOf", "allOf")
_SCHEMAS = ("items", "additionalProperties", "not", "if", "then", "else", "contains")
_LISTS = (*_COMBINED, "prefixItems")
_NAMED = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_DEEPEST = 30  # levels


class SchemaUnfit(Exception):
    """No object can be made of the schema; the message says why."""


def repaired(schema: Any) -> dict[str, Any]:
    """The schema as an object with named properties. Raises `SchemaUnfit`."""
    if schema is None or schema is True:
        schema = {}
    if not isinstance(schema, dict):
        raise SchemaUnfit("its input is no schema")
    kinds = _kinds(schema)
    if kinds and "object" not in kinds:
        raise SchemaUnfit("its input is no object")
    whole = _nested(schema, 0)
    branches = [whole, *(one for name in _COMBINED for one in whole.pop(name, ()))]
    whole.pop("enum", None)
    whole.pop("not", None)
    whole["type"] = "object"
    whole["properties"] = {
        name: value for one in branches for name, value in (one.get("properties") or {}).items()
    }
    if required_names := _required(schema, branches, whole["properties"]):
        whole["required"] = required_names
    else:
        whole.pop("required", None)
    return whole


def _required(
    schema: dict[str, Any], branches: list[dict[str, Any]], properties: dict[str, Any]
) -> list[str]:
    """What every way of filling in the schema needs."""
    needed_names = set(_texts(schema.get("required")))
    for name in _COMBINED:
        of_each = [set(_texts(one.get("required"))) for one in _dicts(schema.get(name))]
        if of_each:
            needed_names |= set.union(*of_each) if name == "allOf" else set.intersection(*of_each)
    return [name for name in properties if name in needed_names]


def _nested(schema: dict[str, Any], depth: int) -> dict[str, Any]:
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
            fit[name] = [_nested(one, depth + 1) for one in _dicts(fit[name])]
            if not fit[name]:
                del fit[name]
    for name in _SCHEMAS:
        if isinstance(fit.get(name), dict):
            fit[name] = _nested(fit[name], depth + 1)
    if "required" in fit:
        fit["required"] = _texts(fit["required"])
    if "array" in _kinds(fit) and not isinstance(fit.get("items"), dict):
        fit["items"] = {}
    return fit


def _part(value: Any, depth: int) -> dict[str, Any]:
    return _nested(value, depth + 1) if isinstance(value, dict) else {}


def _kinds(schema: dict[str, Any]) -> list[str]:
    kind = schema.get("type")
    return [kind] if isinstance(kind, str) else _texts(kind)


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
