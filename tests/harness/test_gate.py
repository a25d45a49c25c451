"""Starts are bounded, restarts go first, and only the cores that may be used count."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress

import pytest

from harness.gate import StartGate, usable_cores


async def starter(gate: StartGate, name: str, log: list[str], *, again: bool = False) -> None:
    """Start up, note it, and take a moment for it."""
    async with gate.starting(again=again):
        log.append(name)
        await asyncio.sleep(0.01)


def test_no_more_than_the_places_at_once() -> None:
    """First starts come in one after the other where there is one place, in the order in which they asked."""

    async def session() -> list[str]:
        gate, log = StartGate(1), list[str]()
        tasks = [asyncio.create_task(starter(gate, name, log)) for name in "abc"]
        await asyncio.sleep(0)
        assert log == ["a"]
        await asyncio.gather(*tasks)
        return log

    assert asyncio.run(session()) == ["a", "b", "c"]


def test_a_restart_never_waits() -> None:
    """With the only place taken, a restart is let in at once; first starts wait for both to leave."""

    async def session() -> list[str]:
        gate, log = StartGate(1), list[str]()
        async with gate.starting():
            waiting = asyncio.create_task(starter(gate, "first start", log))
            await asyncio.sleep(0)
            async with asyncio.timeout(1), gate.starting(again=True):
                log.append("restart")
            await asyncio.sleep(0)
            assert log == ["restart"]
        await waiting
        return log

    assert asyncio.run(session()) == ["restart", "first start"]


@pytest.mark.parametrize("when", ["while it waits", "when its turn has come"])
def test_who_leaves_the_queue_takes_no_place_along(when: str) -> None:
    """A start that is cancelled gives its place back, also one that it had just been given."""

    async def session() -> list[str]:
        gate, log = StartGate(1), list[str]()
        async with gate.starting():
            task = asyncio.create_task(starter(gate, "cancelled", log))
            await asyncio.sleep(0)
            if when == "while it waits":
                task.cancel()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        async with asyncio.timeout(1):
            await starter(gate, "next", log)
        return log

    assert asyncio.run(session()) == ["next"]


def test_cores_that_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process bound to one core of many has one; without affinity all of them count."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {3}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert usable_cores() == 1
    monkeypatch.delattr(os, "sched_getaffinity")
    assert usable_cores() == 64
