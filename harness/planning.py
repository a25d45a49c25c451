"""Which runs there are: scenarios joined with traces, sites checked against what the traces hold.

Nothing is started here. Every mistake that can be seen before a run is seen here, with its file and line.
"""

from __future__ import annotations

import fnmatch
import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.loading import did_you_mean
from harness.scenario import Scenario, joined
from injectors.core import Fault, Moment, Place, Point, Reply, Request
from traces.digest import args_digest
from traces.providers import for_api, refragment, reply_bytes
from traces.registry import Registry
from traces.trace import Exchange, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFile:
    """A recorded trace, where it lies, and how often each site occurs in it."""

    path: Path
    trace: Trace
    model_turns: int
    actions: Counter[tuple[str, str]]
    """How often the task wants each action: by tool and digest of what is meant (see `wanted_actions`)."""
    tool_calls: Counter[str]
    """Logical calls by tool."""
    compensable: Counter[str]
    """Calls that compensations of this trace's effects may make, by tool."""
    groups: Counter[str]

    @property
    def name(self) -> str:
        """The name that scenarios call it by."""
        return self.trace.name


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """One run to be played: scenario, trace, and the ids that every repeat of it has again."""

    run_id: str
    world: str
    intent_id: str
    tenant: str
    scenario: Scenario
    source: TraceFile
    limits: dict[str, Any]
    start_s: float = 0.0

    @property
    def trace(self) -> Trace:
        """The recorded trace that is replayed."""
        return self.source.trace

    @property
    def trace_path(self) -> Path:
        """Where the stand-ins read the trace from."""
        return self.source.path


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldPlan:
    """Runs that share services. Most worlds hold one run."""

    name: str
    scenario: Scenario
    runs: tuple[RunPlan, ...]

    @property
    def title(self) -> str:
        """How the world is called in the progress line and in reports."""
        return f"{self.scenario.number} x {self.runs[0].trace.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What the command line asks for. Empty means: no restriction."""

    sets: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    traces: tuple[str, ...] = ()
    sample: int | None = None
    combine: int = 1
    seed: int = 0
    shard: tuple[int, int] = (1, 1)
    only: frozenset[str] | None = None
    """Ids of the runs that alone are to be played, for `--only` and `--last-failed`."""


@dataclass(slots=True, kw_only=True)
class Plan:
    """The worlds to be played, in order, and what was left out on purpose."""

    worlds: list[WorldPlan] = field(default_factory=list)
    skipped_combinations: int = 0
    scenarios: list[Scenario] = field(default_factory=list)
    traces: list[str] = field(default_factory=list)


def choose(scenarios: Sequence[Scenario], selection: Selection) -> tuple[list[Scenario], int]:
    """The scenarios that a selection names, combinations included, and how many combinations shadow each other.

    Raises `InputError` for a number or set that does not exist.
    """
    by_number = {scenario.number: scenario for scenario in scenarios}
    faults: list[str] = []
    chosen: list[Scenario] = []
    for wanted in selection.numbers:
        parts = wanted.split("+")
        missing = [part for part in parts if part not in by_number]
        faults += [
            f"--scenario {wanted}: there is no scenario {part}{did_you_mean(part, by_number)}" for part in missing
        ]
        if not missing:
            chosen.append(joined([by_number[part] for part in parts]))
    if not selection.numbers:
        known = {name for scenario in scenarios for name in scenario.sets}
        for name in selection.sets:
            if name not in known:
                faults.append(f"--set {name}: no scenario is in a set of that name{did_you_mean(name, known)}")
        chosen = [s for s in scenarios if not selection.sets or set(s.sets) & set(selection.sets)]
    if faults:
        raise InputError(faults)
    skipped = 0
    if selection.combine > 1:
        chosen, skipped = _combinations(chosen, selection)
    elif selection.sample is not None and selection.sample < len(chosen):
        picked = random.Random(f"{selection.seed}:sample").sample(chosen, selection.sample)
        chosen = [scenario for scenario in chosen if scenario in picked]
    return chosen, skipped


def _combinations(chosen: Sequence[Scenario], selection: Selection) -> tuple[list[Scenario], int]:
    """`sample` random combinations (20 without a number) of `combine` scenarios each; shadowing ones are counted."""
    rng = random.Random(f"{selection.seed}:combine:{selection.combine}")
    pool = [scenario for scenario in chosen if not scenario.world and scenario.faults]
    wanted = 20 if selection.sample is None else selection.sample
    found: dict[str, Scenario] = {}
    skipped: set[str] = set()
    for _ in range(wanted * 50):
        if len(found) >= wanted or len(pool) < selection.combine:
            break
        group = sorted(rng.sample(pool, selection.combine), key=lambda scenario: int(scenario.number))
        name = "+".join(scenario.number for scenario in group)
        if name in found or name in skipped:
            continue
        try:
            found[name] = joined(group)
        except InputError:
            skipped.add(name)
    return list(found.values()), len(skipped)


def plan_runs(
    scenarios: Sequence[Scenario],
    traces: Sequence[TraceFile],
    registry: Registry,
    selection: Selection,
) -> Plan:
    """Join scenarios with traces. Raises `InputError` where a scenario asks for what no trace can give."""
    chosen, skipped = choose(scenarios, selection)
    wanted = [
        t for t in traces if not selection.traces or any(fnmatch.fnmatchcase(t.name, p) for p in selection.traces)
    ]
    faults = [
        f"--trace {pattern}: no trace has that name{did_you_mean(pattern, [t.name for t in traces])}"
        for pattern in selection.traces
        if not any(fnmatch.fnmatchcase(t.name, pattern) for t in traces)
    ]
    plan = Plan(skipped_combinations=skipped, scenarios=chosen)
    for scenario in chosen:
        faults += check_sites(scenario, traces, registry)
        if scenario.world:
            plan.worlds += _shared_world(scenario, {t.name: t for t in traces}, faults)
            continue
        fitting = [t for t in wanted if scenario.names_trace(t.name) and not misfits(scenario, t)]
        if not fitting and selection.numbers and not faults:
            faults.append(f"{scenario.path}:1: scenario {scenario.number} can strike none of the traces asked for")
        plan.worlds += [_world_of_one(scenario, source) for source in fitting]
    if faults:
        raise InputError(list(dict.fromkeys(faults)))
    if selection.only is not None:
        plan.worlds = [w for w in plan.worlds if any(run.run_id in selection.only for run in w.runs)]
    part, parts = selection.shard
    plan.worlds = [world for index, world in enumerate(plan.worlds) if index % parts == part - 1]
    plan.traces = sorted({run.trace.name for world in plan.worlds for run in world.runs})
    return plan


def misfits(scenario: Scenario, source: TraceFile) -> list[str]:
    """Why a trace cannot meet every fault of a scenario; empty where it can."""
    reasons = []
    for fault in scenario.faults:
        site, most = fault.at, _occurrences(fault, source)
        if most < (site.call or 1):
            reasons.append(f"`{source.name}` has {most or 'no'} calls that `{fault.kind}` at {site} could strike")
        elif site.model and not _offers_hold(fault, source):
            reasons.append(f"`{source.name}`: `{fault.kind}` finds nothing to take hold of at {site}")
    return reasons


def _offers_hold(fault: Fault, source: TraceFile) -> bool:
    """Whether a fault of a model's reply would act on the recorded one (a cut inside a number needs a number)."""
    if fault.strikes_at is not Point.AFTER_EFFECT:
        return True
    exchanges = source.trace.model_exchanges
    struck = exchanges if fault.at.call is None else exchanges[fault.at.call - 1 : fault.at.call]
    return any(fault.strike(_recorded_moment(fault, exchange)) for exchange in struck)


def _recorded_moment(fault: Fault, exchange: Exchange) -> Moment:
    status, content_type, body = reply_bytes(exchange.response)
    provider = for_api(exchange.api or "")
    if provider is not None and exchange.streamed:
        # The gateway streams in small pieces, whatever the recording's own were.
        body = refragment(provider, body)
    return Moment(
        point=Point.AFTER_EFFECT,
        place=Place(channel="model", call=fault.at.call or 1, attempt=1),
        request=Request(method="POST", path="", api=exchange.api or ""),
        reply=Reply(status=status, headers=(("content-type", content_type),), body=body),
    )


def check_sites(scenario: Scenario, traces: Sequence[TraceFile], registry: Registry) -> list[str]:
    """Sites that name an unknown tool or group, traces that do not exist, and scenarios that can strike nothing."""
    complaints = []
    groups = {tool.resource_group for tool in registry.tools.values() if tool.resource_group}
    known = set(registry.tools) | {tool for t in traces for tool in t.tool_calls}
    for fault, place in zip(scenario.faults, scenario.places, strict=True):
        if fault.at.tool and fault.at.tool not in known:
            complaints.append(
                f"{place}: `{fault.kind}` strikes at tool `{fault.at.tool}`, which no trace calls and "
                f"tools.yaml does not know{did_you_mean(fault.at.tool, known)}"
            )
        if fault.at.group and fault.at.group not in groups:
            complaints.append(
                f"{place}: `{fault.kind}` strikes at group `{fault.at.group}`, which no tool of "
                f"tools.yaml is in{did_you_mean(fault.at.group, groups)}"
            )
    for pattern in scenario.traces:
        matching = [t for t in traces if fnmatch.fnmatchcase(t.name, pattern)]
        exact = not any(sign in pattern for sign in "*?[")
        if exact and matching and (reasons := misfits(scenario, matching[0])):
            complaints.append(f"{scenario.path}:1: scenario {scenario.number} can strike nothing there: {reasons[0]}")
    return complaints


def unmatched(scenario: Scenario, traces: Sequence[TraceFile]) -> str | None:
    """A complaint where not one trace fits the scenario, else `None`."""
    named = [t for t in traces if scenario.names_trace(t.name)]
    if scenario.world or any(not misfits(scenario, t) for t in named):
        return None
    why = misfits(scenario, named[0])[0] if named else f"no trace is called {', '.join(scenario.traces)}"
    return f"{scenario.path}:1: scenario {scenario.number} can strike in no trace: {why}"


def describe_trace(path: Path, trace: Trace, registry: Registry) -> TraceFile:
    """Count what a trace holds."""
    actions = wanted_actions(trace, registry)
    tools: Counter[str] = Counter()
    for (name, _), count in actions.items():
        tools[name] += count
    compensable: Counter[str] = Counter()
    groups: Counter[str] = Counter()
    for name, count in tools.items():
        tool = registry.tools.get(name)
        if tool is None:
            continue
        if tool.compensation and tool.compensation.tool:
            compensable[tool.compensation.tool] += count
        if tool.resource_group:
            groups[tool.resource_group] += count
    return TraceFile(
        path=path,
        trace=trace,
        model_turns=len(trace.model_exchanges),
        actions=actions,
        tool_calls=tools,
        compensable=compensable,
        groups=groups,
    )


def wanted_actions(trace: Trace, registry: Registry) -> Counter[tuple[str, str]]:
    """How many equal actions the recorded task has, by tool and digest of what is meant.

    Equal calls on the recording are separate actions (two equal gifts). Calls that mean the same with other arguments
    (the same trip, paid by another card) are one action tried twice, and so is a call that the model repeats off the
    recording because it failed.
    """
    equal: Counter[tuple[str, str, str]] = Counter()
    for exchange in trace.tool_exchanges:
        tool = registry.tools.get(exchange.tool)
        exact = tool.args_digest(exchange.arguments) if tool else args_digest(exchange.arguments)
        meant = tool.intent_digest(exchange.arguments) if tool else None
        equal[exchange.tool, meant or exact, exact] += 1
    actions: Counter[tuple[str, str]] = Counter()
    for (name, meant, _), count in equal.items():
        actions[name, meant] = max(actions[name, meant], count)
    return actions


def _occurrences(fault: Fault, source: TraceFile) -> int:
    site = fault.at
    if site.tool:
        return source.tool_calls[site.tool] + source.compensable[site.tool]
    if site.group:
        return source.groups[site.group]
    return source.model_turns


def _world_of_one(scenario: Scenario, source: TraceFile) -> WorldPlan:
    name = f"{scenario.number}-{source.name}"
    return WorldPlan(name=name, scenario=scenario, runs=(_run(scenario, source, world=name, run_id=name),))


def _shared_world(scenario: Scenario, traces: Mapping[str, TraceFile], faults: list[str]) -> Iterable[WorldPlan]:
    name = f"{scenario.number}-world"
    runs: list[RunPlan] = []
    for entry in scenario.world:
        source = traces.get(entry.trace)
        if source is None:
            faults.append(
                f"{scenario.path}:1: `world` names the trace `{entry.trace}`, which is not there"
                f"{did_you_mean(entry.trace, traces)}"
            )
            continue
        for _ in range(entry.count):
            run_id = f"{name}-{len(runs) + 1}"
            runs.append(_run(scenario, source, world=name, run_id=run_id, tenant=entry.tenant, start_s=entry.start_s))
    return [WorldPlan(name=name, scenario=scenario, runs=tuple(runs))] if runs else []


def _run(
    scenario: Scenario,
    source: TraceFile,
    *,
    world: str,
    run_id: str,
    tenant: str | None = None,
    start_s: float = 0.0,
) -> RunPlan:
    # The same in every repeat, so that keys made from it are the same as well; a real intent id says nothing either.
    intent = hashlib.sha256(run_id.encode()).hexdigest()[:16]
    return RunPlan(
        run_id=run_id,
        world=world,
        intent_id=f"intent-{intent}",
        tenant=tenant or source.trace.tenant or "default",
        scenario=scenario,
        source=source,
        limits={**(source.trace.limits or {}), **scenario.limits},
        start_s=start_s,
    )
