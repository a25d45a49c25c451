"""Plays many worlds side by side, judges each from disk as it ends, and keeps the results (DESIGN section 5)."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace

from harness.errors import HarnessError, told
from harness.gate import StartGate, usable_cores
from harness.lag import LagMonitor
from harness.options import RunOptions
from harness.outcome import run_result
from harness.planning import Plan, RunPlan, WorldPlan
from harness.playing import Played, Player
from harness.results import Block, ResultWriter
from harness.stage import Stage
from reports.results import RunResult

Announce = Callable[[RunResult], None]


@dataclass(slots=True, kw_only=True)
class Tally:
    """What became of the plan."""

    results: list[RunResult] = field(default_factory=list)
    not_played: list[WorldPlan] = field(default_factory=list)
    stopped: str | None = None
    """Why it ended early, if it did."""
    error: str | None = None
    """What the harness failed at outside of any run, if it did."""


def default_parallel() -> int:
    """Twice the cores and two more: runs mostly wait, only their start-up computes, and that is gated."""
    return 2 * usable_cores() + 2


async def run_all(plan: Plan, options: RunOptions, announce: Announce, *, writer: ResultWriter) -> Tally:
    """Play every world of the plan. Cancelling it (Ctrl-C) ends the agents and keeps what has finished.

    Raises `HarnessError` if the stage cannot be set up.
    """
    tally = Tally()
    waiting = list(reversed(plan.worlds))
    deadline = None if options.max_time_s is None else time.monotonic() + options.max_time_s
    lag = LagMonitor()
    # Judging computes. On the event loop it would make every run that goes on look late; one thread keeps the order.
    thread = ThreadPoolExecutor(1, thread_name_prefix="judge")
    judging: set[asyncio.Task[None]] = set()
    async with Stage(options.out / "stage") as stage:
        watching = asyncio.create_task(lag.watch())
        player = Player(
            stage=stage,
            agent=options.agent,
            registry=options.registry_data,
            lag=lag,
            gate=StartGate(usable_cores()),
            folder=options.out / "runs",
        )

        async def judge(played: list[Played], world: WorldPlan) -> None:
            loop = asyncio.get_running_loop()
            for result in await loop.run_in_executor(thread, _judged, played, world, options, writer):
                tally.results.append(result)
                announce(result)

        async def work() -> None:
            while waiting:
                if deadline is not None and time.monotonic() >= deadline:
                    tally.stopped = "--max-time is over"
                    return
                world = waiting.pop()
                try:
                    played = await _play_world(player, world)
                except BaseException:
                    waiting.append(world)
                    raise
                task = asyncio.create_task(judge(played, world))
                judging.add(task)
                task.add_done_callback(judging.discard)
                # Whoever stops this: what is being written will have been written, and told.
                await asyncio.shield(task)

        workers = [asyncio.create_task(work()) for _ in range(min(options.parallel, len(waiting) or 1))]
        try:
            await asyncio.gather(*workers)
        finally:
            for task in (*workers, watching):
                task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(*workers, watching, *judging, return_exceptions=True)
            thread.shutdown()
            tally.not_played = list(reversed(waiting))
    return tally


async def _play_world(player: Player, world: WorldPlan) -> list[Played]:
    async def one(index: int) -> Played:
        run = world.runs[index]
        if run.start_s:
            await asyncio.sleep(run.start_s)
        return await _play(player, run)

    played = await asyncio.gather(*(one(index) for index in range(len(world.runs))))
    # What a failure took from one run may have been the proof of another one's innocence.
    sound_until = min(run.sound_until for run in played)
    for run in played:
        run.sound_until = sound_until
    with suppress(HarnessError):
        await player.stage.standins.ask("close_world", world=world.name)
    return list(played)


async def _play(player: Player, run: RunPlan) -> Played:
    """One run, whatever happens in it: a mistake of ours in one run is no reason to lose the others."""
    try:
        return await player.play(run)
    except Exception as error:  # noqa: BLE001 - told as an error of the harness in this run
        return Played(plan=run, records=[], harness_error=told(error), sound_until=-math.inf)


def _judged(played: list[Played], world: WorldPlan, options: RunOptions, writer: ResultWriter) -> list[RunResult]:
    records = [record for run in played for record in run.records]
    if len(played) > 1:
        records.sort(key=lambda record: record.t)
    block = writer.write_world(world.name, records)
    results = [_result(run, block, options) for run in played]
    writer.write_results(results)
    return results


def _result(played: Played, block: Block, options: RunOptions) -> RunResult:
    """The result of one run. Where looking at its history fails, the verdicts stand: what is proven stays proven."""
    try:
        return run_result(played, block=block, options=options)
    except Exception as error:  # noqa: BLE001 - told as an error of the harness in this run
        played.harness_error = played.harness_error or told(error)
        return run_result(played, block=replace(block, records=[]), options=options)
