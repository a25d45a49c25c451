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
