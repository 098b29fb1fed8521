"""Schemas of MCP tools: one that no endpoint takes is repaired, or refused with a reason."""

from __future__ import annotations

from typing import Any

import pytest

from bot.agents.mcp.translation import SchemaUnfit, repaired_schema
from tests.support.rows import every_row

TEXT = {"type": "string"}
EMPTY = {"type": "object", "properties": {}}


@every_row(
    ("schema", "expected"),
    [
        ({}, EMPTY),
        (None, EMPTY),
        (True, EMPTY),
        ({"type": "object"}, EMPTY),
        ({"type": "object", "properties": None, "required": None}, EMPTY),
        ({"type": ["object", "null"], "properties": {"a": TEXT}}, {"a": TEXT}),
        ({"properties": {"a": TEXT}, "required": ["a", "b", 7]}, {"a": TEXT}),
        ({"type": "object", "properties": {"a": True}}, {"a": {}}),
        (
            {"type": "object", "properties": {"a": {"type": "array"}}},
            {"a": {"type": "array", "items": {}}},
        ),
        (
            {"properties": {"a": {"type": ["array", "null"], "items": [TEXT]}}},
            {"a": {"type": ["array", "null"], "items": {}}},
        ),
        (
            {"properties": {"a": {"properties": {"b": {"anyOf": [{"type": "array"}]}}}}},
            {"a": {"properties": {"b": {"anyOf": [{"type": "array", "items": {}}]}}}},
        ),
        (
            {"properties": {"a": {"type": "str"}, "b": {"type": ["any", "null"], "enum": []}}},
            {"a": TEXT, "b": {"type": ["null"]}},
        ),
        ({"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}, {"a": TEXT}),
        (
            {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"a": TEXT}}}},
            {"a": TEXT},
        ),
        (
            {
                "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/$defs/B"}},
                "$defs": {"A": TEXT},
            },
            {"a": {"$ref": "#/$defs/A"}, "b": {}},
        ),
        (
            {"properties": {"a": {"type": "integer", "minimum": "0", "maximum": 9}}},
            {"a": {"type": "integer", "maximum": 9}},
        ),
        (
            {"properties": {"a": {"minimum": 0, "exclusiveMinimum": True, "minLength": True}}},
            {"a": {"exclusiveMinimum": 0}},
        ),
        (
            {"properties": {"a": {"enum": ["x", "x", None], "pattern": "(?<=x)\\p{L}+"}}},
            {"a": {"enum": ["x", None]}},
        ),
        (
            {"properties": {"a": {"description": 7, "title": ["x"], "format": None}}},
            {"a": {}},
        ),
    ],
)
def test_a_schema_becomes_an_object(schema: Any, expected: dict[str, Any]) -> None:
    found = repaired_schema(schema)
    assert found["type"] == "object"
    assert found["properties"] == (expected if expected != EMPTY else {})


@every_row("how", ["anyOf", "oneOf", "allOf"])
def test_the_branches_of_a_combination_are_joined(how: str) -> None:
    branches = [
        {"type": "object", "properties": {"id": TEXT, "at": TEXT}, "required": ["id", "at"]},
        {"type": "object", "properties": {"name": TEXT, "at": TEXT}, "required": ["name", "at"]},
    ]
    found = repaired_schema({how: branches})
    assert how not in found
    assert set(found["properties"]) == {"id", "at", "name"}
    assert set(found["required"]) == ({"id", "at", "name"} if how == "allOf" else {"at"})


def test_the_dialect_of_a_schema_is_left_out() -> None:
    assert "$schema" not in repaired_schema({"$schema": "http://json-schema.org/draft-07/schema#"})


def test_a_reference_stays() -> None:
    again = {
        "type": "object",
        "properties": {"again": {"$ref": "#/$defs/A"}, "l": {"type": "array"}},
    }
    found = repaired_schema({"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": again}})
    assert found["properties"] == {"a": {"$ref": "#/$defs/A"}}
    assert found["$defs"]["A"]["properties"]["l"] == {"type": "array", "items": {}}


def test_what_a_server_gave_is_not_changed() -> None:
    given = {"anyOf": [{"properties": {"a": {"type": "array"}}}]}
    repaired_schema(given)
    assert given == {"anyOf": [{"properties": {"a": {"type": "array"}}}]}


DEEP: dict[str, Any] = {}
for _ in range(50):
    DEEP = {"properties": {"a": DEEP}}


@every_row("schema", [{"type": "string"}, {"type": ["array"]}, 7, "object", DEEP])
def test_what_is_no_object_is_refused(schema: Any) -> None:
    with pytest.raises(SchemaUnfit, match="its input is"):
        repaired_schema(schema)
