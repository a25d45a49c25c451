"""Whatever bytes an agent sends, they are the agent's affair: no hook fails over them."""

from __future__ import annotations

import socket

import msgspec
import pytest

from tests.injectors.rig import CHARGE, CHARGE_RESULT, Rig, listen, post
from traces.providers.sse import json_bytes

DEEP = b'{"order_id":' + b"[" * 900 + b"]" * 900 + b"}"


@pytest.mark.parametrize(
    "sent",
    [
        post(1, "/tools/charge", b"[" * 100_000),
        post(1, "/tools/charge", DEEP),
        post(1, "/tools/charge", b'{"order_id":"\\ud800"}'),
        post(1, "/tools/charge", CHARGE, headers={"x-step": "9" * 5000, "x-agent-deadline-ms": "nan"}),
        post(1, "/v1/messages", b"[" * 100_000),
        post(1, "/tools/charge", CHARGE, target="RAW").replace(b"RAW", b"/tools/\xff\xfe?a=\xff"),
        post(1, "/nowhere", CHARGE, target="RAW").replace(b"RAW", b"/\xff\xfe"),
        post(1, "/", b"", method="GET", target="RAW").replace(b"RAW", b"/tools/charge/status?key=\xff"),
        post(1, "/", CHARGE, target="RAW").replace(b"RAW", b"http://\xff\xfe.example/x"),
        post(1, "/", CHARGE, method="METHOD").replace(b"METHOD", b"PO\xffST"),
        post(1, "/", b"", method="CONNECT", target="RAW").replace(b"RAW", b"\xff\xfe:443"),
        post(1, "/tools/charge", CHARGE, host="RAW").replace(b"RAW", b"\xff"),
        post(1, "/tools/charge", CHARGE, headers={"x-attempt-id": "RAW", "RAW": "1"}).replace(b"RAW", b"\xff"),
    ],
    ids=[
        *("endless", "deep", "surrogate", "numbers", "model", "tool", "path", "key", "url", "method"),
        *("connect", "host", "header"),
    ],
)
def test_nothing_an_agent_sends_fails_the_run(rig: Rig, sent: bytes) -> None:
    """Whatever bytes come: an answer or an end, what is told of the run is JSON, and the driver has not failed."""
    with rig.run() as run:
        with socket.create_connection(("127.0.0.1", run.port)) as connection:
            connection.sendall(sent.replace(b"127.0.0.1:1\r\n", f"127.0.0.1:{run.port}\r\n".encode()))
            heard = listen(connection, 0.5)
        assert heard.data or heard.end != "open"
        assert run.charge(timeout=0.2).body == json_bytes(CHARGE_RESULT)
        result = msgspec.json.decode(msgspec.json.encode(run.close()))
        assert result["failure"] is None
