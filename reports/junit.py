"""`junit.xml`: one test case per run, and one per reason that concerns no single run.

Violated is a failure, undecided and harness error are errors, an ordinary failure passes with a property, a vacuous
run passes and says so; so a reader of this file comes to the exit code's own conclusion.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from io import BytesIO

from junitparser import Error, Failure
from junitparser.xunit2 import JUnitXml, TestCase, TestSuite

from reports.results import Results, RunResult, scenario_key
from reports.summary import Summary, doubts_of
from reports.text import lines_label, plain, scenario_label


def junit_xml(results: Results, summary: Summary) -> bytes:
    """The whole file, UTF-8 with declaration."""
    document = JUnitXml("stormproof")
    suites: dict[str, list[RunResult]] = defaultdict(list)
    for run in sorted(results.runs, key=lambda run: (scenario_key(run.number), run.trace, run.run_id)):
        suites[f"{scenario_label(run.number)} {plain(run.scenario)}"].append(run)
    for name, runs in suites.items():
        suite = TestSuite(name)  # type: ignore[no-untyped-call]
        repeated = {trace for trace, count in Counter(run.trace for run in runs).items() if count > 1}
        for run in runs:
            suite.append(_case(run, name, distinct=run.trace in repeated))  # type: ignore[no-untyped-call]
        document.add_testsuite(suite)
    failed = [error for error in summary.errors if error.run_id is None]
    if failed:
        suite = TestSuite("harness")  # type: ignore[no-untyped-call]
        for error in failed:
            case = TestCase("session", "harness", 0.0)
            case.result = [Error(plain(error.message), "harness-error")]
            suite.append(case)  # type: ignore[no-untyped-call]
        document.add_testsuite(suite)
    general = [doubt for doubt in summary.undecided if doubt.run_id is None]
    if general:
        suite = TestSuite("undecided")  # type: ignore[no-untyped-call]
        for doubt in general:
            title = (
                f"{scenario_label(doubt.scenario)} {doubt.mechanism or doubt.what}" if doubt.scenario else doubt.what
            )
            case = TestCase(plain(title), "undecided", 0.0)
            case.result = [Error(plain(doubt.why), "undecided")]
            suite.append(case)  # type: ignore[no-untyped-call]
        document.add_testsuite(suite)
    document.update_statistics()  # type: ignore[no-untyped-call]
    target = BytesIO()
    document.write(target)
    return target.getvalue()


def _case(run: RunResult, classname: str, *, distinct: bool) -> TestCase:
    name = plain(run.trace) + (f" [{plain(run.run_id)}]" if distinct else "")
    case = TestCase(name, classname, round(run.wall_s, 3))
    properties = {"run_id": run.run_id, "replay": run.replay, "digest": run.digest}
    if run.status is not None:
        properties["status"] = run.status
    if run.ordinary_failure:
        properties["ordinary_failure"] = "true"
    if run.vacuous:
        properties["vacuous"] = "true: nothing in this run could have broken an invariant"
    for finding in run.findings:
        properties[f"finding.{finding.code}"] = finding.fact
    for key, value in properties.items():
        if value:
            case.add_property(plain(key), plain(value))
    # One element a case: readers that subtract failures and errors from tests count each case once.
    violations, doubts = run.violations(), doubts_of(run)
    if violations:
        titles = [f"{ruling.invariant}: {ruling.reason or 'violated'}" for ruling in violations]
        failure = Failure(plain("; ".join(titles)), plain(violations[0].invariant))
        told = [f"{plain(r.message or r.invariant)} ({lines_label(r.evidence)})" for r in violations]
        failure.text = "\n".join([*told, *_doubtful(run), f"$ {plain(run.replay)}"])
        case.result = [failure]
    elif run.harness_error is not None or doubts:
        kind = "harness-error" if run.harness_error is not None else "undecided"
        error = Error(_doubtful(run)[0], kind)
        error.text = "\n".join([*_doubtful(run), f"$ {plain(run.replay)}"])
        case.result = [error]
    return case


def _doubtful(run: RunResult) -> list[str]:
    """What the harness failed at and what stays undecided, one sentence each."""
    failed = [run.harness_error] if run.harness_error is not None else []
    return [plain(text) for text in (*failed, *(doubt.why for doubt in doubts_of(run)))]
