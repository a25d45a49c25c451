"""The small part of JSON Schema that tool arguments use."""

from __future__ import annotations

from typing import Any

import pytest

from reports.mechanisms.schema import mismatch

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["id"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "string", "enum": ["a", "b"]},
        "amount": {"type": "integer", "minimum": 1},
        "tags": {"type": "array", "items": {"type": ["string", "null"]}},
        "odd": {"pattern": "never looked at"},
    },
}


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"id": "a", "amount": 2.0, "tags": ["x", None], "odd": 1}, None),
        ([], "$: wants object"),
        ({}, "$.id: missing"),
        ({"id": "c"}, "$.id: not one of the 2 allowed values"),
        ({"id": "a", "amount": True}, "$.amount: wants integer"),
        ({"id": "a", "amount": 1.5}, "$.amount: wants integer"),
        ({"id": "a", "amount": 0}, "$.amount: less than 1"),
        ({"id": "a", "tags": [1]}, "$.tags[0]: wants string or null"),
        ({"id": "a", "more": 1}, "$.more: unknown"),
    ],
)
def test_schema_says_where_arguments_do_not_fit(value: Any, fault: str | None) -> None:
    """The first misfit is named by its place; what is not understood constrains nothing."""
    assert mismatch(value, SCHEMA) == fault
