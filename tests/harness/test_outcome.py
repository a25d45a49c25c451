"""From a played run to its result: what our own failure may have done is not the agent's violation."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from harness.options import RunOptions
from harness.outcome import run_result
from harness.playing import MOST_GENERATIONS, Played
from harness.results import Block
from invariants.verdict import Verdict
from reports.results import RunResult
from tests.harness.fake_stage import AGENT, TOOLS, run_plan
from traces.history import Record

RUN = run_plan()
CRASH = ("no-escaped-exception", "crash", (4,))
TWICE = ("single-effect", "duplicate-key", (2, 3))
UNSETTLED = ("no-dangling-effect", "unsettled", (2, 3))
UNFINISHED = ("no-dangling-effect", "unfinished", (2,))


def result(*violated: tuple[str, str, tuple[int, ...]], **played: Any) -> RunResult:
    """The result of a run with these violations; line n of its history is of the instant n."""
    records = [(line, Record(type="tool_call_started", t=float(line), run_id=RUN.run_id)) for line in range(1, 6)]
    verdicts = [
        Verdict(RUN.run_id, invariant, "violated", reason, evidence, "it did")
        for invariant, reason, evidence in violated
    ]
    verdicts.append(Verdict(RUN.run_id, "budgets", "held", None, (), "within its limits"))
    return run_result(
        Played(plan=RUN, records=[record for _, record in records], flows={"tool": 1}, **played),
        block=Block(first=1, last=5, records=records, verdicts={RUN.run_id: verdicts}),
        options=RunOptions(out=Path("r"), agent=AGENT, registry=TOOLS.registry, registry_data=TOOLS.data, parallel=1),
    )


def words(found: RunResult) -> list[tuple[str, str]]:
    """Invariants and what is said of them, in order."""
    return [(ruling.invariant, ruling.reason or ruling.verdict) for ruling in found.verdicts]


def test_what_broke_before_the_failure_stays_proven() -> None:
    """A duplicate seen before our failure is a violation; the crash after it may be our own doing."""
    found = result(TWICE, CRASH, harness_error="a hook raised", sound_until=3.5)
    assert words(found) == [
        ("single-effect", "duplicate-key"),
        ("no-escaped-exception", "unobservable"),
        ("budgets", "held"),
    ]
    assert found.harness_error == "a hook raised"


def test_after_the_failure_nothing_is_proven() -> None:
    """Evidence from after the failure, or a record without a source, accuses nobody."""
    assert result(CRASH, harness_error="x", sound_until=3.9).violations() == []
    assert result(TWICE, CRASH, UNSETTLED, harness_error="x", sound_until=-math.inf).violations() == []


def test_what_is_missing_proves_nothing_after_a_failure() -> None:
    """That nothing settled an effect cannot be told where records may be lost, however early the effect."""
    found = result(UNSETTLED, harness_error="x", sound_until=1000.0)
    assert words(found) == [("no-dangling-effect", "unobservable"), ("budgets", "held")]


def test_an_invariant_that_is_broken_anyway() -> None:
    """Of two reasons of one invariant the proven one stays, and nothing else is said of it."""
    found = result(TWICE, ("single-effect", "key-reused", (2, 5)), harness_error="x", sound_until=4.0)
    assert words(found) == [("single-effect", "duplicate-key"), ("budgets", "held")]


def test_without_a_failure_everything_counts() -> None:
    """A run in which nothing of ours failed keeps all its violations, also beside a late mistake in a report."""
    for error in (None, "a finding could not be looked for"):
        found = result(TWICE, UNSETTLED, CRASH, harness_error=error)
        assert [ruling.reason for ruling in found.violations()] == ["duplicate-key", "unsettled", "crash"]


@pytest.mark.parametrize("sound_until", [3.0, -math.inf])
def test_no_findings_from_a_torn_history(sound_until: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the service is not seen to have done may have been lost: no claim is called a phantom then."""
    monkeypatch.setattr("harness.outcome.find", lambda *_, **__: pytest.fail("it was looked for"))
    assert result(harness_error="x", sound_until=sound_until).findings == []


def test_a_run_that_was_given_up_is_undecided() -> None:
    """Killed for ever, an agent cannot finish: `unfinished` is not held against it; what it did twice still is."""
    found = result(TWICE, UNFINISHED, given_up=True)
    assert words(found)[:2] == [("single-effect", "duplicate-key"), ("no-dangling-effect", "unobservable")]
    assert found.undecided == f"killed {MOST_GENERATIONS} times by its faults, and then not started again"
