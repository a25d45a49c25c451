"""The clock of a real run."""

from __future__ import annotations

import time

import pytest

from agents.reference.clock import SystemClock


def test_a_step_of_the_wall_clock_moves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within one process, setting the wall clock back an hour does not touch the run's time."""
    clock = SystemClock()
    before = clock.now()
    monkeypatch.setattr(time, "time", lambda: before - 3600)
    assert 0 <= clock.now() - before < 60


def test_sleeping_for_nothing_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait that is over already is no error."""
    SystemClock().sleep(-1.0)
