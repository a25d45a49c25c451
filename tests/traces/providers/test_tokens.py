"""Where the text of arguments can be cut, and what a lenient reader makes of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from tests.traces.strategies import arguments, searched
from traces.providers.tokens import cut_points, inside_token, partial_object, pieces


@pytest.mark.parametrize(
    ("raw", "left"),
    [
        ('{"amount":1200}', '{"amount":12'),
        ('{"amount": 12.75}', '{"amount": 12'),
        ('{"amount": -305}', '{"amount": -3'),
        ('{"amount": 1.5e3}', '{"amount": 1.5'),
        ('{"a1b2": "c300", "n": 10}', '{"a1b2": "c300", "n": 1'),
    ],
)
def test_cut_number_is_another_number(raw: str, left: str) -> None:
    """The text before the cut ends in a number, and it is another one."""
    [point] = cut_points(raw, "number")
    assert raw[:point] == left


@pytest.mark.parametrize("raw", ['{"amount": 7}', '{"amount": 1.0}', '{"amount": "1200"}', "{}"])
def test_number_that_cannot_be_cut(raw: str) -> None:
    """One digit, a number that stays equal, or a number in a text is none to cut."""
    assert cut_points(raw, "number") == []


def test_cut_string_is_a_value_and_no_escape() -> None:
    """Keys are not cut, nor is an escape within a value."""
    raw = '{"order":"\\u00e4\\u00e4","x":"a"}'
    [point] = cut_points(raw, "string")
    assert raw[:point] == '{"order":"\\u00e4'
    with pytest.raises(ValueError, match="number"):
        cut_points(raw, "key")


@searched
@given(given_arguments=arguments)
def test_pieces_join_and_have_a_border_at_every_cut(given_arguments: dict[str, object]) -> None:
    """The pieces of a text are the text, none is empty, and each place to cut is a border between two."""
    raw = json.dumps(given_arguments, ensure_ascii=False)
    parts = pieces(raw)
    assert "".join(parts) == raw
    assert all(parts)
    borders = {len("".join(parts[:n])) for n in range(len(parts))}
    for inside in ("number", "string"):
        for point in cut_points(raw, inside):
            assert point in borders
            assert inside_token(raw, point, inside)


@pytest.mark.parametrize(
    ("raw", "read"),
    [
        ('{"order_id":"o-1","amount":12', {"order_id": "o-1", "amount": 12}),
        ('{"order_id":"o-', {"order_id": "o-"}),
        ('{"items":[{"sku":"a"},{"sk', {"items": [{"sku": "a"}, {}]}),
        ('{"amount":', {}),
        ("", {}),
        ("12", {}),
    ],
)
def test_lenient_reading(raw: str, read: dict[str, object]) -> None:
    """A cut object is closed where it was cut; a key without a value is left out."""
    assert partial_object(raw) == read
