"""bounded-concurrency: every sentence of contract section 4.7, as small histories."""

from __future__ import annotations

import pytest

from tests.invariants.shorthand import (
    Fields,
    Said,
    call,
    case,
    done,
    ended,
    exited,
    of,
    queued,
    record,
    refused,
    said,
    started,
)


def grouped(attempt: str, **fields: object) -> Fields:
    """A call of group `db`."""
    return call(attempt, resource_group="db", **fields)


def tenants(*records: Fields, wait: float | None = 1, **fields: object) -> list[Fields]:
    """Runs `a` and `b` of two tenants begin, run `a` with a limit of waiting, and the records follow."""
    limits = {} if wait is None else {"max_tenant_wait_s": wait}
    return [
        {"type": "run_started", "run_id": "a", "tenant": "A", "limits": limits, "t": 0, **fields},
        {"type": "run_started", "run_id": "b", "tenant": "B", "t": 0, **fields},
        *records,
    ]


def a(one: Fields, t: float) -> Fields:
    """The record, of run a."""
    return {**one, "run_id": "a", "t": t}


def b(one: Fields, t: float) -> Fields:
    """The record, of run b."""
    return {**one, "run_id": "b", "t": t}


WAITING, LATER = a(queued("x"), 0), b(queued("y"), 0)
OVERTAKING = b(call("y"), 2)
LATE = a(record("harness_lag", max_s=0.3), 2)

CASES = [
    # calls of one run
    case("as many as allowed", "held", started(max_concurrency=2), call("a"), call("b"), done("a"), call("c")),
    case("one too many", [("peak", (4,))], started(max_concurrency=2), call("a"), call("b"), call("c"), call("d")),
    case(
        "reads count",
        [("peak", (3,))],
        started(max_concurrency=1),
        call("a", effectful=False),
        call("b", effectful=False),
    ),
    case("a second start of one attempt is none", "held", started(max_concurrency=1), call("a"), call("a")),
    case(
        "a finish before the start ends nothing",
        [("peak", (4,))],
        started(max_concurrency=1),
        done("a"),
        call("a"),
        call("b"),
    ),
    case("the end of the run ends its calls", "held", started(max_concurrency=1), call("a"), ended(), call("b")),
    case("an exit of the process ends its calls", "held", started(max_concurrency=1), call("a"), exited(), call("b")),
    case("calls without attempt id are left aside", "vacuous", started(max_concurrency=1), call(None), call(None)),
    case(
        "another run's calls are not this one's",
        "held",
        *of("a", started(max_concurrency=1), call("x")),
        *of("b", call("y")),
        run="a",
    ),
    case("a limit and no call", "vacuous", started(max_concurrency=1), ended()),
    case("calls and no limit", "vacuous", started(), call("a"), call("b")),
    # groups
    case("a group within its limit", "held", started(group_concurrency={"db": 2}), grouped("a"), grouped("b")),
    case(
        "a group over its limit",
        [("group-peak", (3,))],
        started(group_concurrency={"db": 1}),
        grouped("a"),
        grouped("b"),
    ),
    case(
        "other groups are other groups",
        "held",
        started(group_concurrency={"db": 1}),
        grouped("a"),
        call("b", resource_group="mail"),
        call("c"),
    ),
    case(
        "over all runs of the world",
        [("group-peak", (4,))],
        *of("a", started(group_concurrency={"db": 1}), grouped("x")),
        *of("b", started(), grouped("y")),
        run="b",
    ),
    case(
        "the run whose call was there first is innocent",
        "held",
        *of("a", started(group_concurrency={"db": 1}), grouped("x")),
        *of("b", started(), grouped("y")),
        run="a",
    ),
    case(
        "the world's other group of that name is another",
        "vacuous",
        *of("a", started(group_concurrency={"db": 1}), grouped("x")),
        *of("b", record("run_started", world="w2"), grouped("y")),
        run="b",
    ),
    case(
        "the smallest limit that any run has declared so far",
        [("group-peak", (5,))],
        *of("a", started(group_concurrency={"db": 5})),
        *of("b", started(group_concurrency={"db": 1})),
        *of("c", started(group_concurrency={"db": 5}), grouped("x"), grouped("y")),
        run="c",
    ),
    case(
        "a limit declared later judges later starts only, but counts the calls in flight",
        [("group-peak", (5,))],
        *of("a", grouped("x"), grouped("y"), done("x")),
        *of("b", started(group_concurrency={"db": 1})),
        *of("a", grouped("z")),
        run="a",
    ),
    case(
        "a limit declared after the last call of the group is no matter",
        "vacuous",
        *of("a", grouped("x")),
        *of("b", started(group_concurrency={"db": 1})),
        run="a",
    ),
    case(
        "an ignored run_started declares nothing",
        "vacuous",
        started(),
        started(group_concurrency={"db": 0}),
        grouped("x"),
    ),
    case(
        "the group of the queue record goes before",
        [("group-peak", (4,))],
        started(group_concurrency={"db": 1}),
        grouped("a"),
        queued("b", resource_group="db"),
        call("b", resource_group="mail"),
    ),
    case(
        "without one there, that of the start",
        [("group-peak", (4,))],
        started(group_concurrency={"db": 1}),
        grouped("a"),
        queued("b"),
        grouped("b"),
    ),
    case(
        "both limits at once",
        [("group-peak", (3,)), ("peak", (3,))],
        started(max_concurrency=1, group_concurrency={"db": 1}),
        grouped("a"),
        grouped("b"),
    ),
    # starvation
    case("overtaken after too long a wait", [("starved", (3, 5))], *tenants(WAITING, LATER, OVERTAKING), run="a"),
    case("the run that overtook is innocent", "vacuous", *tenants(WAITING, LATER, OVERTAKING), run="b"),
    case("overtaken in time", "held", *tenants(WAITING, LATER, b(call("y"), 1)), run="a"),
    case("overtaken by an earlier one", "held", *tenants(LATER, WAITING, OVERTAKING), run="a"),
    case("overtaken by its own tenant", "held", *tenants(WAITING, {**LATER, "tenant": "A"}, OVERTAKING), run="a"),
    case(
        "tenants are those of the queue records",
        [("starved", (3, 5))],
        *tenants(WAITING, LATER, {**OVERTAKING, "tenant": "A"}),
        run="a",
    ),
    case(
        "overtaken in another group",
        "held",
        *tenants(WAITING, {**LATER, "resource_group": "db"}, OVERTAKING),
        run="a",
    ),
    case(
        "groups are those of the queue records",
        [("starved", (3, 5))],
        *tenants(WAITING, LATER, {**OVERTAKING, "resource_group": "db"}),
        run="a",
    ),
    case(
        "overtaken in the same group",
        [("starved", (3, 5))],
        *tenants({**WAITING, "resource_group": "db"}, {**LATER, "resource_group": "db"}, OVERTAKING),
        run="a",
    ),
    case("overtaken by one that never queued", "held", *tenants(WAITING, b(call("z"), 2)), run="a"),
    case("started itself in between", "held", *tenants(WAITING, LATER, a(call("x"), 1), OVERTAKING), run="a"),
    case("refused in between", "held", *tenants(WAITING, LATER, a(refused("x"), 1), OVERTAKING), run="a"),
    case(
        "a second queue record does not queue it anew",
        "held",
        *tenants(WAITING, a(refused("x"), 0), a(queued("x"), 0), LATER, OVERTAKING),
        run="a",
    ),
    case("its run ended in between", "held", *tenants(WAITING, LATER, a(ended(), 1), OVERTAKING), run="a"),
    case("its process exited in between", "held", *tenants(WAITING, LATER, a(exited(), 1), OVERTAKING), run="a"),
    case(
        "the one that overtook had been refused",
        "held",
        *tenants(WAITING, LATER, b(refused("y"), 1), OVERTAKING),
        run="a",
    ),
    case(
        "the one that overtook had been cancelled",
        "held",
        *tenants(WAITING, LATER, b(exited(), 1), OVERTAKING),
        run="a",
    ),
    case(
        "only the first overtaking is told",
        [("starved", (3, 6))],
        *tenants(WAITING, a(queued("x2"), 0), LATER, OVERTAKING, b(queued("z"), 2), b(call("z"), 3)),
        run="a",
    ),
    case("the wait of a run without limit", "vacuous", *tenants(WAITING, LATER, OVERTAKING, wait=None), run="a"),
    case("a limit of waiting and nothing queued", "vacuous", *tenants(), run="a"),
    case("nobody overtook", "held", *tenants(WAITING), run="a"),
    case(
        "queued without attempt id is left aside",
        "vacuous",
        *tenants({**WAITING, "attempt_id": None}, LATER, OVERTAKING),
        run="a",
    ),
    case("a late clock proves no starving", "unobservable", *tenants(WAITING, LATER, OVERTAKING, LATE), run="a"),
    case("a late clock where nobody waited", "vacuous", *tenants(LATE), run="a"),
    case(
        "a late clock hides no peak",
        [("peak", (4,))],
        started(max_concurrency=1, max_tenant_wait_s=1),
        queued("a"),
        call("a"),
        call("b"),
        record("harness_lag", max_s=1),
    ),
    case(
        "tenants of different worlds do not wait for each other",
        "held",
        {
            "type": "run_started",
            "run_id": "a",
            "tenant": "A",
            "limits": {"max_tenant_wait_s": 1},
            "world": "w",
            "t": 0,
        },
        {"type": "run_started", "run_id": "b", "tenant": "B", "t": 0},
        WAITING,
        LATER,
        OVERTAKING,
        run="a",
    ),
]


@pytest.mark.parametrize(("expected", "records", "run"), CASES)
def test_bounded_concurrency(expected: Said, records: tuple[Fields, ...], run: str) -> None:
    """The invariant says of this history exactly what the title claims."""
    assert said("bounded-concurrency", records, run=run) == expected
