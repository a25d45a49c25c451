"""The summary and the exit code, which is decided here and nowhere else."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from reports.results import Bound, FaultUse, Results, Ruling, RunResult
from reports.summary import Summary, doubt_sentences, summarise, worst
from tests.reports.builders import acts, double_charge, held, result, violated

MISFIRE = [FaultUse(kind="kill", layer="crash", site="charge#1/1", fired=0)]


def summary(*runs: RunResult, **more: Any) -> Summary:
    """The summary of these runs."""
    return summarise(Results(Path("out"), runs), **more)


def test_the_json_has_the_shape_of_the_contract() -> None:
    """Every field of section 8 with its type, in its order."""
    run, _ = double_charge()
    data = json.loads(summary(run, result("r2", number=205, trace="refund"), seed=7).to_json())
    assert list(data)[:15] == [
        "format", "seed", "agent", "runs", "scenarios", "traces", "verdicts", "violations", "ordinary_failures",
        "faults", "harness_errors", "activations", "findings", "wall_s", "exit_code",
    ]  # fmt: skip
    assert (data["format"], data["seed"], data["agent"]) == (1, 7, "reference")
    assert (data["runs"], data["scenarios"], data["traces"], data["exit_code"]) == (2, 2, 2, 1)
    assert data["verdicts"]["single-effect"] == {"held": 1, "violated": 1, "vacuous": 0, "unobservable": 0}
    violation = data["violations"][0]
    assert {"run_id", "scenario", "trace", "invariant", "reason", "message", "evidence", "replay"} <= set(violation)
    assert violation["replay"] == "stormproof run --scenario 204 --trace order-small"
    assert data["faults"] == {"armed": 2, "fired": 2, "misfired": 0}
    rate = data["activations"]["retry"]
    assert set(rate) == {"opportunities", "activations", "rate", "low", "high", "floor", "status"}
    assert {"code", "fact", "advice", "run_id"} <= set(data["findings"][0])


@pytest.mark.parametrize(
    ("runs", "code"),
    [
        ([result()], 0),
        ([result(ordinary_failure=True, status="failed")], 0),
        ([result(verdicts=[Ruling(invariant="budgets", verdict="vacuous")])], 0),
        ([result(verdicts=[violated(), *held("single-effect")])], 1),
        ([result(harness_error="the proxy fell")], 3),
        ([result(faults=MISFIRE)], 4),
        ([result(undecided="no traffic of the agent was seen")], 4),
        ([result(expect={"retry": Bound(min=1.0)}, activations={"retry": acts(4, 3)})], 4),
        ([result(expect={"retry": Bound(max=0.5)}, activations={"retry": acts(4, 3)})], 4),
        ([result(expect={"retry": Bound(min=1.0)})], 4),
        ([result(expect={"retry": Bound(min=1.0, rare=True)}, activations={"retry": acts(4, 3)})], 0),
        ([], 4),
        ([result(verdicts=[])], 4),
    ],
)
def test_the_exit_code_of_every_kind_of_run(runs: list[RunResult], code: int) -> None:
    """Contract section 1, case by case."""
    assert summary(*runs).exit_code == code


def test_a_harness_error_never_hides_a_proven_violation() -> None:
    """The worst wins in the order 2, 1, 3, 4, also within one run."""
    assert all(worst(codes) == 2 for codes in permutations((2, 1, 3, 4, 0)))
    assert worst((4, 3, 1)) == 1
    assert worst((4, 3)) == 3
    assert worst(()) == 0
    both = result(verdicts=[violated(), *held("single-effect")], harness_error="the drain met its limit")
    found = summary(both)
    assert found.exit_code == 1
    assert found.harness_errors == 1
    assert found.verdicts["budgets"]["held"] == 0


def test_a_run_counts_once_per_invariant_whatever_its_reasons() -> None:
    """Two reasons are two violations in one violated run."""
    run = result(verdicts=[violated("duplicate-key"), violated("key-reused"), *held("single-effect")])
    found = summary(run)
    assert len(found.violations) == 2
    assert found.verdicts["single-effect"]["violated"] == 1


def test_an_early_stop_leaves_the_session_undecided() -> None:
    """What was not played proves nothing."""
    found = summary(result(), undecided_because="3 of 4 runs were not played: interrupted")
    assert found.exit_code == 4
    assert found.undecided[-1].why.startswith("3 of 4 runs")


@pytest.mark.parametrize(("runs", "code"), [([], 3), ([result()], 3), ([result(verdicts=[violated()])], 1)])
def test_an_error_of_the_session_counts_like_one_of_a_run(runs: list[RunResult], code: int) -> None:
    """What ended the session is an error of the harness, and hides no violation that was proven before."""
    found = summary(*runs, error="r cannot be written: No space left on device")
    assert (found.exit_code, found.harness_errors) == (code, 1)
    (error,) = found.errors
    assert (error.run_id, error.sentence()) == (None, "r cannot be written: No space left on device")
    assert code == 1 or found.headline().startswith(f"The harness failed after {len(runs)} run")


@pytest.mark.parametrize(
    ("runs", "headline"),
    [
        ([result("r1"), result("r2")], "Every invariant held in 2 runs"),
        ([result(verdicts=[violated()])], "1 violation in 1 of 1 run"),
        ([], "Undecided: no run at all was judged"),
        ([result(faults=MISFIRE)], "Undecided in 1 case; no violation was found"),
        ([result(harness_error="x")], "The harness failed in 1 of 1 run; no violation was found"),
        (
            [result(verdicts=[Ruling(invariant="budgets", verdict="vacuous")])],
            "No violation, but nothing could have broken in 1 run",
        ),
        (
            [result(verdicts=[*held("budgets"), Ruling(invariant="budgets", verdict="unobservable")])],
            "No violation in 1 run; 1 verdict could not be told",
        ),
    ],
)
def test_the_headline_claims_no_more_than_was_proven(runs: list[RunResult], headline: str) -> None:
    """Neither vacuous nor unobservable is held."""
    assert summary(*runs).headline() == headline


def test_wall_time_spans_the_runs() -> None:
    """From the start of the first to the end of the last, whatever their order."""
    assert summary(result("r1", started=1000.0), result("r2", started=1004.0)).wall_s == 5.5


def test_what_is_undecided_alike_is_said_once() -> None:
    """One sentence for all traces of a scenario on which a fault never fired."""
    runs = [result(f"r{n}", trace=f"t{n}", faults=MISFIRE) for n in range(3)]
    found = summary(*runs)
    assert len(found.undecided) == 3
    assert doubt_sentences(found.undecided) == [
        "204 · t0 and 2 more: the fault kill at charge#1/1 was armed and never fired"
    ]
