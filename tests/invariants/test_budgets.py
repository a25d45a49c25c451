"""budgets: every sentence of contract section 4.2, as small histories."""

from __future__ import annotations

import pytest

from tests.invariants.shorthand import (
    Fields,
    Said,
    call,
    case,
    done,
    effect,
    ended,
    exited,
    of,
    record,
    refused,
    said,
    started,
    undoing,
)


def step(number: int, **fields: object) -> Fields:
    """A record of the agent in that step."""
    return record("mechanism_acted", step=number, **fields)


def model(tokens: float = 0, **fields: object) -> Fields:
    """A model call with so many input tokens."""
    return record("model_call_finished", input_tokens=tokens, **fields)


def with_deadline(attempt: str, t: float, left: float, **fields: object) -> Fields:
    """A call at `t` that carries what is left of its budget."""
    return call(attempt, t=t, deadline_remaining_s=left, **fields)


def lag(max_s: float = 0.3) -> Fields:
    """The harness's clock was late by so much."""
    return record("harness_lag", max_s=max_s)


PLAN = record("plan_created", actions=[{"step": 1, "tool": "charge"}, {"step": 2, "tool": "ship"}])
EXHAUSTED = record("budget_exhausted", budget="tokens")

CASES = [
    # steps
    case("as many steps as allowed", "held", started(steps=2), step(1), step(2), step(1), ended()),
    case("one step too many", [("steps", (4,))], started(steps=2), step(1), step(2), step(3), step(4)),
    case("steps of the wire count", [("steps", (3,))], started(steps=1), step(1), step(2, source="wire")),
    case(
        "steps that only the service or the harness names do not count",
        "held",
        started(steps=1),
        step(1),
        effect("e", step=2),
        step(3, source="harness"),
        record("fault_injected", step=4),
        exited(step=5),
    ),
    case(
        "an effect that the wire reports counts",
        [("steps", (3,))],
        started(steps=1),
        step(1),
        effect("e", step=2, source="wire"),
    ),
    case(
        "the step of a start that does not count is still one of its run",
        [("steps", (3,))],
        started(steps=1),
        call("a", step=1),
        call("a", step=2),
    ),
    case(
        "the step of an ignored run_started is none", "held", started(steps=1), step(1), record("run_started", step=2)
    ),
    # wall clock
    case("the grace is half a second", "held", started(wall_clock_s=1), ended(t=1.6)),
    case("the run outlives its time and its grace", [("wall-clock", (1, 2))], started(wall_clock_s=1), ended(t=1.61)),
    case("the grace can be stated", [("wall-clock", (1, 2))], started(wall_clock_s=1, grace_s=0), ended(t=1.11)),
    case("a millionth is allowed", "held", started(wall_clock_s=1, grace_s=0), ended(t=1.1000005)),
    case("the last of several ends counts", [("wall-clock", (1, 3))], started(wall_clock_s=1), ended(), ended(t=9)),
    case("after the end nothing counts", "held", started(wall_clock_s=1), ended(), step(1, t=9), exited(t=9)),
    case(
        "without an end the last record of the agent is it",
        [("wall-clock", (1, 3))],
        started(wall_clock_s=1),
        exited(),
        step(1, t=9),
    ),
    case(
        "without an end the last exit is it", [("wall-clock", (1, 3))], started(wall_clock_s=1), step(1), exited(t=9)
    ),
    case("an effect alone does not prolong the run", "held", started(wall_clock_s=1), step(1), effect("e", t=9)),
    case(
        "a compensation gets the time for recovery",
        "held",
        started(wall_clock_s=1, recovery_s=8),
        undoing(1),
        ended(t=9),
    ),
    case(
        "so does a resumption",
        "held",
        started(wall_clock_s=1, recovery_s=8),
        record("run_resumed"),
        ended(t=9),
    ),
    case(
        "so does a further run_started after an exit",
        "held",
        started(wall_clock_s=1, recovery_s=8),
        exited(),
        started(),
        ended(t=9),
    ),
    case(
        "an ignored run_started is no resumption",
        [("wall-clock", (1, 3))],
        started(wall_clock_s=1, recovery_s=8),
        started(),
        ended(t=9),
    ),
    case(
        "so does an injected kill",
        "held",
        started(wall_clock_s=1, recovery_s=8),
        exited(signal="SIGKILL", injected=True),
        ended(t=9),
    ),
    case(
        "an exit of its own accord gets none",
        [("wall-clock", (1, 3))],
        started(wall_clock_s=1, recovery_s=8),
        exited(),
        ended(t=9),
    ),
    case(
        "a resumption restarts nothing",
        [("wall-clock", (1, 4))],
        started(wall_clock_s=1),
        exited(injected=True),
        started(wall_clock_s=100),
        ended(t=9),
    ),
    case("a late clock of the harness proves nothing", "unobservable", started(wall_clock_s=1), lag(), ended(t=9)),
    case(
        "a clock a quarter of a second late is good enough",
        [("wall-clock", (1, 3))],
        started(wall_clock_s=1),
        lag(0.25),
        ended(t=9),
    ),
    case(
        "a late clock hides no other budget",
        [("steps", (3,))],
        started(wall_clock_s=1, steps=0),
        lag(),
        step(1),
        ended(t=9),
    ),
    case("a late clock matters only where time is limited", "held", started(steps=5), lag(), ended(t=9)),
    # tokens and cost
    case("tokens up to the limit", "held", started(tokens=10), model(4), model(4, output_tokens=2)),
    case(
        "the record that passes the limit has broken it",
        [("tokens", (3,))],
        started(tokens=10),
        model(6),
        model(3, output_tokens=2),
        model(9),
    ),
    case("tokens limited and none carried", "unobservable", started(tokens=10), step(1)),
    case("a record that carries zero tokens carries some", "held", started(tokens=10), model(0)),
    case("cost up to the limit", "held", started(cost_usd=0.3), model(cost_usd=0.1), model(cost_usd=0.2)),
    case("cost past the limit", [("cost", (3,))], started(cost_usd=0.3), model(cost_usd=0.2), model(cost_usd=0.2)),
    case("cost limited and none carried", "unobservable", started(cost_usd=1), model(5)),
    case(
        "another run's tokens are not this one's",
        "held",
        *of("a", started(tokens=5), model(5)),
        *of("r", model(5)),
        run="a",
    ),
    # silent truncation
    case("exhausted, yet succeeded", [("silent-truncation", (1, 3))], EXHAUSTED, EXHAUSTED, ended()),
    case("exhausted and said so", "vacuous", EXHAUSTED, ended("partial_success")),
    case("exhausted after the end", "vacuous", ended(), EXHAUSTED),
    case("the last end decides", [("silent-truncation", (2, 3))], ended(), EXHAUSTED, ended()),
    case(
        "an exhausted retry budget is no truncation", "vacuous", record("budget_exhausted", budget="retry"), ended()
    ),
    case(
        "a planned step left out with the steps used up",
        [("silent-truncation", (2, 4))],
        started(steps=1),
        PLAN,
        call("a", step=1),
        ended(),
    ),
    case("the same with steps left", "held", started(steps=2), PLAN, call("a", step=1), ended()),
    case(
        "a refused step was not left out silently",
        "held",
        started(steps=2),
        PLAN,
        call("a", step=1),
        refused("b", step=2),
        ended(),
    ),
    case(
        "a step started without attempt id was started",
        "held",
        started(steps=2),
        PLAN,
        call("a", step=1),
        call(None, step=2),
        ended(),
    ),
    case(
        "a planned step without a tool calls for nothing",
        "held",
        started(steps=1),
        record("plan_created", actions=[{"step": 1, "tool": "charge"}, {"step": 2}]),
        call("a", step=1),
        ended(),
    ),
    case(
        "only the last plan counts",
        "held",
        started(steps=1),
        PLAN,
        record("plan_created", actions=[]),
        call("a", step=1),
        ended(),
    ),
    case("the tokens used up", [("silent-truncation", (2, 4))], started(tokens=5), PLAN, model(5), ended()),
    case("the money used up", [("silent-truncation", (2, 4))], started(cost_usd=5), PLAN, model(cost_usd=5), ended()),
    case("the time used up", [("silent-truncation", (2, 3))], started(wall_clock_s=1), PLAN, ended(t=1.1)),
    case(
        "the exhaustion is the proof where there is one",
        [("silent-truncation", (3, 4))],
        started(tokens=5),
        PLAN,
        {**EXHAUSTED, "input_tokens": 5},
        ended(),
    ),
    # deadlines
    case("a deadline that only comes nearer", "held", with_deadline("a", 1, 10), with_deadline("b", 2, 9)),
    case(
        "a deadline may waver by a quarter of a second",
        "held",
        with_deadline("a", 1, 10),
        with_deadline("b", 2, 9.25),
    ),
    case("a deadline given anew", [("deadline-reset", (1, 2))], with_deadline("a", 1, 10), with_deadline("b", 2, 10)),
    case(
        "it is compared with the earliest so far",
        [("deadline-reset", (2, 4))],
        with_deadline("a", 1, 10),
        with_deadline("b", 1, 8),
        with_deadline("c", 1, 8.2),
        with_deadline("d", 1, 8.4),
    ),
    case(
        "each scope has a budget of its own",
        "held",
        with_deadline("a", 1, 10),
        with_deadline("b", 2, 10, scope="sub"),
    ),
    case(
        "the default scope is root",
        [("deadline-reset", (1, 2))],
        with_deadline("a", 1, 10),
        with_deadline("b", 2, 10, scope="root"),
    ),
    case(
        "a start that does not count carries no deadline",
        "held",
        with_deadline("a", 1, 10),
        with_deadline("a", 2, 10),
    ),
    case(
        "a deadline past the run's own time and grace",
        [("deadline-reset", (1, 2))],
        started(wall_clock_s=10),
        with_deadline("a", 1, 9.7),
    ),
    case("a deadline within the grace", "held", started(wall_clock_s=10), with_deadline("a", 1, 9.6)),
    case(
        "recovery moves the run's own deadline too",
        "held",
        started(wall_clock_s=10, recovery_s=5),
        undoing(1),
        with_deadline("a", 1, 14.6),
    ),
    case(
        "recovery later in the run counts as well, up to its time",
        [("deadline-reset", (1, 3))],
        started(wall_clock_s=10, recovery_s=5),
        with_deadline("a", 1, 14.6),
        with_deadline("b", 1, 14.8, scope="sub"),
        undoing(1, t=1),
    ),
    case(
        "of two proofs on one line the smaller is given",
        [("deadline-reset", (1, 3))],
        started(wall_clock_s=10),
        with_deadline("a", 1, 5),
        with_deadline("b", 1, 50),
    ),
    case(
        "a late clock says nothing of deadlines",
        "unobservable",
        lag(),
        with_deadline("a", 1, 10),
        with_deadline("b", 2, 10),
    ),
    # standing
    case("no limit and no deadline", "vacuous", started(max_concurrency=1), call("a"), done("a"), ended()),
    case("a limit of null is none", "vacuous", started(steps=None, wall_clock_s=None), ended()),
    case("a limit of nothing is a limit", [("steps", (2,))], started(steps=0), step(1)),
]


@pytest.mark.parametrize(("expected", "records", "run"), CASES)
def test_budgets(expected: Said, records: tuple[Fields, ...], run: str) -> None:
    """The invariant says of this history exactly what the title claims."""
    assert said("budgets", records, run=run) == expected
