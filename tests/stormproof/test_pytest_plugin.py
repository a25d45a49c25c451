"""The pytest plugin: what pytest says of a session agrees with the exit code of `stormproof run`."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reports.results import Bound, FaultUse, RunResult
from stormproof import pytest_plugin
from tests.reports.builders import acts, held, result, violated

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]

FAKE = """
import json, sys
from pathlib import Path

sys.path.insert(0, {root!r})
here = Path(__file__).parent
session = json.loads((here / "session.json").read_text())
words = sys.argv[1:]
if "--dry-run" in words:
    listed = [{{"run_id": run["run_id"]}} for run in session["runs"]]
    print(json.dumps([run for run in listed if run["run_id"] not in session["hidden"]]))
    sys.exit(0)
(here / "calls.txt").open("a").write(" ".join(words) + "\\n")
only = Path(words[words.index("--only") + 1]).read_text().split()
out = Path(words[words.index("--out") + 1])
out.mkdir(parents=True, exist_ok=True)
runs = [run for run in session["runs"] if run["run_id"] in [*only, *session["hidden"]]]
(out / "history.jsonl").write_text("")
(out / "verdicts.jsonl").write_text("".join(json.dumps(run) + "\\n" for run in runs))
code = session["code"]
if session["summary"]:
    from reports.junit import junit_xml
    from reports.results import read_results
    from reports.summary import summarise
    results = read_results(out)
    summary = summarise(results, undecided_because=session["undecided"], error=session["error"])
    (out / "summary.json").write_bytes(summary.to_json())
    (out / "junit.xml").write_bytes(junit_xml(results, summary))
    code = summary.exit_code if code is None else code
print("the harness has spoken", file=sys.stderr)
sys.exit(code)
"""
"""Stands in for `stormproof run`: the session is given, what is written of it is written by the real reports."""

TEST = """
import sys
from pathlib import Path
import stormproof.pytest_plugin as plugin

plugin._COMMAND = (sys.executable, "-P", str(Path(__file__).with_name("fake.py")))
"""

TEST = """
import pytest

@pytest.mark.chaos
def test_agent(stormproof_case):
    stormproof_case.check()
"""

SILENT = FaultUse(kind="hang", layer="network", site="charge#1/1", fired=0)
OTHER = result("101-order-small", number=101)
FINE = result("204-order-small")
BROKEN = result("204-order-small", verdicts=[violated("duplicate-key", 3, 5), *held("single-effect")])
LOST = result("204-order-small", harness_error="the proxy would not start", verdicts=[])
IDLE = result("204-order-small", undecided="no traffic of the agent was seen")
MISFIRED = result("204-order-small", faults=[SILENT])
FLOOR: dict[str, Any] = {"expect": {"retry": Bound(min=1.0)}, "activations": {"retry": acts(2, 1)}}


@dataclass
class Said:
    """What pytest said: exit code, and for each item (and the outcome `junit.xml` of the harness) what it is."""

    code: int
    items: dict[str, str]
    text: str
    root: ET.Element
    folder: Path

    def concluded(self) -> set[int]:
        """The exit codes of `stormproof run` that a reader of pytest's JUnit file would expect."""
        words = set(self.items.values())
        return {1} if "failure" in words else {3, 4} if "error" in words else {0}


def outcomes(root: ET.Element) -> dict[str, str]:
    """`failure`, `error` or `passed` for each case of a JUnit file."""
    found = {}
    for case in root.iter("testcase"):
        words = {child.tag for child in case} & {"failure", "error"}
        found[case.attrib["name"].partition("[")[2].rstrip("]")] = words.pop() if words else "passed"
    return found


def play(
    pytester: pytest.Pytester,
    *runs: RunResult,
    test: str = TEST,
    hidden: tuple[str, ...] = (),
    code: int | None = None,
    summary: bool = True,
    undecided: str | None = None,
    error: str | None = None,
    options: tuple[str, ...] = (),
) -> Said:
    """A pytest session of its own over a session of the harness that went like this."""
    session: dict[str, Any] = {
        "runs": [msgspec.to_builtins(run) for run in runs],
        "hidden": hidden,
        "code": code,
        "summary": summary,
        "undecided": undecided,
        "error": error,
    }
    pytester.path.joinpath("session.json").write_text(json.dumps(session))
    pytester.path.joinpath("fake.py").write_text(FAKE.format(root=str(ROOT)))
    pytester.makepyfile(test_agent=test)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pytest_plugin, "_COMMAND", (sys.executable, "-P", str(pytester.path / "fake.py")))
        words = (
            "--junitxml=said.xml",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:hypothesispytest",
            "--stormproof-out",
            "kept",
        )
        done = pytester.runpytest_inprocess(*words, *options)
    report = pytester.path / "said.xml"
    root = ET.parse(report).getroot() if report.exists() else ET.Element("none")
    return Said(int(done.ret), outcomes(root), "\n".join([*done.outlines, *done.errlines]), root, pytester.path)


def exit_code(said: Said) -> int:
    """The exit code of the harness, as its summary has it."""
    return int(json.loads((said.folder / "kept" / "summary.json").read_text())["exit_code"])


@pytest.mark.parametrize(
    ("runs", "code", "items"),
    [
        pytest.param((FINE, OTHER), 0, ("passed", "passed"), id="held"),
        pytest.param((BROKEN, OTHER), 1, ("failure", "passed"), id="violated"),
        pytest.param((IDLE, OTHER), 4, ("error", "passed"), id="undecided"),
        pytest.param((MISFIRED, OTHER), 4, ("error", "passed"), id="misfired"),
        pytest.param((LOST, OTHER), 3, ("error", "passed"), id="harness-error"),
        pytest.param((result("204-order-small", **FLOOR), OTHER), 4, ("error", "passed"), id="floor-missed"),
        pytest.param((BROKEN, result("101-order-small", number=101, **FLOOR)), 1, ("failure", "error"), id="both"),
        pytest.param((result("204-order-small", ordinary_failure=True), OTHER), 0, ("passed", "passed"), id="failed"),
    ],
)
def test_items_agree_with_the_exit_code(
    pytester: pytest.Pytester, runs: tuple[RunResult, ...], code: int, items: tuple[str, ...]
) -> None:
    """Violated is a failure; undecided, a missed floor and a harness error are errors; all else passes."""
    said = play(pytester, *runs)
    assert said.items == {run.run_id: item for run, item in zip(runs, items, strict=True)}
    assert exit_code(said) == code
    assert code in said.concluded()
    assert (said.code == 0) == (code == 0)
    ours = ET.parse(said.folder / "kept" / "junit.xml").getroot()
    words = {child.tag for case in ours.iter("testcase") for child in case} & {"failure", "error"}
    assert words == set(items) - {"passed"}


def test_a_missed_floor_strikes_every_item_of_its_scenario(pytester: pytest.Pytester) -> None:
    """The rate is one over all runs of the scenario: none of them passes, and each says why."""
    runs = [result(f"204-{trace}", trace=trace, **FLOOR) for trace in ("order-small", "fan-out")]
    said = play(pytester, *runs, OTHER)
    assert said.items == {"204-order-small": "error", "204-fan-out": "error", "101-order-small": "passed"}
    assert said.text.count("retry acted at 2 of 4 opportunities (50 %), under its floor of 100 %") >= 2


@pytest.mark.parametrize(
    ("went", "words"),
    [
        ({"undecided": "3 of 5 runs were not played: interrupted"}, "3 of 5 runs were not played"),
        ({"error": "the disk is full"}, "the disk is full"),
        ({"summary": False, "code": 3}, "ended with exit code 3"),
        ({"summary": False, "code": 0}, "the harness has spoken"),
        ({"code": 2}, "ended with exit code 2"),
        ({"code": 4}, "ended with exit code 4"),
        ({"code": 1}, "ended with exit code 1"),
    ],
)
def test_what_concerns_the_session_strikes_every_item(
    pytester: pytest.Pytester, went: dict[str, Any], words: str
) -> None:
    """A doubt about the whole session, and an exit code that no run explains, leave no item green."""
    said = play(pytester, FINE, OTHER, **went)
    assert said.items == {"204-order-small": "error", "101-order-small": "error"}
    assert words in said.text


def test_a_violation_stays_a_failure_whatever_else_went_wrong(pytester: pytest.Pytester) -> None:
    """What was proven before the harness failed is told as proven; the rest is in error."""
    said = play(pytester, BROKEN, OTHER, error="the disk is full")
    assert said.items == {"204-order-small": "failure", "101-order-small": "error"}
    assert "single-effect: duplicate-key" in said.text


def test_a_run_without_an_item_is_not_lost(pytester: pytest.Pytester) -> None:
    """What breaks in a run that was played beside the selected ones strikes the items of its scenario."""
    beside = result("204-world-2", trace="fan-out", verdicts=[violated("duplicate-key", 3, 5)])
    said = play(pytester, FINE, beside, OTHER, hidden=("204-world-2",))
    assert said.items == {"204-order-small": "error", "101-order-small": "passed"}
    assert "204-world-2, played beside: single-effect (duplicate-key)" in said.text


def test_a_test_that_checks_nothing_is_checked(pytester: pytest.Pytester) -> None:
    """A test that only takes the case cannot be green over a violation; one that expects it can."""
    said = play(pytester, BROKEN, test="def test_agent(stormproof_case): pass\n")
    assert said.items == {"204-order-small": "failure"}
    expecting = """
import pytest
from stormproof.pytest_plugin import InvariantViolated

def test_agent(stormproof_case):
    with pytest.raises(InvariantViolated, match="duplicate-key"):
        stormproof_case.check()
"""
    assert play(pytester, BROKEN, test=expecting).items == {"204-order-small": "passed"}


def test_properties_tell_what_a_pass_is_worth(pytester: pytest.Pytester) -> None:
    """An ordinary failure and a vacuous run pass, and say so in pytest's JUnit file."""
    vacuous = [msgspec.structs.replace(ruling, verdict="vacuous") for ruling in held()]
    run = result("204-order-small", ordinary_failure=True, status="failed", verdicts=vacuous)
    said = play(pytester, run)
    properties = {p.attrib["name"]: p.attrib["value"] for p in said.root.iter("property")}
    assert properties["ordinary-failure"] == "failed"
    assert "vacuous" in properties


def test_the_harness_runs_once_for_what_is_selected(pytester: pytest.Pytester) -> None:
    """One call plays the selected items alone, with set and agent as asked for; results of before do not count."""
    play(pytester, BROKEN)
    (pytester.path / "calls.txt").unlink()
    said = play(
        pytester, FINE, OTHER, options=("-k", "101", "--stormproof-agent", "mine", "--stormproof-set", "nightly")
    )
    assert said.items == {"101-order-small": "passed"}
    (call,) = (pytester.path / "calls.txt").read_text().splitlines()
    assert call.startswith("--set nightly --agent mine --only ")
    assert [json.loads(line)["run_id"] for line in (pytester.path / "kept" / "verdicts.jsonl").open()] == [
        "101-order-small"
    ]


def test_nothing_to_run_is_no_pass(pytester: pytest.Pytester) -> None:
    """A set that gives no run ends as `stormproof run` would: not green."""
    said = play(pytester)
    assert said.code not in (0, 5)
    assert "nothing to run" in said.text
