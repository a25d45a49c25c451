"""Calls side by side."""

from __future__ import annotations

import threading
import time

import pytest

from agents.reference.pool import Job, in_parallel, waiting


class Gauge:
    """Counts how many are inside."""

    def __init__(self) -> None:
        self.now = self.peak = 0
        self._lock = threading.Lock()

    def work(self) -> int:
        """Be inside for a moment."""
        with self._lock:
            self.now += 1
            self.peak = max(self.peak, self.now)
        time.sleep(0.01)
        with self._lock:
            self.now -= 1
        return self.peak


def test_no_more_than_the_limit() -> None:
    """Twelve jobs under a limit of four: never more than four inside."""
    gauge = Gauge()
    in_parallel([Job(gauge.work) for _ in range(12)], limit=4)
    assert 2 <= gauge.peak <= 4


def test_a_group_has_a_limit_of_its_own() -> None:
    """Jobs of a limited group keep to it, whatever the run's limit."""
    gauge = Gauge()
    in_parallel([Job(gauge.work, "g") for _ in range(6)], limit=6, groups={"g": 2})
    assert gauge.peak <= 2


def test_results_keep_their_order() -> None:
    """Results come in the order of the jobs, not of their ends."""

    def slow_first(number: int) -> int:
        time.sleep(0.02 if number == 0 else 0.0)
        return number

    jobs = [Job(lambda number=number: slow_first(number)) for number in range(5)]  # type: ignore[misc]
    assert in_parallel(jobs, limit=5) == [0, 1, 2, 3, 4]


def test_an_exception_waits_for_the_others() -> None:
    """The first failing job, in order, is raised after all have ended."""
    done: list[int] = []

    def fail() -> None:
        raise KeyError("first")

    def late() -> None:
        time.sleep(0.02)
        done.append(1)

    with pytest.raises(KeyError, match="first"):
        in_parallel([Job(fail), Job(late)], limit=2)
    assert done == [1]


def test_who_has_to_wait() -> None:
    """By place beyond the limit, or beyond the limit of the group."""
    jobs = [Job(int, "g"), Job(int, "g"), Job(int), Job(int)]
    assert waiting(jobs, limit=3) == [3]
    assert waiting(jobs, limit=4, groups={"g": 1}) == [1]
    assert in_parallel([], limit=3) == []
