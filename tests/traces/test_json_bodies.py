"""JSON of others is read up to a depth, and no text breaks the reader."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traces.json_bodies import DEEPEST, shallow


def nested(levels: int) -> bytes:
    """Objects and arrays in turn, so many levels of them."""
    text = b"1"
    for level in range(levels):
        text = b"[%b]" % text if level % 2 else b'{"a":%b}' % text
    return text


@pytest.mark.parametrize("decode", [json.loads, msgspec.json.decode])
@pytest.mark.parametrize("levels", [0, 1, DEEPEST])
def test_what_is_shallow_is_read_as_ever(decode: Callable[[Any], Any], levels: int) -> None:
    """Up to the limit, the value is the decoder's own."""
    assert shallow(decode, nested(levels)) == decode(nested(levels))


@pytest.mark.parametrize("decode", [json.loads, msgspec.json.decode])
@pytest.mark.parametrize("body", [nested(DEEPEST + 1), nested(900), b"[" * 100_000], ids=["just", "more", "endless"])
def test_what_is_too_deep_is_refused(decode: Callable[[Any], Any], body: bytes) -> None:
    """Beyond the limit it is a `ValueError`, however deep, as for what is no JSON at all."""
    with pytest.raises(ValueError, match="levels deep"):
        shallow(decode, body)
    with pytest.raises(ValueError):
        shallow(decode, b"{")


@settings(deadline=None)
@given(st.lists(st.text("[{ab", max_size=9), max_size=60))
def test_brackets_in_strings_do_not_count(texts: list[str]) -> None:
    """A flat value is read, whatever its strings hold."""
    assert shallow(json.loads, json.dumps(texts)) == texts
