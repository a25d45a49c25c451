"""The proxy driver: one port per run, routing, live streams, an exact drain, and errors of its own that are told."""

from __future__ import annotations

import gc
import gzip
import socket
import struct
import threading
import time
from typing import Any

import httpx
import pytest
from mitmproxy.connection import Client

from injectors.core import Point
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


def test_the_secret_is_added_on_the_way(rig: Rig) -> None:
    """What the stand-ins know the proxy by goes with calls and status queries, in place of what an agent forges."""
    with rig.run(secret="only-ours") as run:
        run.charge(headers={"x-stormproof-secret": "forged"})
        assert run.executed[0].headers["x-stormproof-secret"] == "only-ours"


@pytest.mark.parametrize("target", ["/tools/%63harge", "/tools/charge#x"])
def test_what_servers_read_in_two_ways_is_not_forwarded(rig: Rig, target: str) -> None:
    """A call under an escaped name would be executed as another tool than the one on record: refused, and told."""
    with rig.run() as run:
        heard = run.send("/tools/charge", CHARGE, target=target)
        assert (heard.status, heard.json["error"]["kind"]) == (404, "unknown_endpoint")
        assert "not written plainly" in heard.json["error"]["message"]
        assert run.executed == []
        assert run.close()["flows"]["unroutable"] == [f"POST {target}"]


def test_a_coded_body_is_forwarded_as_it_was_read(rig: Rig) -> None:
    """What follows the first gzip member is read by some servers and not by others: the service gets plain bytes."""
    body = gzip.compress(json_bytes(CHARGE)) + gzip.compress(b" ")
    with rig.run() as run:
        httpx.post(f"http://127.0.0.1:{run.port}/tools/charge", content=body, headers={"content-encoding": "gzip"})
        (executed,) = run.executed
        assert "content-encoding" not in executed.headers
        # mitmproxy 11 reads both members, 12 the first; either way the service gets what the wire read.
        assert executed.body.rstrip() == json_bytes(CHARGE)
        assert run.of_type("tool_call_started")[0].args == CHARGE


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
