"""The pytest plugin: one test item per scenario and trace, each with the outcome of its run.

A test that takes the fixture `stormproof_case` is run once per pair of scenario and trace; nothing happens until one
does. The harness runs as a process of its own, once for all items that are selected, so that neither mitmproxy nor
pandas is loaded here. What it says of the whole session counts as well: items pass only where `stormproof run` would
end with exit code 0, fail for a violation, and are errors for whatever leaves its word open::

    @pytest.mark.chaos
    def test_my_agent(stormproof_case):
        stormproof_case.check()
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

_COMMAND = (sys.executable, "-P", "-m", "stormproof", "run")
_SUMMARY, _VERDICTS = "summary.json", "verdicts.jsonl"


class InvariantViolated(AssertionError):
    """A run broke an invariant. The message is the violation in short."""


class Undecided(Exception):
    """A run that proves nothing: a fault never fired, no traffic was seen, the harness failed."""


@dataclass
class Case:
    """One run, judged. `result` is its line of `verdicts.jsonl`, `doubts` what the session says against it."""

    run_id: str
    result: dict[str, Any] | None
    log: str = ""
    doubts: Sequence[str] = ()
    checked: bool = field(default=False, init=False)

    def check(self) -> None:
        """Raise `InvariantViolated` for each broken invariant; an ordinary failure passes, with a property.

        Called at the end of every test that has not done so itself.
        """
        self.checked = True
        if violated := _violated(self.result):
            raise InvariantViolated("\n".join(_page(self.result or {}, ruling) for ruling in violated))

    def undecided(self) -> str | None:
        """Why this run proves nothing, or `None`. A violation is proven whatever else went wrong."""
        result = self.result
        if _violated(result):
            return None
        if result is None:
            return "\n".join((f"{self.run_id} was not judged", *self.doubts, self.log[-2000:]))
        if reason := result.get("harness_error") or result.get("undecided"):
            return f"{self.run_id}: {reason}"
        silent = [fault for fault in result.get("faults", ()) if fault["armed"] and not fault["fired"]]
        names = ", ".join(f"{fault['kind']} at {fault['site']}" for fault in silent)
        if silent:
            return f"{self.run_id}: never fired: {names}"
        return "\n".join(self.doubts) or None

    def properties(self) -> list[tuple[str, object]]:
        """What a report should say beside "passed"."""
        result = self.result or {}
        properties: list[tuple[str, object]] = []
        if result.get("ordinary_failure"):
            properties.append(("ordinary-failure", result.get("status") or "no outcome"))
        if all(ruling["verdict"] == "vacuous" for ruling in result.get("verdicts", ())):
            properties.append(("vacuous", "nothing in this run could have broken an invariant"))
        return properties


@dataclass(frozen=True)
class Session:
    """What one call of `stormproof run` gave: exit code, its summary if there is one, results by run, its words."""

    code: int
    summary: dict[str, Any] | None
    results: dict[str, dict[str, Any]]
    chosen: Sequence[str]
    log: str = ""

    def case(self, run_id: str) -> Case:
        """The judged run of an item, with every doubt that falls on it."""
        doubts = [why for why, runs in self._doubts() if run_id in runs]
        if complaint := self._unexplained():
            doubts.append(complaint)
        return Case(run_id, self.results.get(run_id), self.log, doubts)

    def _doubts(self) -> Iterator[tuple[str, Collection[str]]]:
        """Why something is not proven, and the items that have to say so: no word of the summary is lost.

        What concerns a run falls on its item. A floor that was missed falls on all items of the scenario, as does a
        run that was played beside them and has no item; what concerns no scenario falls on all.
        """
        summary = self.summary or {}
        for said in (*summary.get("errors", ()), *summary.get("undecided", ())):
            yield str(said.get("message") or said.get("why")), self._struck(said)
        for violation in summary.get("violations", ()):
            if violation["run_id"] not in self.chosen:
                told = f"{violation['invariant']} ({violation['reason']}): {violation['message']}"
                yield f"{violation['run_id']}, played beside: {told}", self._struck(violation)

    def _struck(self, said: dict[str, Any]) -> Collection[str]:
        if said.get("run_id") in self.chosen:
            return (said["run_id"],)
        number = said.get("scenario")
        of_scenario = [run for run in self.chosen if str(self.results.get(run, {}).get("number")) == str(number)]
        return of_scenario or self.chosen

    def _unexplained(self) -> str | None:
        """A complaint where the exit code says more than the items would; it falls on all of them."""
        fails = any(_violated(self.results.get(run)) for run in self.chosen)
        doubtful = any(True for _ in self._doubts())
        explained = {0} | ({1} if fails else set()) | ({1, 3, 4} if doubtful else set())
        if self.summary is not None and self.code in explained:
            return None
        return f"stormproof run ended with exit code {self.code}\n{self.log[-2000:]}"


def _violated(result: dict[str, Any] | None) -> list[dict[str, Any]]:
    return [ruling for ruling in (result or {}).get("verdicts", ()) if ruling["verdict"] == "violated"]


def _page(result: dict[str, Any], ruling: dict[str, Any]) -> str:
    lines = ", ".join(str(line) for line in ruling.get("evidence", ()))
    return (
        f"{ruling['invariant']}: {ruling.get('reason')}\n  {ruling.get('message')}\n"
        f"  evidence: history lines {lines}\n  repeat:   {result.get('replay')}"
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of their own prefix: other plugins own `--chaos`."""
    group = parser.getgroup("stormproof")
    group.addoption("--stormproof-set", default=None, help="the set of scenarios (default: as configured, else ci)")
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
    if not runs:
        raise pytest.UsageError("stormproof has nothing to run: no scenario of the set fits a trace")
    metafunc.parametrize("stormproof_case", runs, ids=runs, indirect=True, scope="session")


@pytest.fixture(scope="session")
def _stormproof_session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Session:
    """Plays every selected run in one go."""
    config = request.config
    folder = tmp_path_factory.mktemp("stormproof")
    out = Path(config.getoption("--stormproof-out") or folder / "results")
    wanted = folder / "only.txt"
    items = [
        item for item in request.session.items if isinstance(item, pytest.Function) and hasattr(item, "callspec")
    ]
    params = [item.callspec.params for item in items]
    chosen = list(dict.fromkeys(str(given["stormproof_case"]) for given in params if "stormproof_case" in given))
    wanted.write_text("\n".join(chosen), encoding="utf-8")
    # Whatever an earlier session left there must not be taken for this one's.
    for name in (_SUMMARY, _VERDICTS):
        (out / name).unlink(missing_ok=True)
    command = [*_COMMAND, *_options(config), "--only", str(wanted), "--out", str(out), "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    results = [json.loads(line) for line in _text(out / _VERDICTS).splitlines()]
    return Session(
        code=done.returncode,
        summary=json.loads(_text(out / _SUMMARY) or "null"),
        results={result["run_id"]: result for result in results},
        chosen=chosen,
        log=done.stderr + done.stdout,
    )


@pytest.fixture(scope="session")
def stormproof_case(request: pytest.FixtureRequest, _stormproof_session: Session) -> Case:
    """The judged run of this item; call `check()` on it.

    A run that proves nothing is an error of the item (raised here, in its set-up), not a failure.
    """
    case = _stormproof_session.case(request.param)
    if reason := case.undecided():
        raise Undecided(reason)
    return case


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Carry a case's properties (an ordinary failure, a vacuous run) to the report; check what nobody checked."""
    case = getattr(item, "funcargs", {}).get("stormproof_case")
    if not isinstance(case, Case):
        return (yield)
    case.checked = False
    item.user_properties.extend(case.properties())
    outcome = yield
    if not case.checked:
        case.check()
    return outcome


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _options(config: pytest.Config) -> list[str]:
    chosen, agent = config.getoption("--stormproof-set"), config.getoption("--stormproof-agent")
    return [*(["--set", chosen] if chosen else []), *(["--agent", agent] if agent else [])]
