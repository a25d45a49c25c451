"""Errors of our own: the run fails in words, its flow or connection ends, and nothing hangs."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from mitmproxy.hooks import all_hooks

from injectors.core import Moment
from injectors.drivers.proxy import hooks
from injectors.drivers.proxy.crossing import Crossing
from injectors.drivers.proxy.hooks import Hooks
from injectors.drivers.proxy.prompt import FLOW_HOOKS, PromptStream
from injectors.network.latency import Latency
from injectors.wire import Wire
from tests.injectors.rig import Rig, fault


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
