"""The proxy driver: one port per run, routing, live streams, an exact drain, and errors of its own that are told."""

from __future__ import annotations

import gc
import socket
import struct
import threading
import time
from typing import Any

import httpx
import msgspec
import pytest
from mitmproxy.connection import Client
from mitmproxy.hooks import all_hooks

from injectors.core import Moment, Point
from injectors.drivers.proxy import hooks
from injectors.drivers.proxy.crossing import Crossing
from injectors.drivers.proxy.hooks import Hooks
from injectors.drivers.proxy.prompt import FLOW_HOOKS, PromptStream
from injectors.network.latency import Latency
from injectors.wire import Wire
from tests.injectors.rig import CHARGE, CHARGE_RESULT, Rig, fault, listen, model_fault, post
from traces.providers.sse import json_bytes

# ------------------------------------------------------------------------------------------------- the way


@pytest.mark.parametrize("target", ["/tools/charge", "//tools//charge", "http://127.0.0.1:{port}/tools/charge"])
def test_requests_come_in_many_shapes(rig: Rig, target: str) -> None:
    """Origin form, doubled slashes and the absolute form of a client with HTTP_PROXY all reach the tool."""
    with rig.run() as run:
        heard = run.send("/tools/charge", CHARGE, target=target.format(port=run.port), timeout=0.2)
        assert heard.body == json_bytes(CHARGE_RESULT)
        assert [request.path for request in run.executed] == ["/tools/charge"]


def test_proxy_variables_and_base_url_together(rig: Rig) -> None:
    """httpx with the run's port as its proxy and as its base URL gets through."""
    with rig.run() as run:
        url = f"http://127.0.0.1:{run.port}"
        with httpx.Client(proxy=url) as client:
            assert client.post(f"{url}/tools/charge", json=CHARGE).json() == CHARGE_RESULT


def test_our_headers_are_ours(rig: Rig) -> None:
    """The service gets run, wire id and ordinal from the proxy, never from the agent, and no wish for compression."""
    with rig.run() as run:
        run.charge(timeout=0.1, headers={"X-Stormproof-Run": "forged", "accept-encoding": "gzip", "x-mine": "kept"})
        headers = run.executed[0].headers
        assert headers["x-stormproof-run"] == run.run_id
        assert (headers["x-stormproof-wire"], headers["x-stormproof-call"]) == ("w1", "1")
        assert headers["x-mine"] == "kept"
        assert "accept-encoding" not in headers
        assert run.close()["sent"] == ["w1"]


@pytest.mark.parametrize("method", ["POST", "CONNECT"])
def test_other_hosts_are_refused_in_words(rig: Rig, method: str) -> None:
    """A host that is no part of the run is not reached; the finding names it."""
    with rig.run() as run:
        target = "api.example.com:443" if method == "CONNECT" else "http://api.example.com/v1/messages"
        heard = run.send("", {} if method == "POST" else b"", target=target, host="api.example.com", method=method)
        assert heard.status == 403
        assert "base URLs" in heard.json["error"]["message"]
        flows = run.close()["flows"]
        assert flows["egress"] == ["api.example.com:443" if method == "CONNECT" else "api.example.com:80"]
        assert run.close()["failure"] is None


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/chat/completions", "has to end in /v1"),
        ("/v1/v1/messages", "must not end in /v1"),
        ("/v1/embeddings", "is no endpoint here"),
    ],
)
def test_unknown_endpoints_are_refused_in_words(rig: Rig, path: str, words: str) -> None:
    """A wrong base URL is told as one, and the finding is on record."""
    with rig.run() as run:
        heard = run.send(path, {})
        assert heard.status == 404
        assert words in heard.json["error"]["message"]
        assert run.close()["flows"]["unroutable"] == [f"POST {path}"]


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


def test_a_status_query_is_no_call(rig: Rig) -> None:
    """Asking for an outcome is on record as the mechanism, reaches the service, and is not struck."""
    with rig.run(fault("reset", times="always")) as run:
        heard = run.send("/tools/charge/status?key=k-1", b"", method="GET", timeout=0.1)
        assert heard.status == 200
        assert [request.path for request in run.executed] == ["/tools/charge/status?key=k-1"]
        asked = run.of_type("mechanism_acted")
        assert [(r.name, r.tool, r.idempotency_key, r.source) for r in asked] == [
            ("outcome_query", "charge", "k-1", "wire")
        ]
        assert run.of_type("tool_call_started") == []


def test_bytes_that_are_no_http_are_refused(rig: Rig) -> None:
    """TLS on the plain port gets an error and harms no run."""
    with rig.run() as run:
        with socket.create_connection(("127.0.0.1", run.port)) as connection:
            connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 64 + b"\r\n\r\n")
            assert listen(connection).end in ("fin", "rst")
        assert run.close()["failure"] is None


# ---------------------------------------------------------------------------------------------- keep-alive


def test_a_connection_serves_many_calls(rig: Rig) -> None:
    """Without faults a kept-alive connection stays open, byte for byte as the service answered."""
    with rig.run() as run, socket.create_connection(("127.0.0.1", run.port)) as connection:
        for _ in range(3):
            connection.sendall(post(run.port, "/tools/charge", CHARGE))
            heard = listen(connection, 0.15)
            assert (heard.body, heard.end) == (json_bytes(CHARGE_RESULT), "open")
        assert [request.wire for request in run.executed] == ["w1", "w2", "w3"]


def test_a_fault_does_not_leak_into_the_next_call(rig: Rig) -> None:
    """The answer of a fault ends its connection, so that a pooling client begins afresh."""
    with rig.run(fault("executed-but-failed")) as run, httpx.Client() as client:
        url = f"http://127.0.0.1:{run.port}/tools/charge"
        assert [client.post(url, json=CHARGE).status_code for _ in range(3)] == [500, 200, 200]


# -------------------------------------------------------------------------------------------------- streams


def test_a_stream_passes_live_where_no_fault_wants_it(rig: Rig) -> None:
    """The first event is there long before the last."""
    with rig.run(model_fault("cut-stream", call=2)) as run:
        rig.service.event_gap_s = 0.03
        body = {"model": "m", "messages": [], "max_tokens": 9, "stream": True}
        with socket.create_connection(("127.0.0.1", run.port)) as connection:
            began = time.monotonic()
            connection.sendall(post(run.port, "/v1/messages", body))
            first = connection.recv(1 << 16)
            first_after = time.monotonic() - began
            heard = listen(connection)
        assert b"message_start" in first + heard.data
        assert b"message_stop" in heard.data
        assert first_after < (heard.seconds - 0.5) / 2
        finished = run.of_type("model_call_finished")[0]
        assert (finished.outcome, finished.input_tokens, finished.output_tokens) == ("ok", 120, 40)


def test_a_fault_before_the_send_leaves_the_stream_alive(rig: Rig) -> None:
    """A delay of nothing before the send changes no byte of a stream, chunks included."""
    with rig.run() as plain:
        undisturbed = plain.ask()
    with rig.run(model_fault("latency", seconds=0)) as run:
        assert run.ask().data == undisturbed.data
        assert run.fired == 1


def test_leaving_after_the_last_event_is_no_error(rig: Rig) -> None:
    """An agent that closes at `message_stop` has got everything: outcome ok, its tool calls complete."""
    with rig.run() as run:
        body = {"model": "m", "messages": [], "max_tokens": 9, "stream": True}
        with socket.create_connection(("127.0.0.1", run.port)) as connection:
            connection.sendall(post(run.port, "/v1/messages", body))
            data = b""
            while b"message_stop" not in data.rpartition(b"event:")[2]:
                data += connection.recv(1 << 16)
        assert [r.outcome for r in run.of_type("model_call_finished")] == ["ok"]
        assert [(r.tool, r.complete) for r in run.of_type("model_tool_call")] == [("charge", True)]
        assert run.close()["failure"] is None


def test_the_model_has_spoken_before_the_tool_is_called(rig: Rig) -> None:
    """The record of the model's words stands before the start of the call that follows from them."""
    with rig.run() as run:
        run.ask(timeout=0.1)
        run.charge(timeout=0.1)
        types = [record.type for record in run.records]
        assert types.index("model_tool_call") < types.index("tool_call_started")
        times = [record.t for record in run.records]
        assert times == sorted(times)


# ------------------------------------------------------------------------------------------ errors of our own


class Bad(RuntimeError):
    """An error of a hook."""


@pytest.mark.parametrize("hook", ["forward", "answered", "before_send", "after_effect"])
def test_a_hook_that_raises_kills_the_flow_and_fails_the_run(
    rig: Rig, hook: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No answer gets through untouched, and the run says what happened."""

    def broken(_self: Crossing) -> None:
        raise Bad("out of order")

    when = {"before_send": "before", "after_effect": "after"}.get(hook)
    faults = [fault("latency", seconds=0, when=when)] if when else []
    with rig.run(*faults) as run:
        monkeypatch.setattr(Crossing, hook, broken)
        heard = run.charge()
        assert (heard.data, heard.end) == (b"", "fin")
        failure = run.close()["failure"]
        assert "Bad: out of order" in failure
        assert run.outcomes == ["unknown"]


def test_a_guard_that_fails_itself_lets_nothing_hang(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where telling of the first error raises a second one, the agent's connection ends and the run fails."""

    def broken(*_args: object, **_more: object) -> None:
        raise Bad("out of order")

    with rig.run() as run:
        monkeypatch.setattr(Crossing, "forward", broken)
        monkeypatch.setattr(Wire, "lost", broken)
        assert (run.charge().data, run.charge().end) == (b"", "fin")
        monkeypatch.undo()
        assert "Bad: out of order" in run.close()["failure"]


@pytest.mark.parametrize("broken_part", ["PromptHttp", "_known", "watch"])
def test_a_connection_whose_hook_raises_does_not_hang(
    rig: Rig, broken_part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hooks that are about a connection and no flow: it is closed unanswered and the run, no other, fails."""

    def broken(*_args: object) -> None:
        raise Bad("out of order")

    with rig.run() as run, rig.run() as other:
        monkeypatch.setattr(hooks, broken_part, broken)
        heard = run.charge()
        assert (heard.data, heard.end) == (b"", "fin")
        monkeypatch.undo()
        assert "out of order" in run.close()["failure"]
        assert other.close()["failure"] is None


def test_a_crash_inside_mitmproxy_does_not_hang(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """mitmproxy only logs its own crashes; the connection is cut and its run fails, no other."""

    def broken(*_args: object) -> None:
        raise Bad("inside")

    with rig.run() as run, rig.run() as other:
        monkeypatch.setattr(PromptStream, "state_wait_for_request_headers", broken)
        heard = run.charge()
        assert (heard.data, heard.end) == (b"", "fin")
        monkeypatch.undo()
        assert "mitmproxy has crashed! (Bad: inside)" in run.close()["failure"]
        assert other.close()["failure"] is None


def test_every_hook_is_guarded() -> None:
    """All methods of the addon that mitmproxy calls are wrapped; what is left of one to be awaited is so already."""
    called = {name for name in dir(Hooks) if name in all_hooks} - {"stormproof_rest"}
    assert called >= {*FLOW_HOOKS, "next_layer", "server_connect", "server_connected"} - {"requestheaders"}
    assert {name for name in called if not hasattr(getattr(Hooks, name), "__wrapped__")} == set()


def test_a_stream_that_cannot_be_read_fails_the_run(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error in the middle of a live stream ends it and fails the run."""
    with rig.run() as run:

        def broken(*_args: object, **_more: object) -> None:
            raise Bad("unreadable")

        monkeypatch.setattr(Crossing, "_answered", broken)
        assert run.ask().end == "rst"
        assert "unreadable" in run.close()["failure"]


def test_an_action_the_driver_does_not_know_fails_the_run(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was decided and cannot be done is an error, no quiet pass."""

    def strange(_self: Latency, _moment: Moment) -> tuple[Any, ...]:
        return ("teleport",)

    monkeypatch.setattr(Latency, "strike", strange)
    with rig.run(fault("latency")) as run:
        assert run.charge().data == b""
        assert "teleport" in run.close()["failure"]
        assert run.close()["fired"] == {"f1": 0}


def test_a_service_that_is_not_there_fails_the_run(rig: Rig) -> None:
    """A stand-in that cannot be reached is our own error."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with rig.run(upstreams={"model": url, "tools": url}) as run:
        assert run.charge().status == 502
        assert "stand-in" in run.close()["failure"]
        assert run.close()["sent"] == []


def test_a_service_that_breaks_off_fails_the_run(rig: Rig) -> None:
    """A stand-in that ends in mid-answer without a fault is our own error too."""
    with rig.run() as run:
        rig.service.answer = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf"
        run.charge()
        assert "no whole answer" in run.close()["failure"]
        assert run.outcomes == ["unknown"]


# ------------------------------------------------------------------------------------------------ many runs


def test_two_runs_at_once_do_not_mix(rig: Rig) -> None:
    """A fault of one run never strikes the other; each has its own records, ids and effects."""
    with rig.run(fault("reset", times="always")) as struck, rig.run() as spared:
        ends: dict[str, list[str]] = {"struck": [], "spared": []}

        def hammer(name: str, run: Any) -> None:
            ends[name] += [run.charge(timeout=0.15).end for _ in range(6)]

        threads = [threading.Thread(target=hammer, args=pair) for pair in (("struck", struck), ("spared", spared))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ends == {"struck": ["rst"] * 6, "spared": ["open"] * 6}
        assert struck.outcomes == ["unknown"] * 6
        assert spared.outcomes == ["ok"] * 6
        assert (len(struck.executed), len(spared.executed)) == (0, 6)
        assert {record.run_id for record in spared.records} == {spared.run_id}


def test_a_closed_run_has_no_port(rig: Rig) -> None:
    """After the close nothing listens, and the number is not given to the next run."""
    with rig.run() as run:
        run.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", run.port))
        with rig.run() as other:
            assert other.port != run.port


def test_many_ports_at_once(rig: Rig) -> None:
    """Thirty runs are open side by side, each on its own port."""
    specs = [rig.spec() for _ in range(30)]
    ports = [rig.do(rig.driver.open_run(spec)) for spec in specs]
    try:
        assert len(set(ports)) == 30
    finally:
        for spec in specs:
            rig.do(rig.driver.close_run(spec["run_id"], 1))


# -------------------------------------------------------------------------------------------------- the drain


def test_an_idle_run_closes_at_once(rig: Rig) -> None:
    """A connection that an agent keeps alive does not hold up the drain."""
    with rig.run() as run, socket.create_connection(("127.0.0.1", run.port)) as connection:
        connection.sendall(post(run.port, "/tools/charge", CHARGE))
        listen(connection, 0.1)
        began = time.monotonic()
        assert run.close()["failure"] is None
        assert time.monotonic() - began < 0.5


def test_the_drain_waits_for_what_is_under_way(rig: Rig) -> None:
    """An answer that is on its way still arrives."""
    with rig.run() as run, socket.create_connection(("127.0.0.1", run.port)) as connection:
        rig.service.latency_s = 0.3
        connection.sendall(post(run.port, "/tools/charge", CHARGE))
        time.sleep(0.1)
        assert run.close()["failure"] is None
        assert listen(connection).body == json_bytes(CHARGE_RESULT)
        assert run.outcomes == ["ok"]


def test_healing_releases_what_a_fault_holds(rig: Rig) -> None:
    """An agent that waits in a hang is let go when its run is closed; no limit is met."""
    with rig.run(fault("hang", when="after")) as run:
        connection = socket.create_connection(("127.0.0.1", run.port))
        connection.sendall(post(run.port, "/tools/charge", CHARGE))
        time.sleep(0.1)
        began = time.monotonic()
        assert run.close()["failure"] is None
        assert time.monotonic() - began < 0.5
        assert listen(connection).data == b""
        connection.close()
        assert run.fired == 1


def test_a_limit_that_is_met_is_an_error_that_names_the_call(rig: Rig) -> None:
    """What does not end in time is cut off and fails the run."""
    with rig.run() as run, socket.create_connection(("127.0.0.1", run.port)) as connection:
        rig.service.latency_s = 1.5
        connection.sendall(post(run.port, "/tools/charge", CHARGE))
        time.sleep(0.1)
        assert "w1" in run.close(limit_s=0.2)["failure"]


@pytest.mark.parametrize("leaving", ["fin", "rst"])
def test_what_was_sent_is_exactly_what_was_executed(rig: Rig, leaving: str) -> None:
    """Of 150 agents that leave after 0 to 5 ms, each request that was sent was executed, and no other."""
    with rig.run() as run:
        for shot in range(150):
            connection = socket.create_connection(("127.0.0.1", run.port))
            connection.sendall(post(run.port, "/tools/charge", {**CHARGE, "order_id": f"o-{shot}"}))
            time.sleep((shot % 6) / 1000)
            if leaving == "rst":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
        result = run.close()
        assert result["failure"] is None
        deadline = time.monotonic() + 2
        while rig.service.connections and time.monotonic() < deadline:
            time.sleep(0.01)
        assert sorted(result["sent"]) == sorted(request.wire for request in run.executed)
        assert len(result["sent"]) == len(set(result["sent"]))


def test_nothing_is_left_of_many_runs(rig: Rig) -> None:
    """After many runs the proxy holds no connection, run, hook or waiting of theirs."""
    for _ in range(20):
        with rig.run(fault("reset"), fault("hang", at={"tool": "look_up"})) as run:
            run.charge(timeout=0.1)
            run.send("/tools/look_up", {}, timeout=0.02)
    hooks = rig.driver.hooks
    assert hooks.runs == {}
    assert (hooks._gone, hooks._kills) == ({}, {})
    assert rig.driver.engine._proxyserver.connections == {}
    gc.collect()
    assert [left for left in gc.get_objects() if isinstance(left, Client)] == []


def test_moments_are_where_they_are_said_to_be() -> None:
    """The points are ordered as an attempt crosses them."""
    assert sorted(Point) == [Point.BEFORE_SEND, Point.AFTER_EFFECT, Point.AFTER_REPLY]
