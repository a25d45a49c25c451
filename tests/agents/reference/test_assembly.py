"""Putting an agent together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.reference.assembly import assemble, model_need_s
from agents.reference.decisions import REFERENCE
from agents.reference.events import Events
from agents.reference.loop import Run
from agents.reference.task import read_task
from tests.agents.fake_clock import FakeClock
from tests.agents.reference.test_task import environment


def built(folder: Path, clock: FakeClock, started: str = "", **task: Any) -> Run:
    """An agent for a small task."""
    env = {**environment(folder, limits={"wall_clock_s": 30}, **task), "STORMPROOF_RUN_STARTED": started}
    return assemble(read_task(env), events=Events(None, clock, {}), clock=clock, decisions=REFERENCE)


def test_the_run_begins_once(tmp_path: Path) -> None:
    """A restart half a minute later has the same deadlines, whatever it is told."""
    clock = FakeClock()
    first = built(tmp_path, clock, "998.0")
    first.ledger.close()
    clock.time += 30
    second = built(tmp_path, clock, "1030.0")
    second.ledger.close()
    assert first.time == second.time
    assert first.time.forward.at == 1028.0


def test_a_start_in_the_future_is_not_believed(tmp_path: Path) -> None:
    """Clocks differ: the run has begun by now in any case."""
    run = built(tmp_path, FakeClock(), "2000")
    run.ledger.close()
    assert run.time.started_at == 1000.0


@pytest.mark.parametrize(("wall_clock_s", "need_s"), [(1.0, 0.75), (30.0, 4.5), (600.0, 15.0)])
def test_an_unmeasured_model_gets_a_tenth(wall_clock_s: float, need_s: float) -> None:
    """Without a profile the need follows the wall clock, within bounds."""
    assert model_need_s(wall_clock_s) == pytest.approx(need_s)
