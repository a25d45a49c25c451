"""One turn of the model, in virtual time and without a wire."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from agents.reference import model
from agents.reference.budget import Account, TimePlan
from agents.reference.decisions import REFERENCE
from agents.reference.errors import RunStopped
from agents.reference.events import Events
from agents.reference.model import RESCUES, ModelClient, Question, Said
from agents.reference.transport import Loss, Reply
from agents.reference.turn import Conversation
from agents.reference.wire_anthropic import AnthropicMessages
from tests.agents.fake_clock import FakeClock
from tests.agents.fake_world import events


def said(stop: str = "end_turn", text: str = "Hello") -> Reply:
    """A whole message."""
    usage = {"input_tokens": 50, "output_tokens": 5}
    body = {"content": [{"type": "text", "text": text}], "stop_reason": stop, "usage": usage}
    return Reply(200, {}, json.dumps(body).encode())


def refused(status: int, kind: str = "x", **headers: str) -> Reply:
    """An error of the provider."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, names, json.dumps({"type": "error", "error": {"type": kind, "message": "m"}}).encode())


class Bench:
    """A model client with scripted answers."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.clock = FakeClock()
        self.folder = folder
        self.answers: list[Reply | Loss] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.saved: list[Mapping[str, int]] = []
        self.client = ModelClient(
            wire=AnthropicMessages(),
            url="http://m",
            key="k",
            model="m",
            stream=False,
            need_s=4.0,
            events=Events(folder / "events.jsonl", self.clock, {}),
            clock=self.clock,
            account=Account(),
            decisions=REFERENCE,
            save=lambda spent: self.saved.append(dict(spent)),
        )
        patch.setattr(model, "exchange", self.exchange)

    def exchange(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes,
        total_s: float,
        idle_s: float,
        sink: Callable[[bytes], bool] | None,
    ) -> Reply:
        """Stand in for the wire."""
        self.bodies.append(json.loads(body))
        self.headers.append(headers)
        given = self.answers.pop(0)
        if isinstance(given, Loss):
            self.clock.time += total_s if given.kind == "timeout" else 0.0
            raise given
        if sink is not None and given.status == 200:
            sink(given.body)
        return given

    def ask(self, wall_clock_s: float = 60.0) -> Said:
        """Ask for one turn."""
        scope = TimePlan(1000.0, wall_clock_s).forward
        return self.client.ask(Question(Conversation("Do it.", (), ()), 1, 1, scope))

    def stopped(self, wall_clock_s: float = 60.0) -> RunStopped:
        """Ask, and expect the end of the run."""
        with pytest.raises(RunStopped) as caught:
            self.ask(wall_clock_s)
        return caught.value


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A fresh client."""
    return Bench(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "first",
    [
        refused(429, retry_after="2"),
        refused(503),
        refused(529),
        refused(500),
        Loss("timeout", "", sent=True),
        Loss("connection_reset", "", sent=True),
        Loss("connect_refused", "", sent=False),
    ],
)
def test_passing_trouble_is_waited_out(bench: Bench, first: Reply | Loss) -> None:
    """One bad moment: the same bytes again, with the count of the retry in a header."""
    bench.answers = [first, said()]
    assert bench.ask().text == "Hello"
    assert bench.bodies[0] == bench.bodies[1]
    assert [headers["X-Stainless-Retry-Count"] for headers in bench.headers] == ["0", "1"]


@pytest.mark.parametrize(
    ("answer", "kind", "calls"),
    [
        (refused(529), "model_overloaded", 4),
        (refused(429, retry_after="600"), "model_overloaded", 1),
        (refused(400), "model_rejected", 1),
        (refused(401), "model_rejected", 1),
        (Loss("connect_refused", "", sent=False), "model_unavailable", 4),
        (said("refusal"), "model_stopped", 1),
        (said("max_tokens"), "model_truncated", RESCUES + 1),
        (Reply(200, {}, b"{"), "model_truncated", RESCUES + 1),
        (Loss("connection_cut", "", sent=True, begun=True), "model_truncated", RESCUES + 1),
    ],
)
def test_lasting_trouble_ends_the_run_in_words(bench: Bench, answer: Reply | Loss, kind: str, calls: int) -> None:
    """Each kind of trouble is given up after a bounded number of calls, under its name."""
    bench.answers = [answer] * 20
    assert bench.stopped().failure.kind == kind
    assert len(bench.bodies) == calls


def test_a_cut_answer_is_asked_for_with_more_room(bench: Bench) -> None:
    """The same size again would be cut again."""
    bench.answers = [said("max_tokens"), said()]
    bench.ask()
    assert bench.bodies[1]["max_tokens"] == 2 * bench.bodies[0]["max_tokens"]


def test_what_cannot_finish_is_not_started(bench: Bench) -> None:
    """Less time left than a typical answer needs: the run ends, and the model is not asked."""
    stopped = bench.stopped(wall_clock_s=4.5)
    assert (stopped.budget, bench.bodies) == ("wall_clock", [])


def test_tokens_of_lost_answers_count(bench: Bench) -> None:
    """An answer that never came was paid for: the estimate is booked, and was stored before the call."""
    bench.answers = [Loss("timeout", "", sent=True), said()]
    bench.ask()
    lost = bench.client.account.used_input - 50
    assert lost > 0
    assert bench.saved[0]["used_input"] == lost


def test_a_refused_call_costs_nothing(bench: Bench) -> None:
    """A provider that turns a request away does not bill it."""
    bench.answers = [refused(529), said()]
    bench.ask()
    assert (bench.client.account.used_input, bench.client.account.used_output) == (50, 5)


def test_an_error_inside_a_stream_is_an_overload(bench: Bench) -> None:
    """The stream began well and then says overloaded: waited out like the status."""
    bench.client.stream = True
    event = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    stop = 'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\ndata: {"type":"message_stop"}\n\n'
    bench.answers = [Reply(200, {}, f"data: {json.dumps(event)}\n\n".encode()), Reply(200, {}, stop.encode())]
    assert bench.ask().calls == ()
    finished = [event for event in events(bench.folder) if event["type"] == "model_call_finished"]
    assert [event["outcome"] for event in finished] == ["error", "ok"]
