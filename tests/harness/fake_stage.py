"""A stage without processes: a run is played on it as a test says, step by step."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.agents import AgentSpec
from harness.gate import StartGate
from harness.inputs import load_tools, load_traces
from harness.lag import LagMonitor
from harness.planning import RunPlan, Selection, plan_runs
from harness.playing import Played, Player
from harness.scenario import load_scenarios
from harness.settings import Settings

TOOLS = load_tools(Settings().tools)
AGENT = AgentSpec(name="fake", command=("fake",), timeout_s=20.0)

Answer = dict[str, Any]
Script = Callable[["FakeStage", Mapping[str, Any]], Answer]


def run_plan(trace: str = "order-small") -> RunPlan:
    """The plan of one run: scenario 204 on that trace."""
    (scenario,) = [s for s in load_scenarios(list(Settings().scenarios)) if s.number == "204"]
    planned = plan_runs(
        [scenario],
        load_traces(Settings().traces, TOOLS.registry),
        registry=TOOLS.registry,
        selection=Selection(traces=(trace,)),
    )
    return planned.worlds[0].runs[0]


class FakeChild:
    """One process of the stage; what it answers to each operation is in `answers`."""

    def __init__(self, stage: FakeStage, **answers: Script) -> None:
        self.stage, self.answers = stage, answers
        self.asked: list[str] = []

    async def ask(self, op: str, /, *, within_s: float = 60.0, **fields: Any) -> Answer:
        """Answer as the test says; a script may raise."""
        self.asked.append(op)
        await asyncio.sleep(0)
        return self.answers[op](self.stage, fields) if op in self.answers else {}


class FakeStage:
    """What `Player` needs of a stage. By default an agent starts, is seen, and ends well at once."""

    upstreams: Mapping[str, str] = {"tools": "http://127.0.0.1:1", "model": "http://127.0.0.1:2"}

    secret = "only-ours"

    def __init__(self) -> None:
        self.listeners: dict[str, asyncio.Queue[Answer]] = {}
        self.starts: list[Mapping[str, Any]] = []
        self.closed: Answer = {"records": [], "sent": [], "fired": {}, "flows": {"tool": 1}, "failure": None}
        self.drained: Answer = {"effects": [], "unfinished": []}
        self.launcher = FakeChild(self, start=_start, kill=_kill)
        self.proxy = FakeChild(self, open_run=lambda _s, _f: {"port": 9}, close_run=lambda s, _f: s.closed)
        self.standins = FakeChild(self, drain=lambda s, _f: s.drained)

    def listen(self, run_id: str) -> asyncio.Queue[Answer]:
        """The queue of a run's events."""
        return self.listeners.setdefault(run_id, asyncio.Queue())

    def tell(self, run_id: str, event: str, **fields: Any) -> None:
        """Something that nobody asked for has happened."""
        self.listeners[run_id].put_nowait({"event": event, "run_id": run_id, **fields})

    def exit(self, run_id: str, generation: int, *, signal: str | None = None) -> None:
        """The agent's process has ended."""
        code = None if signal else 0
        self.tell(
            run_id, "exited", generation=generation, pid=generation, t=time.time(), exit_code=code, signal=signal
        )

    def player(self, folder: Path, *, gate: StartGate | None = None, lag: LagMonitor | None = None) -> Player:
        """A player on this stage."""
        return Player(
            stage=self,  # type: ignore[arg-type]
            agent=AGENT,
            registry=TOOLS.data,
            lag=lag or LagMonitor(),
            gate=gate or StartGate(2),
            folder=folder,
        )

    def play(self, folder: Path, **more: Any) -> Played:
        """One run, from start to drain."""
        return asyncio.run(self.player(folder, **more).play(run_plan()))


def _start(stage: FakeStage, fields: Mapping[str, Any]) -> Answer:
    stage.starts.append(fields)
    stage.exit(fields["run_id"], fields["generation"])
    return {"pid": fields["generation"], "t": time.time()}


def _kill(stage: FakeStage, fields: Mapping[str, Any]) -> Answer:
    stage.exit(fields["run_id"], len(stage.starts), signal="SIGKILL")
    return {"t": time.time()}


def killed_until(last: int) -> Script:
    """A start after which the proxy asks for a kill, in every generation before `last`; that one ends well."""

    def start(stage: FakeStage, fields: Mapping[str, Any]) -> Answer:
        stage.starts.append(fields)
        run_id, generation = fields["run_id"], fields["generation"]
        if generation < last:
            stage.tell(run_id, "process", token=f"{run_id}/w{generation}", action="kill")
        else:
            stage.exit(run_id, generation)
        return {"pid": generation, "t": time.time()}

    return start
