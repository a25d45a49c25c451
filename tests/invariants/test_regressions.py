"""Small histories at the edges of contract section 4, each with the one right verdict and why.

They were found by searching for differences between the judge and the naive reading in `tests/oracle`, or
mark a place where the text is easily misread. Both must say what is written here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from invariants.judge import judge_records
from tests.oracle.comparing import judged, records_of, valid
from tests.oracle.naive import judge_naively
from tests.oracle.palette import Fields


class Case(NamedTuple):
    """A history, and what one invariant must say of one run: a word, or (reason, evidence) pairs."""

    title: str
    invariant: str
    expected: str | list[tuple[str, tuple[int, ...]]]
    lines: list[Fields]
    run: str = "r"


def line(kind: str, **fields: Any) -> Fields:
    """One record; `t` and `run_id` are filled in where they do not matter."""
    return {"type": kind, **fields}


def start(attempt: str, **fields: Any) -> Fields:
    """An effectful start of tool x unless said otherwise."""
    return line("tool_call_started", **{"attempt_id": attempt, "effectful": True, "tool": "x", **fields})


def finish(attempt: str, outcome: str = "ok", **fields: Any) -> Fields:
    """The finish of that attempt."""
    return line("tool_call_finished", attempt_id=attempt, outcome=outcome, **fields)


def effect(effect_id: str, **fields: Any) -> Fields:
    """An applied effect of tool x unless said otherwise."""
    return line("effect", **{"effect_id": effect_id, "outcome": "applied", "tool": "x", **fields})


CASES = [
    Case(
        "a claimed-only effect is undone by a compensation whose start is not on record",
        "no-dangling-effect",
        "held",
        [
            start("a", step=2),
            finish("a"),
            line("compensation_finished", step=2, outcome="ok"),
            line("run_finished", status="partial_success"),
        ],
    ),
    Case(
        "two claimed-only effects undone together, without a start on record, are two compensated effects",
        "reverse-compensation",
        "held",
        [
            start("a", step=1),
            finish("a"),
            start("b", step=1),
            finish("b"),
            line("compensation_finished", step=1, outcome="ok"),
        ],
    ),
    Case(
        "without a start on record the finish of a compensation is its start",
        "reverse-compensation",
        [("out-of-order", (5, 6))],
        [
            start("a", step=1),
            finish("a"),
            start("b", step=2),
            finish("b"),
            line("compensation_finished", step=1, outcome="ok"),
            line("compensation_finished", step=2, outcome="ok"),
        ],
    ),
    Case(
        "a queue record after the start of its call queues nothing",
        "bounded-concurrency",
        "vacuous",
        [
            line("run_started", limits={"max_tenant_wait_s": 0}),
            start("a"),
            line("tool_call_queued", attempt_id="a"),
        ],
    ),
    Case(
        "two effects without digest and without intent may be one intent: nobody knows",
        "single-effect",
        "unobservable",
        [effect("e1", idempotency_key="k1"), effect("e2", idempotency_key="k2")],
    ),
    Case(
        "missing digests of one intent are equal",
        "single-effect",
        [("duplicate-intent", (1, 2))],
        [effect("e1", intent_id="i", idempotency_key="k1"), effect("e2", intent_id="i")],
    ),
    Case(
        "of two earlier effects of the intent the first with another key is the one collided with",
        "single-effect",
        [("duplicate-intent", (1, 2)), ("duplicate-key", (1, 3))],
        [
            effect("e1", intent_id="i", idempotency_key="k1"),
            effect("e2", intent_id="i", idempotency_key="k2"),
            effect("e3", intent_id="i", idempotency_key="k1"),
        ],
    ),
    Case(
        "a key that was only rejected before has not been met",
        "single-effect",
        "held",
        [
            line("effect", tool="y", outcome="rejected", idempotency_key="k"),
            effect("e1", idempotency_key="k"),
        ],
    ),
    Case(
        "a key is compared with its first meeting, whose missing digest equals any",
        "single-effect",
        "held",
        [
            line("effect", tool="x", outcome="deduplicated", idempotency_key="k"),
            line("effect", tool="x", outcome="deduplicated", idempotency_key="k", args_digest="d1"),
            line("effect", tool="x", outcome="deduplicated", idempotency_key="k", args_digest="d2"),
            effect("e1"),
        ],
    ),
    Case(
        "a claimed-only effect takes the tenant of its finish where its start names none",
        "single-effect",
        [("duplicate-intent", (2, 4))],
        [
            start("a1", tenant="b", intent_id="i"),
            finish("a1"),
            start("a2", intent_id="i"),
            finish("a2", tenant="b"),
        ],
    ),
    Case(
        "an effect of another tool under the key makes a claimed-only effect unobservable",
        "single-effect",
        "unobservable",
        [effect("e1", tool="y", idempotency_key="k"), start("a", idempotency_key="k"), finish("a")],
    ),
    Case(
        "one effect id in two worlds is two effects",
        "no-dangling-effect",
        [("unsettled", (3, 6))],
        [
            line("run_started", world="w1"),
            line("run_started", world="w2", run_id="q"),
            effect("e1"),
            effect("e1", run_id="q"),
            effect("c1", tool="undo", compensates="e1", run_id="q"),
            line("run_finished", status="failed", error={"kind": "down"}),
        ],
    ),
    Case(
        "a settlement that stands before the effect claims falsely too, and does not settle it",
        "no-dangling-effect",
        [("false-claim", (1, 2)), ("unfinished", (2,))],
        [line("effect_settled", step=1, disposition="compensated"), effect("e1", step=1)],
    ),
    Case(
        "the last of two ends counts, with what was returned as completed at any time",
        "no-dangling-effect",
        [("unsettled", (2, 5))],
        [
            effect("e1", step=1),
            effect("e2", step=2),
            line("run_finished", status="succeeded"),
            line("partial_success_returned", completed=[1]),
            line("run_finished", status="partial_success"),
        ],
    ),
    Case(
        "a process ended by a signal crashed, even after the end of its run; signal 0 is none",
        "no-escaped-exception",
        [("crash", (4,))],
        [
            line("run_finished", status="succeeded"),
            line("process_exited", signal=0, exit_code=0),
            line("process_exited", exit_code=1),
            line("process_exited", signal="SIGSEGV"),
        ],
    ),
    Case(
        "a breaker that opens once more: the proof names the last change before the call",
        "breaker-respected",
        [("call-while-open", (2, 3))],
        [
            line("breaker_state_changed", tool="x", to="open"),
            line("breaker_state_changed", tool="x", to="open"),
            start("a"),
        ],
    ),
    Case(
        "the end of a process ends the ban, a half-open breaker without probes is a new one",
        "breaker-respected",
        [("call-while-open", (4, 5))],
        [
            line("breaker_state_changed", tool="x", to="open"),
            line("process_exited", injected=True),
            start("a"),
            line("breaker_state_changed", tool="x", to="half_open"),
            start("b"),
        ],
    ),
    Case(
        "the second start of an attempt is no call",
        "breaker-respected",
        "held",
        [start("a"), line("breaker_state_changed", tool="x", to="open"), start("a")],
    ),
    Case(
        "an ignored run_started is no step of its run, a resuming one is",
        "budgets",
        [("steps", (5,))],
        [
            line("run_started", limits={"steps": 1}),
            line("run_started", step=1),
            line("exception", handled=True, step=2),
            line("process_exited", injected=True),
            line("run_started", step=3),
        ],
    ),
    Case(
        "within the tolerance a limit holds",
        "budgets",
        "held",
        [
            line("run_started", t=0.0, limits={"wall_clock_s": 2, "grace_s": 0, "tokens": 50}),
            line("model_call_finished", t=1.0, input_tokens=50.0000004),
            line("run_finished", t=2.0000004, status="succeeded"),
        ],
    ),
    Case(
        "a call whose queue record names no group is in the group of its start",
        "bounded-concurrency",
        [("group-peak", (3,))],
        [
            line("run_started", limits={"group_concurrency": {"g": 0}}),
            line("tool_call_queued", attempt_id="a"),
            start("a", resource_group="g"),
        ],
    ),
    Case(
        "a call that was refused and started all the same overtakes nobody",
        "bounded-concurrency",
        "held",
        [
            line("run_started", limits={"max_tenant_wait_s": 1}),
            line("tool_call_queued", attempt_id="a", tenant="a"),
            line("tool_call_queued", attempt_id="b", tenant="b"),
            line("tool_call_refused", attempt_id="b"),
            start("b"),
        ],
    ),
    Case(
        "the windows of undoing match without step, so this effect came after the undoing",
        "reverse-compensation",
        "vacuous",
        [
            line("compensation_started", tool="undo"),
            line("compensation_finished", outcome="error"),
            effect("e1"),
        ],
    ),
    Case(
        "an effect while an undoing of the run is under way",
        "reverse-compensation",
        [("forward-during-compensation", (1, 3))],
        [
            line("compensation_started", step=1, tool="undo"),
            line("compensation_finished", outcome="ok"),
            effect("e1"),
        ],
    ),
    Case(
        "words cut off before the call match, a whole message after its start does not",
        "effect-provenance",
        [("cut-arguments", (1, 4))],
        [
            line("model_tool_call", tool="x", complete=False),
            start("a"),
            line("model_tool_call", tool="x", complete=True),
            effect("e1", attempt_id="a"),
        ],
    ),
    Case(
        "a limit of null is no limit",
        "bounded-concurrency",
        "vacuous",
        [line("run_started", limits={"group_concurrency": {"g": None}}), start("a", resource_group="g")],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
def test_edges_of_the_contract(case: Case) -> None:
    """Judge and oracle give this small history the verdict that the contract's text demands."""
    lines = [{"t": float(n), "run_id": "r", **fields} for n, fields in enumerate(case.lines)]
    assert valid(lines)
    for verdicts in (judge_naively(records_of(lines)), judged(judge_records, records_of(lines))):
        mine = [v for v in verdicts if (v.run_id, v.invariant) == (case.run, case.invariant)]
        if isinstance(case.expected, str):
            assert [v.verdict for v in mine] == [case.expected]
        else:
            assert [(v.reason, v.evidence) for v in mine] == case.expected
