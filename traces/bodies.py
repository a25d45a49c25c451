"""The arguments in an HTTP request to a tool: read in one way by the proxy, which puts them on record, and by the
service, which acts on them. Two readers that differ would let a second effect pass as another call."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import msgspec

from traces.json_bodies import shallow


def arguments_in(body: bytes, query: str) -> Any:
    """The JSON value of a body; where that is blank, the parameters of the query (RFC 3986, without its `?`).

    Strictly JSON in UTF-8 (RFC 8259): no byte order mark, no other encoding, no `NaN`, no lone surrogates. Raises
    `ValueError` for whatever is none, and for what is nested too deep to be walked.
    """
    if not body.strip():
        return dict(parse_qsl(query))
    return shallow(msgspec.json.decode, body)
