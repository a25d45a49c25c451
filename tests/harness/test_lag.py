"""How late the harness is, and whether its clock was set."""

from __future__ import annotations

import pytest

from harness.lag import LagMonitor


class Clocks:
    """Two clocks that a test moves."""

    def __init__(self) -> None:
        self.now, self.wall = 100.0, 1_700_000_000.0

    def monitor(self) -> LagMonitor:
        """A monitor that reads them."""
        return LagMonitor(monotonic=lambda: self.now, wall=lambda: self.wall)

    def tick(self, monitor: LagMonitor, *, late: float) -> float:
        """A tick that comes so late; returns its moment."""
        monitor._due = self.now + 0.05
        self.pass_by(0.05 + late)
        monitor.look()
        return self.now

    def pass_by(self, seconds: float) -> None:
        """Time passes, on both clocks."""
        self.now += seconds
        self.wall += seconds


def test_the_worst_since_a_moment() -> None:
    """The largest lateness at or after a moment counts, whatever came before, however long ago."""
    clocks = Clocks()
    monitor = clocks.monitor()
    assert monitor.worst_since(0) == 0.0
    moments = [clocks.tick(monitor, late=late) for late in (0.1, 0.4, 0.0, 0.2, 0.05)]
    worst = [round(monitor.worst_since(moment), 6) for moment in moments]
    assert worst == [0.4, 0.4, 0.2, 0.2, 0.05]
    assert monitor.worst_since(clocks.now + 1) == 0.0


def test_long_sessions_are_remembered() -> None:
    """A bad moment long ago is still known to the run that it fell into."""
    clocks = Clocks()
    monitor = clocks.monitor()
    began = clocks.now
    clocks.tick(monitor, late=0.3)
    for _ in range(30_000):
        clocks.tick(monitor, late=0.001)
    assert monitor.worst_since(began) == pytest.approx(0.3)


def test_a_wait_that_is_not_over() -> None:
    """A run that ends while the loop is late sees that lateness as far as it has gone."""
    clocks = Clocks()
    monitor = clocks.monitor()
    monitor._due = clocks.now + 0.05
    clocks.pass_by(0.65)
    monitor.look()
    assert monitor.worst_since(100.0) == pytest.approx(0.6)


@pytest.mark.parametrize("step", [0.2, -0.2, -3600.0])
def test_a_set_clock_is_noticed(step: float) -> None:
    """A wall clock that was set forward or back is told to the runs of that time, and to no later one."""
    clocks = Clocks()
    monitor = clocks.monitor()
    began = clocks.now
    clocks.tick(monitor, late=0)
    clocks.wall += step
    clocks.tick(monitor, late=0)
    assert monitor.clock_moved_since(began) == pytest.approx(step)
    assert monitor.clock_moved_since(clocks.now + 0.001) == 0.0


def test_small_steps_add_up() -> None:
    """Many steps below the bound are a large one in the end; a clock that only drifts by less is left alone."""
    clocks = Clocks()
    monitor = clocks.monitor()
    clocks.wall += 0.03
    clocks.tick(monitor, late=0)
    assert monitor.clock_moved_since(0) == 0.0
    clocks.wall += 0.03
    clocks.tick(monitor, late=0)
    assert monitor.clock_moved_since(0) == pytest.approx(0.06)


def test_a_pause_of_ours_is_no_step() -> None:
    """Where the process was stopped between its two readings, it reads again instead of believing in a step."""
    clocks = Clocks()
    monitor = clocks.monitor()
    pauses = iter([0.5, 0.0])

    def wall() -> float:
        read = clocks.wall
        clocks.pass_by(next(pauses))
        return read

    monitor._wall = wall
    monitor.look()
    assert monitor.clock_moved_since(0) == 0.0
