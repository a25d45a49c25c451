"""What the results of a folder rest on, so that `--resume` never takes another agent's results for this one's.

`session.json` beside the results holds the agent's name and digests of everything that decides how a run goes: how
the agent is started, the tools registry, each scenario, each trace. Digests alone: an environment may hold secrets.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from harness.agents import AgentSpec
from harness.errors import InputError
from harness.inputs import ToolsFile
from harness.planning import Plan
from harness.scenario import Scenario
from reports.render import write_whole
from traces.digest import digest

SESSION = "session.json"


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """The agent's name, and SHA-256 digests of its start, the registry, scenarios by number, traces by name."""

    agent: str
    start: str
    tools: str
    scenarios: dict[str, str]
    traces: dict[str, str]

    def joined(self, earlier: Session) -> Session:
        """This session as the continuation of an earlier one that does not contradict it."""
        return msgspec.structs.replace(
            self,
            scenarios={**earlier.scenarios, **self.scenarios},
            traces={**earlier.traces, **self.traces},
        )


def session_of(plan: Plan, *, agent: AgentSpec, tools: ToolsFile) -> Session:
    """What the results of a plan will rest on. Raises `OSError` where a trace cannot be read."""
    sources = {run.trace.name: run.trace_path for world in plan.worlds for run in world.runs}
    return Session(
        agent=agent.name,
        start=_start(agent),
        tools=digest(tools.data),
        scenarios={world.scenario.number: _meaning(world.scenario) for world in plan.worlds},
        traces={name: _contents(path) for name, path in sources.items()},
    )


def read_session(folder: Path) -> Session:
    """The session of a folder that holds results. Raises `InputError` where it does not say what they rest on."""
    path = folder / SESSION
    try:
        return msgspec.json.decode(path.read_bytes(), type=Session)
    except (OSError, msgspec.MsgspecError):
        raise InputError(
            f"{path}:1: does not say what the results beside it rest on; start again without --resume"
        ) from None


def write_session(folder: Path, session: Session) -> None:
    """Put `session.json` in its place. Raises `OSError`."""
    write_whole(folder / SESSION, msgspec.json.format(msgspec.json.encode(session), indent=2) + b"\n")


def require_same(folder: Path, earlier: Session, now: Session) -> None:
    """Refuse to go on where results would be mixed. Raises `InputError` naming everything that differs."""
    faults = [
        f"{folder / SESSION}:1: {fault}; name another --out, or start again without --resume"
        for fault in _differences(earlier, now)
    ]
    if faults:
        raise InputError(faults)


def _differences(earlier: Session, now: Session) -> Iterator[str]:
    if earlier.agent != now.agent:
        yield f"the results beside it are of the agent `{earlier.agent}`, not of `{now.agent}`"
    elif earlier.start != now.start:
        yield f"the agent `{now.agent}` has changed since: its command, folder, environment or restart"
    if earlier.tools != now.tools:
        yield "the tools registry has changed since"
    for kind, before, after in (
        ("scenario", earlier.scenarios, now.scenarios),
        ("trace", earlier.traces, now.traces),
    ):
        for name in sorted(before.keys() & after.keys()):
            if before[name] != after[name]:
                yield f"{kind} {name} has changed since"


def _start(agent: AgentSpec) -> str:
    """How the agent is started, and the files of its own folder that its command names."""
    files = [Path(agent.folder) / word for word in agent.command] if agent.folder else []
    spec = dataclasses.asdict(agent)
    # The same file may be named in several ways.
    del spec["reference"]
    return digest({**spec, "files": [_contents(path) for path in files if path.is_file()]})


def _meaning(scenario: Scenario) -> str:
    """Everything of a scenario that decides how a run goes and how it is judged."""
    return digest(
        {
            "version": scenario.version,
            "faults": scenario.fault_data,
            "model": scenario.model,
            "limits": scenario.limits,
            "mechanisms": {name: dataclasses.asdict(bound) for name, bound in scenario.mechanisms.items()},
            "invariants": scenario.invariants,
            "world": [dataclasses.asdict(entry) for entry in scenario.world],
        }
    )


def _contents(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
