"""What is left out of mitmproxy changes nothing that is sent or received."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mitmproxy.http import Headers
from mitmproxy.options import Options

from injectors.drivers.proxy.lean import header, plain_options

NAMES = st.sampled_from(["host", "Host", "HOST", "x-a", "X-A", "absent", "content-type"])
VALUES = st.binary(max_size=6)


@given(st.lists(st.tuples(NAMES.map(str.encode), VALUES), max_size=6), NAMES, st.booleans())
def test_headers_are_looked_up_as_ever(fields: list[tuple[bytes, bytes]], name: str, as_bytes: bool) -> None:
    """The straight look-up gives what the generic one of mappings gives, repeated headers folded."""
    headers = Headers(fields)
    key = name.encode() if as_bytes else name
    assert header(headers, key, "default") == Mapping.get(headers, key, "default")
    assert headers.get(name) == Mapping.get(headers, name)


def test_options_read_the_same() -> None:
    """Each option of the plain copy has the value of the real one, and unknown ones are still an error."""
    options: Any = Options()
    plain = plain_options(options)
    assert {name: getattr(plain, name) for name in options.keys()} == {  # noqa: SIM118 - no mapping
        name: getattr(options, name)
        for name in options.keys()  # noqa: SIM118
    }
    with pytest.raises(AttributeError):
        _ = plain.no_such_option
