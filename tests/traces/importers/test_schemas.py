"""Schemas from calls."""

from __future__ import annotations

from typing import Any

import pytest

from traces.importers.schemas import schema_of_calls


@pytest.mark.parametrize(
    ("calls", "schema"),
    [
        ([], {"type": "object", "properties": {}}),
        ([{}], {"type": "object", "properties": {}}),
        (
            [{"a": 1, "b": "x"}, {"a": 2.5}],
            {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "string"}}, "required": ["a"]},
        ),
        (
            [{"a": True}, {"a": None}],
            {"type": "object", "properties": {"a": {"type": ["boolean", "null"]}}, "required": ["a"]},
        ),
        (
            [{"a": [{"n": 1}, {"n": 2, "m": "x"}]}, {"a": "text"}],
            {
                "type": "object",
                "properties": {
                    "a": {
                        "type": ["string", "array"],
                        "items": {
                            "type": "object",
                            "properties": {"n": {"type": "integer"}, "m": {"type": "string"}},
                            "required": ["n"],
                        },
                    }
                },
                "required": ["a"],
            },
        ),
    ],
)
def test_schema(calls: list[dict[str, Any]], schema: dict[str, Any]) -> None:
    """Types are those seen, required is what every call has, all the way down."""
    assert schema_of_calls(calls) == schema
