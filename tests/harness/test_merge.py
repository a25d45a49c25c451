"""Four sources become one stream: each call once, in the order in which things can have happened."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.merge import merge
from traces.history import Record


def record(kind: str, t: float, **fields: Any) -> Record:
    """A record of the run `r1`."""
    return Record(type=kind, t=t, run_id="r1", **fields)


START = record("run_started", 1.0, source="harness")


def types(records: list[Record]) -> list[str]:
    """The types of records, in order."""
    return [item.type for item in records]


def test_a_call_is_held_once() -> None:
    """The agent's account of a call adds step, scope, deadline and outcome to the wire's record of it."""
    merged = merge(
        harness=[START],
        wire=[
            record("tool_call_started", 2.0, source="wire", attempt_id="a1", wire="w1", tool="charge", step=1),
            record("tool_call_finished", 2.2, source="wire", attempt_id="a1", wire="w1", outcome="unknown"),
        ],
        effects=[],
        agent=[
            record(
                "tool_call_started",
                1.9,
                attempt_id="a1",
                tool="charge",
                step=7,
                scope="root/pay",
                deadline_remaining_s=4.0,
            ),
            record("tool_call_finished", 2.1, attempt_id="a1", outcome="timeout"),
        ],
    )
    assert types(merged) == ["run_started", "tool_call_started", "tool_call_finished"]
    started, finished = merged[1:]
    assert (started.t, started.step, started.scope, started.source) == (1.9, 7, "root/pay", "wire")
    assert (finished.t, finished.outcome) == (2.1, "timeout")


def test_what_never_reached_the_wire_stays_the_agents() -> None:
    """A call that was never sent is still on record, as the agent's."""
    own = record("tool_call_started", 2.0, attempt_id="a9", tool="charge", source="agent")
    assert merge(harness=[START], wire=[], effects=[], agent=[own]) == [START, own]


def test_an_answer_is_read_after_it_was_sent() -> None:
    """A coarse clock of the agent cannot move its reading of an answer before the answer."""
    merged = merge(
        harness=[START],
        wire=[
            record("tool_call_started", 2.0005, attempt_id="a1", wire="w1", tool="charge"),
            record("tool_call_finished", 2.0107, attempt_id="a1", wire="w1", outcome="ok"),
        ],
        effects=[record("effect", 2.0055, source="service", wire="w1", effect_id="e1", outcome="applied")],
        agent=[
            record("tool_call_started", 2.0, attempt_id="a1"),
            record("tool_call_finished", 2.01, attempt_id="a1", outcome="ok"),
        ],
    )
    assert types(merged) == ["run_started", "tool_call_started", "effect", "tool_call_finished"]
    assert merged[-1].t == 2.0107


def test_effects_learn_from_the_request_that_caused_them() -> None:
    """Step, attempt, intent and digests of an effect are those of the request it goes back to."""
    merged = merge(
        harness=[START],
        wire=[
            record(
                "tool_call_started",
                2.0,
                attempt_id="a1",
                wire="w1",
                tool="charge",
                step=3,
                intent_id="i",
                args_digest="d",
            )
        ],
        effects=[record("effect", 1.999, source="service", wire="w1", effect_id="e1", outcome="applied")],
        agent=[],
    )
    effect = merged[-1]
    assert (effect.type, effect.t, effect.step, effect.attempt_id) == ("effect", 2.0, 3, "a1")
    assert (effect.intent_id, effect.args_digest) == ("i", "d")


def test_model_calls_are_counted_on_the_wire() -> None:
    """The agent's own model records would count tokens twice; they only lend their step."""
    merged = merge(
        harness=[START],
        wire=[
            record("model_call_started", 2.1, source="wire", wire="w1", step=1),
            record("model_call_finished", 2.2, source="wire", wire="w1", input_tokens=10, output_tokens=5, step=1),
        ],
        effects=[],
        agent=[
            record("model_call_started", 2.0, step=4),
            record("model_call_finished", 2.21, input_tokens=10, output_tokens=5, step=4),
            record("model_call_started", 2.22, step=5),
        ],
    )
    assert types(merged) == ["run_started", "model_call_started", "model_call_finished"]
    assert [item.step for item in merged[1:]] == [4, 4]


def test_nothing_stands_before_the_start() -> None:
    """A record of an agent whose clock lags is moved up to the start of its run."""
    merged = merge(harness=[START], wire=[], effects=[], agent=[record("plan_created", 0.4, source="agent")])
    assert [item.t for item in merged] == [1.0, 1.0]
    assert types(merged) == ["run_started", "plan_created"]


def test_an_agent_keeps_its_own_order() -> None:
    """Records of one clock tick stay in the order in which the agent wrote them, whatever they are."""
    own = [
        record("breaker_state_changed", 2.0, tool="charge", to="closed", source="agent"),
        record("tool_call_started", 2.0, attempt_id="a1", tool="charge"),
        record("tool_call_queued", 2.0, attempt_id="a2", tool="charge"),
        record("effect_settled", 2.0, step=1),
    ]
    wire = [record("tool_call_started", 2.0004, source="wire", attempt_id="a1", wire="w1", tool="charge")]
    merged = merge(harness=[START], wire=wire, effects=[], agent=own)
    assert types(merged)[1:] == [item.type for item in own]
    assert merged[2].wire == "w1"


@pytest.mark.parametrize("tick", [0.001, 0.01])
def test_a_call_comes_after_the_words_that_asked_for_it(tick: float) -> None:
    """A coarse clock cannot put a call before the model's message that asked for it."""
    merged = merge(
        harness=[START],
        wire=[
            record("model_tool_call", 2.0004, source="wire", tool="charge", complete=True),
            record("tool_call_started", 2.0008, source="wire", attempt_id="a1", wire="w1", tool="charge"),
        ],
        effects=[],
        agent=[record("tool_call_started", int(2.0006 / tick) * tick, attempt_id="a1", tool="charge")],
    )
    assert types(merged)[1:] == ["model_tool_call", "tool_call_started"]


def test_what_comes_after_an_answer_stays_after_it() -> None:
    """A coarse clock cannot put a settlement before the effect that it settles."""
    merged = merge(
        harness=[START],
        wire=[
            record("tool_call_started", 2.0004, attempt_id="a1", wire="w1", tool="charge"),
            record("tool_call_finished", 2.0009, attempt_id="a1", wire="w1", outcome="ok"),
        ],
        effects=[record("effect", 2.0007, source="service", wire="w1", effect_id="e1", outcome="applied")],
        agent=[
            record("tool_call_started", 2.0, attempt_id="a1"),
            record("tool_call_finished", 2.0, attempt_id="a1", outcome="ok"),
            record("effect_settled", 2.0, step=1, disposition="kept"),
            record("run_finished", 2.0, status="succeeded"),
        ],
    )
    assert types(merged)[1:] == [
        "tool_call_started",
        "effect",
        "tool_call_finished",
        "effect_settled",
        "run_finished",
    ]


@pytest.mark.parametrize("named", [True, False], ids=["with-own-ids", "without-ids"])
def test_a_call_is_held_once_without_the_header(named: bool) -> None:
    """An agent that tells of its calls and sends no attempt id is paired by tool, key and time: one call, not two."""
    ids = [{"attempt_id": name} if named else {} for name in ("mine-1", "mine-2")]
    merged = merge(
        harness=[START],
        wire=[
            record(
                "tool_call_started",
                2.001,
                source="wire",
                attempt_id="w1",
                wire="w1",
                tool="charge",
                idempotency_key="k",
            ),
            record("tool_call_finished", 2.1, source="wire", attempt_id="w1", wire="w1", outcome="error"),
            record(
                "tool_call_started",
                3.001,
                source="wire",
                attempt_id="w2",
                wire="w2",
                tool="charge",
                idempotency_key="k",
            ),
            record("tool_call_finished", 3.1, source="wire", attempt_id="w2", wire="w2", outcome="ok"),
        ],
        effects=[],
        agent=[
            record("tool_call_started", 2.0, tool="charge", step=1, **ids[0]),
            record("tool_call_finished", 2.11, tool="charge", outcome="error", **ids[0]),
            record("tool_call_started", 3.0, tool="charge", step=1, args_digest="by rules of its own", **ids[1]),
            record("tool_call_finished", 3.11, tool="charge", outcome="ok", **ids[1]),
        ],
    )
    assert types(merged)[1:] == ["tool_call_started", "tool_call_finished"] * 2
    assert [item.wire for item in merged[1:]] == ["w1", "w1", "w2", "w2"]
    assert [item.step for item in merged if item.type == "tool_call_started"] == [1, 1]
    starts, finishes = merged[1::2], merged[2::2]
    assert [item.attempt_id for item in starts] == [item.attempt_id for item in finishes]


def test_a_try_that_never_arrived_stays_beside_the_one_that_did() -> None:
    """The request on the wire belongs to the nearest start before it."""
    own = [
        record("tool_call_started", 2.0, attempt_id="x1", tool="charge"),
        record("tool_call_finished", 2.5, attempt_id="x1", outcome="unknown"),
        record("tool_call_started", 3.0, attempt_id="x2", tool="charge"),
    ]
    wire = [record("tool_call_started", 3.01, source="wire", attempt_id="w1", wire="w1", tool="charge")]
    merged = merge(harness=[START], wire=wire, effects=[], agent=own)
    assert [(item.attempt_id, item.wire) for item in merged[1:]] == [("x1", None), ("x1", None), ("x2", "w1")]


def test_times_an_agent_cannot_mean() -> None:
    """Nothing of an agent stands outside of its life; its end comes after what it told before."""
    end = record("process_exited", 9.0, source="harness", exit_code=0)
    merged = merge(
        harness=[START, end],
        wire=[],
        effects=[],
        agent=[
            record("plan_created", -5.0, source="agent"),
            record("mechanism_acted", 8.0, source="agent", name="x"),
            record("run_finished", 2.0, status="succeeded"),
            record("exception", 1e12, handled=True),
        ],
    )
    assert [(item.type, item.t) for item in merged] == [
        ("run_started", 1.0),
        ("plan_created", 1.0),
        ("mechanism_acted", 8.0),
        ("run_finished", 8.0),
        ("exception", 9.0),
        ("process_exited", 9.0),
    ]


@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from(["a", "b", "c"])), max_size=30), st.integers(1, 20))
def test_order_within_a_tick_survives(steps: list[tuple[int, str]], tick_ms: int) -> None:
    """Whatever the wire saw in between: of an agent with a coarse but steady clock, nothing changes places."""
    now, own = 2.0, []
    for index, (pause_ms, name) in enumerate(steps):
        now += pause_ms / 1000
        coarse = int(now * 1000 / tick_ms) * tick_ms / 1000
        own.append(record("mechanism_acted", coarse, source="agent", name=f"{name}{index}"))
    merged = merge(harness=[START], wire=[record("model_call_started", 2.01, wire="w1")], effects=[], agent=own)
    assert [item.name for item in merged if item.type == "mechanism_acted"] == [item.name for item in own]
