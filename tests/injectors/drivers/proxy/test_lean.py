"""What is left out of mitmproxy changes nothing that is sent, and a mitmproxy built otherwise is refused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from mitmproxy.http import Headers, HTTPFlow, MessageData, Response
from mitmproxy.proxy.layers.http import HttpLayer

from injectors.drivers.proxy import DriverError, ProxyDriver, lean


def test_messages_are_made_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the check of its fields a message has the same state."""

    def made() -> dict[str, Any]:
        answer: Any = Response.make(429, b"{}", Headers([(b"retry-after", b"2")]))
        return {name: value for name, value in answer.get_state().items() if not name.startswith("timestamp")}

    checked = made()
    monkeypatch.setattr(MessageData, "__post_init__", None, raising=False)  # put back in the end
    lean.skip_type_checks()
    assert made() == checked


def test_the_installed_mitmproxy_is_as_expected() -> None:
    """Every function, attribute and hook that is reached into exists and takes what it is given."""
    lean.check_insides()


@pytest.mark.parametrize(
    ("owner", "name", "instead", "words"),
    [
        (HttpLayer, "make_stream", None, "HttpLayer.make_stream is missing"),
        (HttpLayer, "make_stream", lambda self, stream_id, more: None, "takes (self, stream_id, more)"),
        (lean, "ATTRIBUTES", ((HTTPFlow, frozenset({"no_such"})),), "HTTPFlow has no `no_such`"),
        (lean, "FLOW_HOOKS", ("request", "no_such"), "there is no hook `no_such` about a flow"),
        (lean, "FLOW_HOOKS", ("next_layer",), "there is no hook `next_layer` about a flow"),
    ],
)
def test_a_mitmproxy_built_otherwise_is_refused(
    owner: Any, name: str, instead: Any, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver does not start, and says what it misses."""
    monkeypatch.setattr(owner, name, instead)

    async def start() -> None:
        await ProxyDriver(confdir=tmp_path, emit=lambda _event: None).start()

    with pytest.raises(DriverError) as refusal:
        asyncio.run(start())
    assert words in str(refusal.value)
