"""Plays one run: starts the agent, acts on its process as the faults ask, drains, collects (DESIGN section 5)."""

from __future__ import annotations

import asyncio
import math
import shutil
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from harness.agents import AgentSpec
from harness.claims import AgentWords, read_agent_words, read_of_agent
from harness.environment import agent_environment, write_task
from harness.errors import HarnessError, told
from harness.gate import StartGate
from harness.lag import LagMonitor
from harness.merge import merge
from harness.planning import RunPlan
from harness.processes.control import Message
from harness.stage import Stage
from traces.history import Limits, Record

DRAIN_LIMIT_S = 20.0
"""How long the drain may take before it is an error of the harness; an injected wait ends when its run closes."""
MOST_GENERATIONS = 8
FIRST_SIGN_S = 5.0
FAILURE_MARGIN_S = 0.05
"""A failure may have been felt so much before it was noticed; no record of a run is further out of order."""


@dataclass(slots=True, kw_only=True)
class Played:
    """What one run left behind, before it is judged."""

    plan: RunPlan
    records: list[Record]
    fired: dict[str, int] = field(default_factory=dict)
    flows: dict[str, Any] = field(default_factory=dict)
    orphans: list[dict[str, Any]] = field(default_factory=list)
    words: AgentWords = field(default_factory=AgentWords)
    harness_error: str | None = None
    sound_until: float = math.inf
    """The Unix time up to which no failure of ours can have touched what is on record; `-inf` where a source is
    missing."""
    timed_out: bool = False
    given_up: bool = False
    """Whether it was killed so often that it was not started again."""
    started: float = 0.0
    wall_s: float = 0.0
    agent_s: float = 0.0
    queued_s: float = 0.0
    """How long it stood in the queue for starting up."""

    @property
    def traffic(self) -> int:
        """How many requests of the agent the proxy saw."""
        return int(self.flows.get("model", 0)) + int(self.flows.get("tool", 0))


@dataclass(slots=True)
class Player:
    """Plays runs on a stage. `gate` bounds how many agents start up at once (running is not bounded by it)."""

    stage: Stage
    agent: AgentSpec
    registry: Mapping[str, Any]
    lag: LagMonitor
    gate: StartGate
    folder: Path

    async def play(self, plan: RunPlan) -> Played:
        """One run from start to drain. An error of ours is kept in the result, with all that was seen: other runs
        go on."""
        run = _Run(self, plan)
        began = time.monotonic()
        async with AsyncExitStack() as doors:
            try:
                await run.open(doors)
                await run.live()
            except Exception as error:  # noqa: BLE001 - whatever failed, what happened is still to be collected
                run.failed(error, sound_until=run.steady - FAILURE_MARGIN_S)
        await run.collect()
        run.played.wall_s = time.monotonic() - began
        run.finish()
        return run.played


class _Run:
    def __init__(self, player: Player, plan: RunPlan) -> None:
        self.player, self.plan, self.stage = player, plan, player.stage
        self.folder = player.folder / plan.run_id
        self.harness: list[Record] = []
        self.wire: list[Record] = []
        self.effects: list[Record] = []
        self.sent: list[str] = []
        self.generation = 0
        self.killed: set[int] = set()
        self.port = 0
        self.known = False
        """Whether the stand-ins know the run, and so have to be asked what they did in it."""
        self.alive_since = 0.0
        self.first_start = math.inf
        self.steady = math.inf
        """When (Unix time) the harness last had nothing to do but to wait."""
        self.down_s = 0.0
        """How long the run was without a process between a kill and the start after it."""
        self.played = Played(plan=plan, records=[])

    async def open(self, doors: AsyncExitStack) -> None:
        plan, stage = self.plan, self.stage
        if self.folder.resolve().parent != self.player.folder.resolve():
            raise HarnessError(f"{self.folder} cannot be the folder of a run: it lies elsewhere than its name says")
        # What an earlier session left here is of another run: an agent would resume from it.
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "state").mkdir(parents=True)
        self.events = stage.listen(plan.run_id)
        doors.callback(stage.listeners.pop, plan.run_id, None)
        common: dict[str, Any] = {
            "run_id": plan.run_id,
            "intent_id": plan.intent_id,
            "tenant": plan.tenant,
            "world": plan.world,
            "secret": stage.secret,
        }
        await stage.standins.ask(
            "open_run",
            **common,
            trace=str(plan.trace_path),
            registry=self.player.registry,
            policy=plan.scenario.model,
        )
        self.known = True
        opened = await stage.proxy.ask(
            "open_run",
            run={
                **common,
                "upstreams": stage.upstreams,
                "registry": self.player.registry,
                "faults": list(plan.scenario.fault_data),
                "wanted": [
                    {"tool": tool, "meaning": meaning, "count": count}
                    for (tool, meaning), count in plan.source.actions.items()
                ],
            },
        )
        self.port = int(opened["port"])
        write_task(self.folder / "task.json", plan=plan, registry=self.player.registry)
        doors.push_async_callback(self._close)

    async def live(self) -> None:
        """From the first start of the agent to its last end."""
        timeout = self.player.agent.timeout_s
        self.steady = time.time()
        await self._start()
        deadline = time.monotonic() + timeout
        while True:
            try:
                event = await asyncio.wait_for(self.events.get(), max(0.0, deadline - time.monotonic()))
                self.steady = time.time()
            except TimeoutError:
                # The harness ends it, which is no crash of the agent.
                self.played.timed_out = True
                await self._kill()
                deadline = time.monotonic() + DRAIN_LIMIT_S
                continue
            if event["event"] == "process":
                struck = await self._kill()
                await self.stage.proxy.ask("acted", token=event["token"], struck=struck)
            elif event["event"] == "lost":
                raise HarnessError(f"{event['process']} ended in the middle of the run")
            elif event["event"] == "exited" and event["generation"] == self.generation:
                if event.get("lost"):
                    self.steady = event["t"]  # the agent was ended after that, by us
                    raise HarnessError("the process that watched over the agent was lost")
                again = self._exited(event)
                if not again:
                    return
                await self._start()

    async def _start(self) -> None:
        self.generation += 1
        queued = time.monotonic()
        async with self.player.gate.starting(again=self.generation > 1):
            now, self.alive_since = time.time(), time.monotonic()
            if self.generation == 1:
                self.played.queued_s, self.first_start = self.alive_since - queued, self.alive_since
                self.played.started = now
                self._note(
                    "run_started",
                    t=now,
                    limits=msgspec.convert(self.plan.limits, Limits),
                    world=self.plan.world,
                    tenant=self.plan.tenant,
                    task_type=self.plan.trace.task_type,
                )
            else:
                self.down_s += max(0.0, now - self.harness[-1].t)
            self._mend_events_file()
            environment = agent_environment(
                self.plan,
                folder=self.folder,
                port=self.port,
                agent=self.player.agent,
                started=self.played.started,
            )
            answer = await self.stage.launcher.ask(
                "start",
                run_id=self.plan.run_id,
                generation=self.generation,
                argv=list(self.player.agent.command),
                env=environment,
                cwd=self.player.agent.folder or str(Path.cwd()),
                stdout=str(self.folder / "stdout.txt"),
                stderr=str(self.folder / "stderr.txt"),
            )
            self._note("process_started", t=now, pid=answer["pid"], generation=self.generation)
            await self._first_sign()

    async def _first_sign(self) -> None:
        """Hold the gate until the agent has come up: it sent a request, wrote an event, or ended."""
        events, limit = self.folder / "events.jsonl", time.monotonic() + FIRST_SIGN_S
        before = _size(events)
        # A file of another process: nothing in here could set an event when it grows.
        while time.monotonic() < limit and self.events.empty() and _size(events) == before:  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    def _exited(self, event: Message) -> bool:
        """Note the end of a process and say whether the run goes on with another one."""
        injected = self.generation in self.killed
        self.played.agent_s += time.monotonic() - self.alive_since
        self._note(
            "process_exited",
            t=event["t"],
            pid=event["pid"],
            generation=self.generation,
            exit_code=event.get("exit_code"),
            signal=event.get("signal"),
            injected=injected,
        )
        if not injected or self.played.timed_out or not self.player.agent.restart_after_crash:
            return False
        self.played.given_up = self.generation >= MOST_GENERATIONS
        return not self.played.given_up

    async def _kill(self) -> bool:
        """Kill the agent with all its children. False where it had ended of itself before: that is no crash."""
        await self.stage.launcher.ask("kill", run_id=self.plan.run_id, signal="SIGKILL")
        # The launcher tells of the end before it answers, so that it is among the events that wait.
        waiting = [self.events.get_nowait() for _ in range(self.events.qsize())]
        ends = [e for e in waiting if e["event"] == "exited" and e["generation"] == self.generation]
        struck = bool(ends) and ends[0].get("signal") == "SIGKILL"
        if struck:
            self.killed.add(self.generation)
        for event in waiting:
            self.events.put_nowait(event)
        return struck

    async def _refuse_kills(self) -> None:
        """A kill that is asked for when the agent has ended finds nobody; the fault has not fired."""
        while True:
            event = await self.events.get()
            if event["event"] == "process":
                await self.stage.proxy.ask("acted", token=event["token"], struck=False)

    async def _close(self) -> None:
        """Sweep what the agent left running, then let the proxy finish and say what it saw; the one is asked
        whatever became of the other."""
        ended = time.time()
        try:
            swept = await self.stage.launcher.ask("sweep", run_id=self.plan.run_id)
            self.played.orphans = list(swept.get("orphans", ()))
        except Exception as error:  # noqa: BLE001 - kept, and the port of the run is closed all the same
            self.failed(error, sound_until=ended - FAILURE_MARGIN_S)
        refusing = asyncio.create_task(self._refuse_kills())
        try:
            closed = await self.stage.proxy.ask("close_run", run_id=self.plan.run_id, limit_s=DRAIN_LIMIT_S)
            self.wire = msgspec.convert(closed["records"], list[Record])
            self.sent = list(closed["sent"])
            self.played.fired, self.played.flows = closed["fired"], closed["flows"]
        except Exception as error:  # noqa: BLE001 - kept, and what the service did is still to be collected
            self.failed(error, sound_until=-math.inf)
        else:
            if closed.get("failure"):
                self.failed(
                    HarnessError(f"the proxy failed in this run: {closed['failure']}"),
                    sound_until=closed["failed_at"] - FAILURE_MARGIN_S,
                )
        finally:
            refusing.cancel()

    async def collect(self) -> None:
        """The service's own account. It is the ground truth, and asked for whatever failed before."""
        if not self.known:
            return
        ended = time.time()
        try:
            drained = await self.stage.standins.ask(
                "drain",
                run_id=self.plan.run_id,
                sent=self.sent,
                limit_s=DRAIN_LIMIT_S,
            )
            self.effects = msgspec.convert(drained["effects"], list[Record])
            unfinished = ", ".join(drained["unfinished"])
        except Exception as error:  # noqa: BLE001 - kept: one run without a result
            self.failed(error, sound_until=-math.inf)
        else:
            if unfinished:
                why = f"the service had not finished {unfinished} when its time was up"
                self.failed(HarnessError(why), sound_until=ended - FAILURE_MARGIN_S)

    def failed(self, error: Exception, *, sound_until: float) -> None:
        """Keep an error of ours (the first one is told), and up to when the record of the run is sound."""
        self.played.harness_error = self.played.harness_error or told(error)
        self.played.sound_until = min(self.played.sound_until, sound_until)

    def finish(self) -> None:
        """Merge what every source saw; what there is, even where the harness failed."""
        last_exit = next((r for r in reversed(self.harness) if r.type == "process_exited"), None)
        words = read_agent_words(self.folder, self.plan.run_id, last_exit)
        self.played.words = words
        if self.harness:
            monitor = self.player.lag
            monitor.look()
            lag = monitor.worst_since(self.first_start)
            if moved := monitor.clock_moved_since(self.first_start):
                why = f"the system's clock was set by {moved:+.3f} s during the run: its times prove nothing"
                self.failed(HarnessError(why), sound_until=-math.inf)
            self._credit_down_time()
            end = max((record.t for record in self.harness), default=time.time())
            self._note("harness_lag", t=end, max_s=round(lag, 4))
        self.played.records = merge(
            harness=self.harness,
            wire=self.wire,
            effects=self.effects,
            agent=words.records,
        )

    def _credit_down_time(self) -> None:
        """The time without a process was the harness's, from the exit to the start after it: the run gets it back."""
        started = self.harness[0]
        limits = started.limits
        if self.down_s and limits is not None and limits.wall_clock_s is not None:
            recovery = round((limits.recovery_s or 0.0) + self.down_s, 4)
            limits = msgspec.structs.replace(limits, recovery_s=recovery)
            self.harness[0] = msgspec.structs.replace(started, limits=limits)

    def _note(self, kind: str, *, t: float, **fields: Any) -> None:
        self.harness.append(Record(type=kind, t=t, run_id=self.plan.run_id, source="harness", **fields))

    def _mend_events_file(self) -> None:
        """A killed writer may have left half a line: the next process begins on a fresh one."""
        path = self.folder / "events.jsonl"
        if read_of_agent(path, most=1, from_end=True) not in (b"", b"\n"):
            with path.open("ab") as file:
                file.write(b"\n")


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
