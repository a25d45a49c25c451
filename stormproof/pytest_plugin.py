"""The pytest plugin: one test item per scenario and trace, each with the outcome of its run.

A test that takes the fixture `stormproof_case` is run once per pair of scenario and trace; nothing happens until one
does. The harness runs as a process of its own, once for all items that are selected, so that neither mitmproxy nor
pandas is loaded here::

    @pytest.mark.chaos
    def test_my_agent(stormproof_case):
        stormproof_case.check()
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_COMMAND = (sys.executable, "-P", "-m", "stormproof", "run")


class InvariantViolated(AssertionError):
    """A run broke an invariant. The message is the violation in short."""


class Undecided(Exception):
    """A run that proves nothing: a fault never fired, no traffic was seen, the harness failed."""


@dataclass(frozen=True)
class Case:
    """One run, judged. `result` is its line of `verdicts.jsonl`."""

    run_id: str
    result: dict[str, Any] | None
    log: str = ""

    def check(self) -> None:
        """Raise `InvariantViolated` for each broken invariant; an ordinary failure passes, with a property."""
        if violated := self._violated():
            raise InvariantViolated("\n".join(_page(self.result or {}, ruling) for ruling in violated))

    def undecided(self) -> str | None:
        """Why this run proves nothing, or `None`. A violation is proven whatever else went wrong."""
        result = self.result
        if result is None:
            return f"{self.run_id} was not judged\n{self.log[-2000:]}"
        if self._violated():
            return None
        if reason := result.get("harness_error") or result.get("undecided"):
            return f"{self.run_id}: {reason}"
        silent = [fault for fault in result.get("faults", ()) if fault["armed"] and not fault["fired"]]
        names = ", ".join(f"{fault['kind']} at {fault['site']}" for fault in silent)
        return f"{self.run_id}: never fired: {names}" if silent else None

    def properties(self) -> list[tuple[str, object]]:
        """What a report should say beside "passed"."""
        result = self.result or {}
        properties: list[tuple[str, object]] = []
        if result.get("ordinary_failure"):
            properties.append(("ordinary-failure", result.get("status") or "no outcome"))
        if all(ruling["verdict"] == "vacuous" for ruling in result.get("verdicts", ())):
            properties.append(("vacuous", "nothing in this run could have broken an invariant"))
        return properties

    def _violated(self) -> list[dict[str, Any]]:
        return [r for r in (self.result or {}).get("verdicts", ()) if r["verdict"] == "violated"]


def _page(result: dict[str, Any], ruling: dict[str, Any]) -> str:
    lines = ", ".join(str(line) for line in ruling.get("evidence", ()))
    return (
        f"{ruling['invariant']}: {ruling.get('reason')}\n  {ruling.get('message')}\n"
        f"  evidence: history lines {lines}\n  repeat:   {result.get('replay')}"
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of their own prefix: other plugins own `--chaos`."""
    group = parser.getgroup("stormproof")
    group.addoption("--stormproof-set", default="ci", help="the set of scenarios (default: ci)")
    group.addoption("--stormproof-agent", default=None, help="the agent under test: a name or an agent.yaml")
    group.addoption("--stormproof-out", default=None, help="keep the result directory here")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers", "chaos: runs an agent through a scenario, with real processes and a real proxy"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One item per pair of scenario and trace."""
    if "stormproof_case" not in metafunc.fixturenames:
        return
    command = [*_COMMAND, *_options(metafunc.config), "--dry-run", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise pytest.UsageError(done.stderr.strip() or "stormproof could not list its runs")
    runs = [entry["run_id"] for entry in json.loads(done.stdout)]
    metafunc.parametrize("stormproof_case", runs, ids=runs, indirect=True, scope="session")


@pytest.fixture(scope="session")
def _stormproof_results(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[dict[str, Any], str]]:
    """Plays every selected run in one go and gives their results by run id, and the harness's own words."""
    config = request.config
    folder = tmp_path_factory.mktemp("stormproof")
    out = Path(config.getoption("--stormproof-out") or folder / "results")
    wanted = folder / "only.txt"
    chosen: list[str] = [
        str(item.callspec.params["stormproof_case"])
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and hasattr(item, "callspec")
        and "stormproof_case" in item.callspec.params
    ]
    wanted.write_text("\n".join(dict.fromkeys(chosen)), encoding="utf-8")
    command = [*_COMMAND, *_options(config), "--only", str(wanted), "--out", str(out), "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    results: dict[str, Any] = {}
    verdicts = out / "verdicts.jsonl"
    if verdicts.exists():
        for line in verdicts.read_text(encoding="utf-8").splitlines():
            result = json.loads(line)
            results[result["run_id"]] = result
    yield results, done.stderr + done.stdout


@pytest.fixture(scope="session")
def stormproof_case(request: pytest.FixtureRequest, _stormproof_results: tuple[dict[str, Any], str]) -> Case:
    """The judged run of this item; call `check()` on it.

    A run that proves nothing is an error of the item (raised here, in its set-up), not a failure.
    """
    results, log = _stormproof_results
    case = Case(run_id=request.param, result=results.get(request.param), log=log)
    if reason := case.undecided():
        raise Undecided(reason)
    return case


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Carry a case's properties (an ordinary failure, a vacuous run) over to the report."""
    yield
    case = getattr(item, "funcargs", {}).get("stormproof_case")
    if isinstance(case, Case):
        item.user_properties.extend(case.properties())


def _options(config: pytest.Config) -> list[str]:
    options = ["--set", config.getoption("--stormproof-set")]
    agent = config.getoption("--stormproof-agent")
    return [*options, "--agent", agent] if agent else options
