"""junit.xml never disagrees with the exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from reports.junit import junit_xml
from reports.results import Bound, FaultUse, Results, Ruling, RunResult
from reports.summary import summarise
from tests.reports.builders import acts, double_charge, held, result, violated

MISFIRE = [FaultUse(kind="kill", layer="crash", site="charge#1/1", fired=0)]


def tree(*runs: RunResult, **more: Any) -> tuple[ElementTree.Element, int]:
    """The file as a strict XML parser reads it, and the exit code."""
    results = Results(Path("out"), runs)
    summary = summarise(results, **more)
    return ElementTree.fromstring(junit_xml(results, summary)), summary.exit_code


def counts(root: ElementTree.Element) -> tuple[int, int, int]:
    """Cases, failing cases, cases in error."""
    cases = list(root.iter("testcase"))
    failed = [case for case in cases if case.find("failure") is not None]
    wrong = [case for case in cases if case.find("error") is not None]
    assert root.get("tests") == str(len(cases))
    assert root.get("failures") == str(len(failed))
    assert root.get("errors") == str(len(wrong))
    return len(cases), len(failed), len(wrong)


VACUOUS = [Ruling(invariant="budgets", verdict="vacuous")]


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([result()], (1, 0, 0)),
        ([result(ordinary_failure=True)], (1, 0, 0)),
        ([result(verdicts=VACUOUS)], (1, 0, 0)),
        ([result(verdicts=[violated()]), result("r2", trace="b")], (2, 1, 0)),
        ([result(verdicts=[violated("a"), violated("b")])], (1, 1, 0)),
        ([result(verdicts=[violated()], harness_error="x", faults=MISFIRE)], (1, 1, 0)),
        ([result(harness_error="x", verdicts=[])], (2, 0, 2)),
        ([result(), result("r2", trace="b", harness_error="x", verdicts=[])], (2, 0, 1)),
        ([result(faults=MISFIRE)], (1, 0, 1)),
        ([result(undecided="no traffic of the agent was seen")], (1, 0, 1)),
        ([result(expect={"retry": Bound(min=1.0)}, activations={"retry": acts(4, 1)})], (2, 0, 1)),
        ([result(expect={"retry": Bound(min=1.0, rare=True)}, activations={"retry": acts(4, 1)})], (1, 0, 0)),
        ([], (1, 0, 1)),
    ],
)
def test_failures_and_errors_tell_the_exit_code(runs: list[RunResult], expected: tuple[int, int, int]) -> None:
    """A failure where it is 1, else an error where it is 3 or 4, else neither."""
    root, code = tree(*runs)
    found = counts(root)
    assert found == expected
    assert (found[1] > 0) == (code == 1)
    assert (found[1] == 0 and found[2] > 0) == (code in {3, 4})


def test_an_early_stop_is_an_error_of_its_own() -> None:
    """What concerns no single run has a case of its own."""
    root, code = tree(result(), undecided_because="3 of 4 runs were not played")
    assert (counts(root), code) == ((2, 0, 1), 4)


@pytest.mark.parametrize(("verdicts", "expected"), [([], (2, 0, 1)), ([violated()], (2, 1, 1))])
def test_an_error_of_the_session_is_an_error_of_its_own(verdicts: list[Ruling], expected: tuple[int, ...]) -> None:
    """What ended the session stands beside the runs, and takes no failure away."""
    root, code = tree(result(verdicts=[*verdicts, *held("single-effect")]), error="the proxy fell")
    assert (counts(root), code) == (expected, 1 if verdicts else 3)
    assert [found.get("message") for found in root.iter("error")] == ["the proxy fell"]


def test_a_case_says_what_happened() -> None:
    """Class and name, sentence, lines and command in the failure; properties for what passes."""
    run, _ = double_charge()
    root, _ = tree(
        run,
        result("r2", trace="b", ordinary_failure=True, status="failed"),
        result("r3", trace="c", verdicts=VACUOUS),
    )
    ordinary, vacuous, bad = root.iter("testcase")
    assert bad.get("classname") == "204 The charge is executed, its answer says it failed"
    assert bad.get("name") == "order-small"
    failure = bad.find("failure")
    assert failure is not None
    assert failure.get("message") == "single-effect: duplicate-intent"
    assert "charge was executed twice. (lines 6 and 10)" in (failure.text or "")
    assert "$ stormproof run --scenario 204" in (failure.text or "")

    def properties(case: ElementTree.Element) -> dict[str, str]:
        return {p.get("name", ""): p.get("value", "") for p in case.iter("property")}

    assert properties(ordinary)["ordinary_failure"] == "true"
    assert properties(ordinary)["status"] == "failed"
    assert "nothing in this run" in properties(vacuous)["vacuous"]
    assert properties(bad)["finding.keyless-write"] == "A fact."


def test_runs_of_one_trace_are_told_apart() -> None:
    """Two tenants on one trace are two cases with two names."""
    root, _ = tree(result("r1"), result("r2"), result("r3", trace="b"))
    assert [case.get("name") for case in root.iter("testcase")] == ["b", "order-small [r1]", "order-small [r2]"]


def test_hostile_text_leaves_the_file_well_formed() -> None:
    """Control characters, markup and lone surrogates from traces do not break or forge XML."""
    message = "]]><failure/>\x00\x1b[1m\ud800\ufffe & <b>"
    run = result(trace="<x>\x08", scenario="a\x0bb", verdicts=[violated(message=message), *held("single-effect")])
    root, _ = tree(run)
    assert counts(root) == (1, 1, 0)
