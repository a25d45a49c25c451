"""Paths into arguments and results."""

from __future__ import annotations

import pytest

from agents.reference.paths import MISSING, find, put


def test_finding() -> None:
    """Fields and list places are found; what is not there is missing, which is not the same as null."""
    value = {"a": {"b": [{"c": 7}]}, "n": None}
    assert find(value, "$.a.b[0].c") == 7
    assert find(value, "$.n") is None
    for path in ("$.x", "$.a.b[1]", "$.a.b.c", "$.n.x", "$.a[0]"):
        assert find(value, path) is MISSING
    assert find("text", "$[0]") is MISSING


def test_putting() -> None:
    """A field is put in place on a copy; objects on the way are made."""
    value = {"a": {"b": 1}}
    assert put(value, "$.a.c.d", 2) == {"a": {"b": 1, "c": {"d": 2}}}
    assert put(value, "$.key", "k") == {"a": {"b": 1}, "key": "k"}
    assert value == {"a": {"b": 1}}


@pytest.mark.parametrize("path", ["$", "$[0]", "$.a[0]"])
def test_what_is_no_field_is_refused(path: str) -> None:
    """A key cannot be put into a list or in place of everything."""
    with pytest.raises(ValueError, match="names no field"):
        put({}, path, 1)
