"""Four sources become one stream: each call once, in the order in which things can have happened."""

from __future__ import annotations

from typing import Any

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
