"""One logical call, in virtual time and without a wire."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agents.reference import calls
from agents.reference.breaker import Breakers
from agents.reference.budget import Scope, TimePlan
from agents.reference.calls import Order, ToolClient
from agents.reference.decisions import REFERENCE
from agents.reference.errors import Failure
from agents.reference.events import Events
from agents.reference.retry import RetryBudget
from agents.reference.tools import Tool
from agents.reference.transport import Loss, Reply
from tests.agents.fake_clock import FakeClock
from tests.agents.fake_world import events

KEYED = Tool("t", "keyed", "money", p99_s=1.0)
READ = Tool("t", "natural", "none", p99_s=1.0)
ONCE = Tool("t", "irreversible", "visible", p99_s=1.0)

Answer = Reply | Loss
TIMEOUT = Loss("timeout", "late", sent=True)
REFUSED = Loss("connect_refused", "nobody there", sent=False)


def answer(status: int, body: Any = None, **headers: str) -> Reply:
    """An answer of the service."""
    return Reply(
        status, {name.replace("_", "-"): value for name, value in headers.items()}, json.dumps(body).encode()
    )


def state(name: str, result: Any = None) -> Reply:
    """An answer to a question about a key."""
    return answer(200, {"state": name, "result": result})


OK = answer(200, {"id": "x"})
BROKEN = answer(500, {"error": {"may_have_taken_effect": False}})


class Bench:
    """A tool client whose answers are scripted: `post` for calls, `get` for questions."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.clock = FakeClock()
        self.folder = folder
        told = Events(folder / "events.jsonl", self.clock, {})
        self.client = ToolClient("http://t", told, self.clock, Breakers(told, self.clock), REFERENCE)
        self.post: list[Answer] = []
        self.get: list[Answer] = []
        self.sent: list[tuple[str, Mapping[str, str]]] = []
        self.took_s = 0.0
        patch.setattr(calls, "exchange", self.exchange)

    def exchange(
        self, method: str, url: str, *, headers: Mapping[str, str], total_s: float, body: Any = None
    ) -> Reply:
        """Stand in for the wire."""
        self.sent.append((method, headers))
        given = (self.post if method == "POST" else self.get).pop(0)
        self.clock.time += total_s if isinstance(given, Loss) and given.kind == "timeout" else self.took_s
        if isinstance(given, Loss):
            raise given
        return given

    def perform(self, tool: Tool = KEYED, scope: Scope | None = None, **given: Any) -> calls.Result:
        """One call."""
        within = scope or TimePlan(self.clock.now(), 60.0).forward
        return self.client.perform(Order(tool, {"a": 1}, "key", "intent", 3, within, "s3", **given))

    def methods(self) -> str:
        """What was sent, in order: C for a call, Q for a question."""
        return "".join("C" if method == "POST" else "Q" for method, _ in self.sent)

    def told(self, kind: str) -> list[dict[str, Any]]:
        """Events of a type."""
        return [event for event in events(self.folder) if event["type"] == kind]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A fresh client."""
    return Bench(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("tool", "post", "get", "methods", "ends"),
    [
        (KEYED, [OK], [], "C", "succeeded"),
        (KEYED, [TIMEOUT], [state("applied", {"id": "x"})], "CQ", "succeeded"),
        (KEYED, [TIMEOUT, OK], [state("unknown")], "CQC", "succeeded"),
        (KEYED, [TIMEOUT], [state("in_flight"), state("applied")], "CQQ", "succeeded"),
        (KEYED, [TIMEOUT], [state("in_flight")] * 6, "CQQQQQQ", "uncertain"),
        (KEYED, [TIMEOUT, OK], [answer(404)] * 3, "CQQQC", "succeeded"),
        (KEYED, [BROKEN, BROKEN, OK], [], "CCC", "succeeded"),
        (KEYED, [BROKEN] * 4, [], "CCCC", "failed"),
        (KEYED, [REFUSED, OK], [], "CC", "succeeded"),
        (KEYED, [answer(409)], [state("unknown")], "CQ", "failed"),
        (KEYED, [answer(409)], [state("in_flight"), state("applied")], "CQQ", "succeeded"),
        (KEYED, [answer(422)], [], "C", "failed"),
        (KEYED, [TIMEOUT, *[REFUSED] * 3], [answer(503)] * 12, "CQQQCQQQCQQQCQQQ", "uncertain"),
        (KEYED, [TIMEOUT, REFUSED, OK], [answer(503)] * 3 + [state("unknown")], "CQQQCQC", "succeeded"),
        (READ, [TIMEOUT, OK], [], "CC", "succeeded"),
        (ONCE, [TIMEOUT], [state("applied")], "CQ", "succeeded"),
        (ONCE, [TIMEOUT], [state("unknown")], "CQ", "uncertain"),
        (ONCE, [REFUSED], [], "C", "failed"),
        (ONCE, [BROKEN], [], "C", "failed"),
    ],
)
def test_sequences(bench: Bench, tool: Tool, post: list[Answer], get: list[Answer], methods: str, ends: str) -> None:
    """What is sent, in which order, and how the call ends: doubt is settled by asking, and only then anything is
    repeated; an irreversible call is sent once."""
    bench.post, bench.get = list(post), list(get)
    assert bench.perform(tool).state == ends
    assert bench.methods() == methods


def test_attempts_share_the_key_and_nothing_else(bench: Bench) -> None:
    """Key, intent and step are of the action, the attempt id is of the attempt, the deadline falls."""
    bench.post, bench.took_s = [BROKEN, OK], 1.0
    bench.perform()
    (_, first), (_, second) = bench.sent
    for name in ("Idempotency-Key", "X-Intent-Id", "X-Step"):
        assert first[name] == second[name]
    assert (first["X-Attempt-Id"], second["X-Attempt-Id"]) == ("s3.g1.a1", "s3.g1.a2")
    assert int(second["X-Agent-Deadline-Ms"]) <= int(first["X-Agent-Deadline-Ms"]) - 1000


def test_every_attempt_is_written_down_before_it_starts(bench: Bench) -> None:
    """The ledger hears of an attempt before the wire does; refused attempts are none."""
    written: list[tuple[int, int]] = []
    bench.post = [BROKEN, OK]
    order = Order(KEYED, {}, "key", "intent", 3, TimePlan(bench.clock.now(), 60.0).forward, "s3")
    bench.client.perform(order, begun=lambda attempt: written.append((attempt, len(bench.sent))))
    assert written == [(1, 0), (2, 1)]


def test_what_cannot_finish_is_not_started(bench: Bench) -> None:
    """Less time left than the p99 times the factor: refused with reason budget, nothing sent."""
    result = bench.perform(scope=Scope("root", 1001.4, 1001.4, 60.0))
    assert (result.state, result.failure and result.failure.kind) == ("refused", "budget_exhausted")
    assert (bench.methods(), bench.told("tool_call_refused")[0]["reason"]) == ("", "budget")


def test_a_retry_that_does_not_fit_is_refused(bench: Bench) -> None:
    """There was time for one attempt: the second, back-off included, is refused and the first failure stands."""
    bench.post, bench.took_s = [BROKEN], 1.0
    result = bench.perform(scope=Scope("root", 1002.0, 1002.0, 60.0))
    assert (result.state, result.failure and result.failure.kind) == ("failed", "http_500")
    assert bench.told("tool_call_refused")[0]["attempt_id"] == "s3.g1.a2"


def test_a_stated_wait_is_kept_and_bounded(bench: Bench) -> None:
    """Retry-After within the time: waited for. Beyond: no waiting at all."""
    bench.post = [answer(429, None, retry_after="7"), OK]
    assert bench.perform().state == "succeeded"
    assert 7.0 <= sum(bench.clock.slept) < 7.5
    bench.clock.slept.clear()
    bench.post = [answer(429, None, retry_after="70")]
    assert bench.perform().state == "failed"
    assert bench.clock.slept == []


def test_the_share_of_retries_is_kept_and_said(bench: Bench) -> None:
    """The share is used up: no further attempt, and the exhaustion is told."""
    bench.post = [BROKEN] * 9
    bench.client.budget = RetryBudget(minimum=1)
    bench.perform()
    assert bench.methods() == "CC"
    assert [event["budget"] for event in bench.told("budget_exhausted")] == ["retry"]


def test_an_interrupted_call_is_asked_about_first(bench: Bench) -> None:
    """A restart finds a call begun: the state is asked for before anything is sent, and attempts go on counting."""
    doubt = Failure("interrupted", "", True, True)
    bench.post, bench.get = [OK], [state("unknown")]
    assert bench.perform(attempts=2, doubt=doubt).state == "succeeded"
    assert bench.methods() == "QC"
    assert bench.sent[1][1]["X-Attempt-Id"] == "s3.g1.a3"


def test_an_unreadable_result_is_asked_for(bench: Bench) -> None:
    """200 with rubbish: done, most likely; the result comes from the status route."""
    bench.post, bench.get = [Reply(200, {}, b"<html>")], [state("applied", {"id": "y"})]
    assert bench.perform().value == {"id": "y"}


def test_a_replay_is_told_as_such(bench: Bench) -> None:
    """The service says it answered from memory: the outcome is deduplicated, and a success."""
    bench.post = [answer(200, {"id": "x"}, idempotent_replayed="true")]
    assert bench.perform().state == "succeeded"
    assert bench.told("tool_call_finished")[0]["outcome"] == "deduplicated"


def test_an_error_of_our_own_does_not_lock_the_breaker(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception in the middle of a call passes through, and the breaker's ticket comes back."""

    def explode(*args: Any, **named: Any) -> Reply:
        raise KeyError("bug")

    monkeypatch.setattr(calls, "exchange", explode)
    for _ in range(5):
        with pytest.raises(KeyError):
            bench.perform()
    assert bench.told("breaker_state_changed")[0]["to"] == "open"
    assert bench.perform().state == "refused"
