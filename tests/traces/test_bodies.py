"""Arguments of a request: one reading for whoever records them and for whoever acts on them."""

from __future__ import annotations

import pytest

from traces.bodies import arguments_in


def test_body_then_query() -> None:
    """The body has the arguments; where it is blank, the query."""
    assert arguments_in(b'{"a":1}', "a=2") == {"a": 1}
    assert arguments_in(b" \r\n", "a=2&b=x%20y") == {"a": "2", "b": "x y"}
    assert arguments_in(b"", "") == {}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "utf-8-sig"])
def test_other_encodings_are_no_json(encoding: str) -> None:
    """JSON on the wire is UTF-8 without a mark; guessing, as some readers do, is refused."""
    with pytest.raises(ValueError, match=r"."):
        arguments_in('{"a":1}'.encode(encoding), "")


@pytest.mark.parametrize("body", [b'{"a":NaN}', b'{"a":Infinity}', b'{"a":"\\ud800"}', b'{"a":1}{}', b"{"])
def test_extensions_are_no_json(body: bytes) -> None:
    """What only some readers take for JSON is none."""
    with pytest.raises(ValueError, match=r"."):
        arguments_in(body, "a=1")
