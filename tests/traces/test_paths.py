"""The paths of a registry."""

from __future__ import annotations

from typing import Any

import pytest

from traces.paths import MISSING, parse_path

VALUE = {"order": {"id": "o-1", "odd name": 1}, "items": [{"sku": "a"}, {"sku": "b"}, {}], "none": None}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$.order.id", "o-1"),
        ("$.order['odd name']", 1),
        ("$.items[1].sku", "b"),
        ("$.items[*].sku", ["a", "b"]),
        ("$.none", None),
        ("$.order.missing", MISSING),
        ("$.items[7].sku", MISSING),
        ("$.order[0]", MISSING),
        ("$.order[*].id", MISSING),
    ],
)
def test_find(path: str, found: Any) -> None:
    """A path finds a value, all values behind `[*]`, or says that there is none; null is a value."""
    assert parse_path(path).find(VALUE) == found


@pytest.mark.parametrize("path", ["order_id", "$", "$..id", "$.items[?(@.a)]", "$.items[-1]"])
def test_what_is_no_path(path: str) -> None:
    """What could be read in two ways is refused, with an example of what would be right."""
    with pytest.raises(ValueError, match=r"\$\."):
        parse_path(path)


def test_names() -> None:
    """A path of one step names an argument; a longer one does not."""
    assert (parse_path("$.order_id").name, parse_path("$.order_id").field) == ("order_id", "order_id")
    assert (parse_path("$.order.id").name, parse_path("$.order.id").field) == ("order.id", None)
