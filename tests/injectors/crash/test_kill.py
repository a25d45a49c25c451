"""`kill`: the agent's processes die at an exact boundary."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from typing import Any

import pytest

from tests.injectors.rig import CHARGE, CHARGE_RESULT, Rig, fault, listen, model_fault, post
from traces.providers.sse import json_bytes

AGENT = """
import socket, sys
request = sys.stdin.buffer.read()
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
    connection.sendall(request)
    answer = connection.recv(65536)
    print("answered", len(answer), flush=True)
    connection.sendall(request)
    print("again", len(connection.recv(65536)), flush=True)
"""
"""Calls twice on one connection and says what it got."""


def play(rig: Rig, port: int) -> tuple[int, str]:
    """Run the agent as a process that the proxy may have killed; its exit code and what it said."""
    agent = subprocess.Popen(
        [sys.executable, "-S", "-c", AGENT, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )

    def kill(event: dict[str, Any]) -> None:
        os.kill(agent.pid, signal.SIGKILL)
        rig.driver.acted(event["token"])

    rig.on_event = kill
    try:
        said, _ = agent.communicate(post(port, "/tools/charge", CHARGE), timeout=10)
    finally:
        rig.on_event = None
    return agent.returncode, said.decode()


@pytest.mark.parametrize(
    ("point", "executions", "outcomes"),
    [("before-send", 0, ["unknown"]), ("after-effect", 1, ["unknown"]), ("after-reply", 1, ["ok"])],
)
def test_it_dies_at_the_stated_point(rig: Rig, point: str, executions: int, outcomes: list[str]) -> None:
    """SIGKILL, executed or not as the point says, and nothing of the time after its death."""
    with rig.run(fault("kill", point=point)) as run:
        code, said = play(rig, run.port)
        assert code == -signal.SIGKILL
        assert "again" not in said
        if point != "after-reply":
            assert said == ""
        assert len(run.executed) == executions
        assert run.outcomes == outcomes
        assert run.fired == 1
        assert run.close()["failure"] is None


def test_it_strikes_every_time(rig: Rig) -> None:
    """Thirty of thirty kills after the effect: one execution each, no answer ever seen."""
    for _ in range(30):
        with rig.run(fault("kill", point="after-effect")) as run:
            assert play(rig, run.port) == (-signal.SIGKILL, "")
            assert len(run.executed) == 1


@pytest.mark.parametrize("stream", [True, False])
def test_after_the_reply_means_all_of_it(rig: Rig, stream: bool) -> None:
    """When the kill is asked for, the whole answer lies in the agent's socket already."""
    with rig.run(model_fault("kill", point="after-reply")) as run, rig.run() as plain:
        body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "max_tokens": 9}
        request = body | ({"stream": True} if stream else {})
        expected = plain.send("/v1/messages", request, timeout=0.1).body
        with socket.create_connection(("127.0.0.1", run.port)) as connection:
            asked = threading.Event()
            tokens: list[str] = []

            def note(event: dict[str, Any]) -> None:
                tokens.append(event["token"])
                asked.set()

            rig.on_event = note
            connection.sendall(post(run.port, "/v1/messages", request))
            assert asked.wait(5)
            rig.on_event = None
            readable = connection.recv(1 << 20, socket.MSG_DONTWAIT)
            rig.call(rig.driver.acted, tokens[0])
            heard = listen(connection)
        assert (heard.data, heard.end) == (b"", "fin")
        got = readable.partition(b"\r\n\r\n")[2]
        assert got == expected or b"".join(chunks(got)) == b"".join(chunks(expected))


def chunks(body: bytes) -> list[bytes]:
    """The contents of a chunked body."""
    found = []
    while body and (size := int(body.partition(b"\r\n")[0], 16)):
        body = body.partition(b"\r\n")[2]
        found.append(body[:size])
        body = body[size + 2 :]
    return found


def test_a_request_after_death_is_held_and_dropped(rig: Rig) -> None:
    """What the dying agent still sends is neither forwarded nor counted as an attempt."""
    with rig.run(fault("kill", point="after-effect")) as run:
        first = socket.create_connection(("127.0.0.1", run.port))
        second = socket.create_connection(("127.0.0.1", run.port))
        tokens: list[str] = []
        rig.on_event = lambda event: tokens.append(event["token"])
        first.sendall(post(run.port, "/tools/charge", CHARGE))
        assert listen(first, 0.2).end == "open"
        second.sendall(post(run.port, "/tools/charge", CHARGE))
        assert listen(second, 0.2).end == "open"
        rig.call(rig.driver.acted, tokens[0])
        assert (listen(second).data, listen(second).end) == (b"", "fin")
        rig.on_event = None
        first.close()
        second.close()
        answer = run.charge(timeout=0.2)
        assert answer.body == json_bytes(CHARGE_RESULT)
        assert len(run.executed) == 2
        assert [record.attempt for record in run.of_type("tool_call_started")] == [1, 2]


def test_an_agent_dies_once(rig: Rig) -> None:
    """Of two parallel calls that are both to kill it, the first does; the second has not fired."""
    at = {"tool": "charge", "call": "all"}
    with rig.run(fault("kill", at=at, point="after-effect")) as run:
        tokens: list[str] = []
        rig.on_event = lambda event: tokens.append(event["token"])
        connections = [socket.create_connection(("127.0.0.1", run.port)) for _ in range(2)]
        rig.service.latency_s = 0.2
        for number, connection in enumerate(connections):
            connection.sendall(post(run.port, "/tools/charge", CHARGE | {"order_id": f"o-{number}"}))
        assert listen(connections[0], 0.6).end == "open"
        assert len(tokens) == 1
        rig.call(rig.driver.acted, tokens[0])
        assert [listen(connection).data for connection in connections] == [b"", b""]
        rig.on_event = None
        for connection in connections:
            connection.close()
        assert run.fired == 1
        assert run.close()["failure"] is None


def test_a_kill_nobody_carries_out_fails_the_run(rig: Rig) -> None:
    """A harness that never answers the event leaves a failed run, no quiet pass."""
    with rig.run(fault("kill", point="before-send")) as run:
        run.charge(timeout=0.1)
        assert "killed" in (run.close()["failure"] or "")
        assert run.executed == []
