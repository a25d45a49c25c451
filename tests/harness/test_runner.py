"""Playing many worlds: what goes wrong in one of them takes nothing from the others."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from harness import runner
from harness.agents import find_agent
from harness.inputs import load_tools, load_traces
from harness.options import RunOptions
from harness.planning import Plan, RunPlan, Selection, plan_runs
from harness.playing import Played
from harness.results import ResultWriter
from harness.scenario import load_scenarios
from harness.session import session_of
from harness.settings import Settings
from reports.results import RunResult
from traces.history import Record

TOOLS = load_tools(Settings().tools)
TRACES = load_traces(Settings().traces, TOOLS.registry)
BOTH = ("order-gift-twins", "order-small")


class NoStage:
    """Stands where the processes of a session would be."""

    def __init__(self, *_: object) -> None:
        self.standins = self

    async def __aenter__(self) -> NoStage:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def ask(self, *_: object, **__: object) -> dict[str, Any]:
        """Every question has an empty answer."""
        return {}


def planned() -> Plan:
    """One scenario on two traces."""
    selection = Selection(numbers=("104",), traces=BOTH)
    return plan_runs(load_scenarios(list(Settings().scenarios)), TRACES, registry=TOOLS.registry, selection=selection)


def crashed(plan: RunPlan) -> Played:
    """A run whose agent died: a violation."""
    common: dict[str, Any] = {"run_id": plan.run_id, "source": "harness"}
    records = [
        Record(type="run_started", t=1.0, world=plan.world, **common),
        Record(type="process_exited", t=2.0, exit_code=1, injected=False, **common),
    ]
    return Played(plan=plan, records=records, flows={"model": 1})


def play_all(folder: Path) -> dict[str, RunResult]:
    """The results of the plan by trace."""
    plan, agent = planned(), find_agent("reference")
    writer = ResultWriter(folder, resume=False, session=session_of(plan, agent=agent, tools=TOOLS))
    options = RunOptions(
        out=folder, agent=agent, registry=TOOLS.registry, registry_data=TOOLS.data, parallel=1, max_time_s=None
    )
    tally = asyncio.run(runner.run_all(plan, options, lambda _: None, writer=writer))
    writer.close()
    return {result.trace: result for result in tally.results}


def test_a_mistake_while_playing_is_an_error_of_that_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other runs are played and judged all the same."""

    class Player:
        """Stumbles over one trace."""

        def __init__(self, **_: object) -> None: ...

        stage = NoStage()

        async def play(self, plan: RunPlan) -> Played:
            """One run, without an agent."""
            if plan.trace.name == BOTH[0]:
                raise TypeError("that was not planned")
            return crashed(plan)

    monkeypatch.setattr(runner, "Stage", NoStage)
    monkeypatch.setattr(runner, "Player", Player)
    results = play_all(tmp_path)
    assert "TypeError: that was not planned (please report it" in (results[BOTH[0]].harness_error or "")
    assert results[BOTH[1]].harness_error is None
    assert [ruling.reason for ruling in results[BOTH[1]].violations()] == ["crash"]


def test_a_mistake_while_looking_takes_no_verdict_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a finding cannot be looked for, what was proven stands beside the error."""

    class Player:
        """Plays agents that crash."""

        def __init__(self, **_: object) -> None: ...

        stage = NoStage()

        async def play(self, plan: RunPlan) -> Played:
            """One run, without an agent."""
            return crashed(plan)

    def stumbling(lines: list[object], **_: object) -> list[object]:
        if lines:
            raise RecursionError("too deep")
        return []

    monkeypatch.setattr(runner, "Stage", NoStage)
    monkeypatch.setattr(runner, "Player", Player)
    monkeypatch.setattr("harness.outcome.find", stumbling)
    results = play_all(tmp_path)
    assert len(results) == 2
    for result in results.values():
        assert "RecursionError: too deep" in (result.harness_error or "")
        assert [ruling.reason for ruling in result.violations()] == ["crash"]
