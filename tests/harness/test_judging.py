"""Judging computes in a thread of its own: runs that go on meanwhile do not look late, and none is half written."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from harness import runner
from harness.options import RunOptions
from harness.planning import Plan, RunPlan, WorldPlan
from harness.playing import Played
from harness.results import ResultWriter
from reports.results import RunResult
from tests.harness.fake_stage import AGENT, TOOLS, FakeStage, run_plan

JUDGING_S = 0.4


class Stage(FakeStage):
    """Is there without being set up."""

    def __init__(self, *_: object) -> None:
        super().__init__()

    async def __aenter__(self) -> Stage:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None


class Player:
    """Its runs are over at once."""

    def __init__(self, *, stage: Stage, **_: object) -> None:
        self.stage = stage

    async def play(self, plan: RunPlan) -> Played:
        """One run without an agent."""
        return Played(plan=plan, records=[])


class Judge:
    """Takes its time, and notes in which thread, and who else is at it."""

    def __init__(self) -> None:
        self.threads: set[int] = set()
        self.at_once = self.most_at_once = 0
        self.begun = threading.Event()

    def __call__(self, played: Sequence[Played], *_: object) -> list[RunResult]:
        self.begun.set()
        self.threads.add(threading.get_ident())
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        time.sleep(JUDGING_S)
        self.at_once -= 1
        return [RunResult(run_id=run.plan.run_id, number=204, scenario="t", trace="t") for run in played]


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Judge:
    """A slow judge, and runs that take no time."""
    made = Judge()
    monkeypatch.setattr(runner, "Stage", Stage)
    monkeypatch.setattr(runner, "Player", Player)
    monkeypatch.setattr(runner, "_judged", made)
    return made


def two_worlds() -> Plan:
    """Two worlds of one run each."""
    run = run_plan()
    return Plan(worlds=[WorldPlan(name=name, scenario=run.scenario, runs=(run,)) for name in ("a", "b")])


def run_all(folder: Path, announced: list[RunResult]) -> Any:
    """Play both worlds side by side."""
    options = RunOptions(out=folder, agent=AGENT, registry=TOOLS.registry, registry_data=TOOLS.data, parallel=2)
    return runner.run_all(two_worlds(), options, announced.append, writer=cast(ResultWriter, None))


def test_the_loop_goes_on_while_it_judges(judge: Judge, tmp_path: Path) -> None:
    """Two worlds are judged one after the other, in one thread that is not the loop's; the loop is never held up."""

    async def session() -> int:
        playing = asyncio.create_task(run_all(tmp_path, []))
        meanwhile = 0
        while not playing.done():
            await asyncio.sleep(0.005)
            meanwhile += judge.at_once
        assert len(playing.result().results) == 2
        return meanwhile

    assert asyncio.run(session()) > 2
    assert (len(judge.threads), judge.most_at_once) == (1, 1)
    assert threading.get_ident() not in judge.threads


def test_who_stops_it_keeps_what_is_being_judged(judge: Judge, tmp_path: Path) -> None:
    """Cancelled in the middle of judging, it ends after what is being written is written, and announces it."""
    announced: list[RunResult] = []

    async def session() -> None:
        playing = asyncio.create_task(run_all(tmp_path, announced))
        while not judge.begun.is_set():  # noqa: ASYNC110 - set by another thread
            await asyncio.sleep(0.005)
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing
        assert judge.at_once == 0

    asyncio.run(session())
    assert len(announced) == 2
