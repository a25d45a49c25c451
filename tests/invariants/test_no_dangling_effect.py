"""no-dangling-effect: every sentence of contract section 4.3, as small histories."""

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
    said,
    settled,
    undo,
    undone,
)

REPORT = record("partial_success_returned", completed=[1])

CASES = [
    case("a succeeded run keeps what it did", "held", effect("e", step=1), ended()),
    case("a failed run keeps nothing", [("unsettled", (1, 2))], effect("e", step=1), ended("failed")),
    case("nor does one that says it rolled back", [("unsettled", (1, 2))], effect("e", step=1), ended("rolled_back")),
    case("nor one that handed over", [("unsettled", (1, 2))], effect("e", step=1), ended("handed_off")),
    case("of several the first is told", [("unsettled", (1, 3))], effect("e"), effect("f"), ended("failed")),
    case("an effect after the end of a succeeded run", [("unsettled", (1, 2))], ended(), effect("e")),
    case("the last end is the end", "held", ended("failed"), effect("e"), ended()),
    case("and gives the status", [("unsettled", (2, 3))], ended(), effect("e"), ended("failed")),
    case(
        "a run that never finished", [("unfinished", (2,))], record("run_started"), effect("e"), effect("f"), exited()
    ),
    case("undone", "held", effect("e"), undo("e"), ended("failed")),
    case("undone after the end", "held", effect("e"), ended("failed"), undo("e")),
    case("undone by another run", "held", *of("a", effect("e")), *of("b", undo("e")), run="a"),
    case(
        "undone in another world",
        [("unfinished", (2,))],
        *of("a", record("run_started", world="w1"), effect("e")),
        *of("b", record("run_started", world="w2"), undo("e")),
        run="a",
    ),
    case(
        "an undoing that did not take",
        [("unsettled", (1, 3))],
        effect("e"),
        undo("e", outcome="rejected"),
        ended("failed"),
    ),
    case("a person has it, said before", "held", settled(1, "manual"), effect("e", step=1), ended("failed")),
    case("a person has it, said after", "held", effect("e", step=1), ended("failed"), settled(1, "manual")),
    case(
        "it cannot be undone, and that was said",
        "held",
        settled(1, "uncompensatable"),
        effect("e", step=1),
        ended("failed"),
    ),
    case("kept, said after it", "held", effect("e", step=1), settled(1, "kept"), ended("failed")),
    case("kept, said before it", [("unsettled", (2, 3))], settled(1, "kept"), effect("e", step=1), ended("failed")),
    case(
        "kept in a run that rolled back",
        [("unsettled", (1, 3))],
        effect("e", step=1),
        settled(1, "kept"),
        ended("rolled_back"),
    ),
    case("kept in a run without an end", "held", effect("e", step=1), settled(1, "kept")),
    case(
        "another step was settled",
        [("unsettled", (1, 3))],
        effect("e", step=1),
        settled(2, "manual"),
        ended("failed"),
    ),
    case(
        "without step nothing matches", [("unsettled", (1, 3))], effect("e"), settled(None, "manual"), ended("failed")
    ),
    case(
        "another run's word settles nothing",
        [("unsettled", (1, 3))],
        *of("r", effect("e", step=1)),
        *of("b", settled(1, "manual")),
        *of("r", ended("failed")),
    ),
    case(
        "said to be compensated, and nobody undid it",
        [("false-claim", (1, 2))],
        effect("e", step=1),
        settled(1, "compensated"),
        ended(),
    ),
    case(
        "the same, said before the effect",
        [("false-claim", (1, 2))],
        settled(1, "compensated"),
        effect("e", step=1),
        ended(),
    ),
    case(
        "said before, it does not settle either",
        [("false-claim", (1, 2)), ("unsettled", (2, 3))],
        settled(1, "compensated"),
        effect("e", step=1),
        ended("failed"),
    ),
    case(
        "the first such word is the proof",
        [("false-claim", (1, 2))],
        effect("e", step=1),
        settled(1, "compensated"),
        settled(1, "compensated"),
    ),
    case("said to be compensated, and it was", "held", effect("e", step=1), settled(1, "compensated"), undo("e")),
    case(
        "partial success keeps the completed steps",
        "held",
        effect("e", step=1),
        ended("partial_success", completed=[1]),
    ),
    case("and no others", [("unsettled", (1, 2))], effect("e", step=2), ended("partial_success", completed=[1])),
    case("what was reported as completed counts too", "held", effect("e", step=1), ended("partial_success"), REPORT),
    case(
        "an effect without step is in no list",
        [("unsettled", (1, 2))],
        effect("e"),
        ended("partial_success", completed=[1]),
    ),
    case(
        "a completed step after the end",
        [("unsettled", (1, 2))],
        ended("partial_success", completed=[1]),
        effect("e", step=1),
    ),
    case(
        "only a partial success has completed steps",
        [("unsettled", (1, 3))],
        effect("e", step=1),
        REPORT,
        ended("failed"),
    ),
    case(
        "a claim is an effect where nobody else tells", [("unsettled", (2, 3))], call("a"), done("a"), ended("failed")
    ),
    case("a claim that came after the end", [("unsettled", (2, 3))], call("a"), ended(), done("a")),
    case("a claim undone by its own word", "held", call("a", step=1), done("a"), undone(1), ended("failed")),
    case(
        "not by a word before it", [("unsettled", (3, 4))], call("a", step=1), undone(1), done("a"), ended("failed")
    ),
    case(
        "not by a failed undoing",
        [("unsettled", (2, 4))],
        call("a", step=1),
        done("a"),
        undone(1, "error"),
        ended("failed"),
    ),
    case(
        "a claim said to be compensated is taken at its word",
        "held",
        call("a", step=1),
        done("a"),
        settled(1, "compensated"),
        ended("failed"),
    ),
    case(
        "an effect is not undone by words", [("unsettled", (1, 3))], effect("e", step=1), undone(1), ended("failed")
    ),
    case("an open call", "unobservable", call("a"), done("a", "unknown"), ended()),
    case("a violation beats an open call", [("unsettled", (2, 4))], call("a"), done("a"), call("b"), ended("failed")),
    case("a fault's own effect needs no settling", "vacuous", effect("e", caused_by="fault"), ended("failed")),
    case("a collapsed effect needs no settling", "vacuous", effect("e", outcome="deduplicated"), ended("failed")),
    case("no effect", "vacuous", ended("failed")),
]


@pytest.mark.parametrize(("expected", "records", "run"), CASES)
def test_no_dangling_effect(expected: Said, records: tuple[Fields, ...], run: str) -> None:
    """The invariant says of this history exactly what the title claims."""
    assert said("no-dangling-effect", records, run=run) == expected
