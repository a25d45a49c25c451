"""Several calls side by side, no more than allowed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Generic, TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Job(Generic[Result]):
    """Something to do, and the resource group it draws on."""

    run: Callable[[], Result]
    group: str | None = None


def waiting(jobs: Sequence[Job[Result]], *, limit: int, groups: Mapping[str, int] | None = None) -> list[int]:
    """The places of the jobs that cannot be begun at once."""
    taken: dict[str, int] = {}
    late = []
    for index, job in enumerate(jobs):
        group = job.group or ""
        taken[group] = taken.get(group, 0) + 1
        if index >= limit or taken[group] > (groups or {}).get(group, len(jobs)):
            late.append(index)
    return late


def in_parallel(jobs: Sequence[Job[Result]], *, limit: int, groups: Mapping[str, int] | None = None) -> list[Result]:
    """Run all jobs, at most `limit` at once and no more of a group than `groups` says; results in the order of jobs.

    Jobs are begun in their order. The first exception, in that order, is raised after all jobs have ended.
    """
    permits = {name: threading.BoundedSemaphore(max(1, most)) for name, most in (groups or {}).items()}
    results: dict[int, Result] = {}
    faults: dict[int, BaseException] = {}
    queue = iter(enumerate(jobs))
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                index, job = next(queue, (-1, None))
            if job is None:
                return
            try:
                with permits.get(job.group or "", nullcontext()):
                    results[index] = job.run()
            except BaseException as fault:  # noqa: BLE001 - handed to the caller below
                faults[index] = fault

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(limit, len(jobs)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[min(faults)]
    return [results[index] for index in range(len(jobs))]
