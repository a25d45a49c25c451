"""reverse-compensation: every sentence of contract section 4.6, as small histories."""

from __future__ import annotations

from random import Random

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
    said,
    undo,
    undoing,
    undone,
)


def acted(name: str, **fields: object) -> list[Fields]:
    """A whole call that took effect: start, effect, finish."""
    return [
        call(f"call-{name}", **fields),
        effect(name, attempt_id=f"call-{name}", **fields),
        done(f"call-{name}"),
    ]


def told(name: str, step: int | None, **fields: object) -> list[Fields]:
    """A whole call of which only the agent tells."""
    return [call(name, step=step, **fields), done(name)]


A, B = acted("a", step=1), acted("b", step=2)
CLAIM_A, CLAIM_B = told("a", 1), told("b", 2)

CASES = [
    case("undone in reverse", "held", *A, *B, undo("b"), undo("a")),
    case("undone in the order done", [("out-of-order", (7, 8))], *A, *B, undo("a"), undo("b")),
    case(
        "undone in the order done, by other runs",
        [("out-of-order", (7, 8))],
        *A,
        *B,
        *of("x", undo("a")),
        *of("y", undo("b")),
    ),
    case(
        "overlapping calls may be undone in any order",
        "held",
        call("call-a"),
        call("call-b"),
        effect("a", attempt_id="call-a"),
        effect("b", attempt_id="call-b"),
        done("call-a"),
        done("call-b"),
        undo("a"),
        undo("b"),
    ),
    case(
        "a call that finished when the other had started overlaps",
        "held",
        call("call-a"),
        effect("a", attempt_id="call-a"),
        call("call-b"),
        done("call-a"),
        effect("b", attempt_id="call-b"),
        undo("a"),
        undo("b"),
    ),
    case(
        "without a finish on record the effect's own line counts",
        [("out-of-order", (5, 6))],
        call("call-a"),
        effect("a", attempt_id="call-a"),
        call("call-b"),
        effect("b", attempt_id="call-b"),
        undo("a"),
        undo("b"),
    ),
    case(
        "without any call on record too", [("out-of-order", (3, 4))], effect("a"), effect("b"), undo("a"), undo("b")
    ),
    case(
        "without the later one's start on record too",
        [("out-of-order", (5, 6))],
        call("call-a"),
        effect("a", attempt_id="call-a"),
        effect("b"),
        done("call-a"),
        undo("a"),
        undo("b"),
    ),
    case(
        "a call that started after its effect is on record all the same",
        "held",
        effect("b", attempt_id="call-b"),
        *A,
        call("call-b"),
        done("call-b"),
        undo("b"),
        undo("a"),
    ),
    case(
        "only the first undoing of an effect counts",
        [("out-of-order", (7, 8))],
        *A,
        *B,
        undo("a"),
        undo("b"),
        undo("a"),
    ),
    case(
        "effects of different runs are not compared",
        "vacuous",
        *of("x", *A),
        *of("y", *B),
        undo("a"),
        undo("b"),
        run="x",
    ),
    case(
        "of several proofs the one that broke first is given",
        [("out-of-order", (10, 11))],
        *A,
        *B,
        *acted("c", step=3),
        undo("a"),
        undo("b"),
        undo("c"),
    ),
    case(
        "of several with one breaking line, the one with the smallest lines",
        [("out-of-order", (7, 9))],
        *acted("a", step=1)[1:2],
        *acted("b", step=2)[1:2],
        *acted("c", step=3)[1:2],
        record("note"),
        record("note"),
        record("note"),
        undo("b"),
        undo("a"),
        undo("c"),
    ),
    case("fewer than two undone", "vacuous", *A, *B, undo("a"), ended()),
    # claims
    case(
        "claims undone in reverse",
        "held",
        *CLAIM_A,
        *CLAIM_B,
        undoing(2),
        undone(2),
        undoing(1),
        undone(1),
    ),
    case(
        "claims undone in the order done",
        [("out-of-order", (5, 8))],
        *CLAIM_A,
        *CLAIM_B,
        undoing(1),
        undone(1),
        undoing(2),
        undone(2),
    ),
    case(
        "the later one's undoing has to be finished before the earlier one's starts",
        [("out-of-order", (6, 7))],
        *CLAIM_A,
        *CLAIM_B,
        undoing(2),
        undoing(1),
        undone(2),
        undone(1),
    ),
    case(
        "the last start before the finish counts",
        "held",
        *CLAIM_A,
        *CLAIM_B,
        undoing(1),
        undone(1, "error"),
        undoing(2),
        undone(2),
        undoing(1),
        undone(1),
    ),
    case(
        "without a start the finish is the start",
        [("out-of-order", (5, 6))],
        *CLAIM_A,
        *CLAIM_B,
        undone(1),
        undone(2),
    ),
    case(
        "what one compensation undoes is not compared",
        "held",
        *told("a", 1),
        *told("b", 1),
        undoing(1),
        undone(1),
    ),
    case("a claim without step is undone by nothing", "vacuous", *told("a", None), *CLAIM_B, undone(None), undone(2)),
    # forward during compensation
    case(
        "going forward in a run that rolls back",
        [("forward-during-compensation", (4, 6))],
        *A,
        undo("a"),
        *B,
        ended("rolled_back"),
    ),
    case("the same in a run that ended otherwise", "vacuous", *A, undo("a"), *B, ended("failed")),
    case(
        "going forward while a compensation is open",
        [("forward-during-compensation", (4, 6))],
        *A,
        undoing(1),
        *B,
        undone(1),
        ended(),
    ),
    case("going forward when it is finished", "vacuous", *A, undoing(1), undone(1, "error"), *B, ended()),
    case(
        "the finish of another step closes nothing",
        [("forward-during-compensation", (4, 7))],
        *A,
        undoing(1),
        undone(2),
        *B,
        ended(),
    ),
    case(
        "a restart closes nothing",
        [("forward-during-compensation", (4, 8))],
        *A,
        undoing(1),
        exited(injected=True),
        record("run_resumed"),
        *B,
        ended(),
    ),
    case("here two records without step match", "vacuous", *A, undoing(None), undone(None), *B, ended()),
    case(
        "calls in flight when it began are innocent", "vacuous", *A, *B[:1], undo("a"), *B[1:], ended("rolled_back")
    ),
    case(
        "without a start on record the effect's line counts",
        [("forward-during-compensation", (4, 5))],
        *A,
        undo("a"),
        effect("b"),
        ended("rolled_back"),
    ),
    case(
        "a later one of another step is open still",
        [("forward-during-compensation", (4, 8))],
        *A,
        undoing(1),
        undoing(2),
        undone(1),
        *B,
    ),
    case(
        "an undoing by another run begins it too",
        [("forward-during-compensation", (4, 6))],
        *A,
        *of("x", undo("a")),
        *B,
        ended("rolled_back"),
    ),
    case(
        "an undoing of another run's effect begins nothing",
        "vacuous",
        *of("x", effect("z")),
        *A,
        undo("z"),
        *B,
        ended("rolled_back"),
    ),
    case(
        "the last end decides whether it rolled back",
        "vacuous",
        *A,
        undo("a"),
        *B,
        ended("rolled_back"),
        ended("failed"),
    ),
    case(
        "an undoing's own call is no going forward",
        "vacuous",
        *CLAIM_A,
        undoing(1, tool="refund"),
        *told("u", 1, tool="refund"),
        undone(1),
        ended("rolled_back"),
    ),
]


@pytest.mark.parametrize(("expected", "records", "run"), CASES)
def test_reverse_compensation(expected: Said, records: tuple[Fields, ...], run: str) -> None:
    """The invariant says of this history exactly what the title claims."""
    assert said("reverse-compensation", records, run=run) == expected


def test_thousands_of_undoings_are_compared_in_no_time() -> None:
    """The order of 20,000 undone effects is judged without comparing each with each; one swap is found."""
    effects = [effect(f"e{number}") for number in range(20_000)]
    order = list(reversed(range(20_000)))
    swapped = Random(3).randrange(19_999)
    order[swapped], order[swapped + 1] = order[swapped + 1], order[swapped]
    undoings = [undo(f"e{number}") for number in order]
    assert said("reverse-compensation", effects + undoings) == [
        ("out-of-order", (20_001 + swapped, 20_002 + swapped))
    ]
