"""Arguments are held against the schema of their tool."""

from __future__ import annotations

from typing import Any

import pytest

from harness.standins.schema import faults

ORDER: dict[str, Any] = {
    "type": "object",
    "required": ["sku", "amount"],
    "additionalProperties": False,
    "properties": {
        "sku": {"type": "string", "pattern": "^s-", "minLength": 3, "maxLength": 6},
        "amount": {"type": "integer", "minimum": 1, "exclusiveMaximum": 10},
        "currency": {"enum": ["EUR", "USD"]},
        "lines": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"$ref": "#/$defs/line"}},
        "note": {"type": ["string", "null"]},
        "tip": {"type": "number", "nullable": True},
        "version": {"const": 1},
    },
    "$defs": {"line": {"type": "object", "required": ["id"]}},
}
GOOD = {"sku": "s-1", "amount": 2}


@pytest.mark.parametrize(
    "more",
    [{}, {"currency": "EUR"}, {"lines": [{"id": 1}]}, {"note": None}, {"tip": None}, {"amount": 2.0}, {"version": 1}],
)
def test_good_arguments_have_no_fault(more: dict[str, Any]) -> None:
    """What fits the schema passes; a float without a fraction is an integer."""
    assert faults(GOOD | more, ORDER) == []


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"sku": 1}, "`sku` must be of type string"),
        ({"sku": "x-1"}, "`sku` must match ^s-"),
        ({"sku": "s-"}, "`sku` must have at least 3 characters"),
        ({"sku": "s-12345"}, "`sku` must have at most 6 characters"),
        ({"amount": 0}, "`amount` must be at least 1"),
        ({"amount": 10}, "`amount` must be less than 10"),
        ({"amount": 1.5}, "`amount` must be of type integer"),
        ({"amount": True}, "`amount` must be of type integer"),
        ({"currency": "CHF"}, "`currency` must be one of 'EUR', 'USD'"),
        ({"lines": []}, "`lines` must have at least 1 items"),
        ({"lines": [{"id": 1}] * 3}, "`lines` must have at most 2 items"),
        ({"lines": [{"id": 1}, {}]}, "`lines[1].id` is missing"),
        ({"note": 3}, "`note` must be of type string or null"),
        ({"colour": "red"}, "`colour` is not known"),
        ({"version": True}, "`version` must be 1"),
    ],
)
def test_each_fault_is_a_sentence_with_its_place(more: dict[str, Any], sentence: str) -> None:
    """A fault names the field and what would be right."""
    assert faults(GOOD | more, ORDER) == [sentence]


def test_all_faults_are_told_at_once() -> None:
    """Two missing fields are two sentences."""
    assert faults({}, ORDER) == ["`sku` is missing", "`amount` is missing"]


def test_combined_schemas() -> None:
    """anyOf wants one, oneOf exactly one, allOf all; `false` allows nothing."""
    text, small = {"type": "string"}, {"type": "string", "maxLength": 2}
    assert faults(1, {"anyOf": [text, small]}) == ["the value fits none of the allowed forms"]
    assert faults("long", {"oneOf": [text, small]}) == []
    assert faults("ab", {"oneOf": [text, small]}) == ["the value must fit exactly one of the allowed forms"]
    assert faults("long", {"allOf": [text, small]}) == ["the value must have at most 2 characters"]
    assert faults("x", False) == ["the value is not allowed"]
    assert faults(5, {"maximum": 4, "exclusiveMinimum": 5}) == [
        "the value must be at most 4",
        "the value must be more than 5",
    ]


@pytest.mark.parametrize(
    "schema", [True, {}, {"format": "uuid"}, {"$ref": "https://example.org/x"}, {"type": "file"}]
)
def test_unknown_words_refuse_nothing(schema: Any) -> None:
    """A keyword, type or reference that this checker does not know lets everything through."""
    assert faults({"any": ["thing"]}, schema) == []
