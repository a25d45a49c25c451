"""Which runs there are: scenarios joined with traces, sites checked against what the traces hold.

Nothing is started here. Every mistake that can be seen before a run is seen here, with its file and line.
"""

from __future__ import annotations

import fnmatch
import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from harness.calls import LogicalCall, logical_calls
from harness.errors import InputError
from harness.loading import did_you_mean
from harness.scenario import Scenario, joined
from injectors.core import Fault, Moment, Place, Point, Reply, Request, Site
from injectors.plan import shadows
from traces.providers import for_api, refragment, reply_bytes
from traces.registry import Registry
from traces.trace import Exchange, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFile:
    """A recorded trace, where it lies, and how often each site occurs in it."""

    path: Path
    trace: Trace
    calls: tuple[LogicalCall, ...]
    compensable: Counter[str]
    """Calls that compensations of this trace's effects may make, by tool."""

    @property
    def name(self) -> str:
        """The name that scenarios call it by."""
        return self.trace.name

    @property
    def tool_calls(self) -> Counter[str]:
        """How many logical calls of each tool the task has."""
        return Counter(call.tool for call in self.calls)

    @property
    def actions(self) -> Counter[tuple[str, str]]:
        """How often the task wants each action, by tool and meaning."""
        return Counter((call.tool, call.meaning) for call in self.calls)

    def at(self, site: Site) -> list[list[Exchange]]:
        """The recorded tries of every logical call that a site names, compensations left out."""
        if site.model:
            tries = [[exchange] for exchange in self.trace.model_exchanges]
        else:
            tries = [
                c.tries
                for c in self.calls
                if (site.tool and c.tool == site.tool) or (site.group and c.group == site.group)
            ]
        return tries if site.call is None else tries[site.call - 1 : site.call]

    def tool_site(self, site: Site) -> Site:
        """A numbered site of a group as the site of the tool that this trace calls there; any other as it is."""
        inside = [call for call in self.calls if call.group == site.group] if site.group else []
        if site.call is None or len(inside) < site.call:
            return site
        tool = inside[site.call - 1].tool
        nth = sum(call.tool == tool for call in inside[: site.call])
        return replace(site, group="", tool=tool, call=nth)


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

    @property
    def by_chance(self) -> bool:
        """Whether the seed has a say in what is run."""
        return self.sample is not None or self.combine > 1


@dataclass(slots=True, kw_only=True)
class Plan:
    """The worlds to be played, in order, and what was left out on purpose."""

    worlds: list[WorldPlan] = field(default_factory=list)
    skipped_combinations: int = 0
    scenarios: list[Scenario] = field(default_factory=list)
    traces: list[str] = field(default_factory=list)
    unknown: frozenset[str] = frozenset()
    """Ids of `Selection.only` that no run of the rest of the selection has."""


def choose(
    scenarios: Sequence[Scenario], selection: Selection, groups: Mapping[str, str] | None = None
) -> tuple[list[Scenario], int]:
    """The scenarios that a selection names, combinations included, and how many combinations shadow each other.

    `groups` maps tools to their resource groups, for faults on a group that hide faults on one of its tools.
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
            chosen.append(joined([by_number[part] for part in parts], groups))
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
        chosen, skipped = _combinations(chosen, selection, groups)
    elif selection.sample is not None and selection.sample < len(chosen):
        picked = random.Random(f"{selection.seed}:sample").sample(chosen, selection.sample)
        chosen = [scenario for scenario in chosen if scenario in picked]
    return chosen, skipped


def _combinations(
    chosen: Sequence[Scenario], selection: Selection, groups: Mapping[str, str] | None
) -> tuple[list[Scenario], int]:
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
            found[name] = joined(group, groups)
        except InputError:
            skipped.add(name)
    return list(found.values()), len(skipped)


def plan_runs(
    scenarios: Sequence[Scenario], traces: Sequence[TraceFile], *, registry: Registry, selection: Selection
) -> Plan:
    """Join scenarios with traces. Raises `InputError` where a scenario asks for what no trace can give."""
    chosen, skipped = choose(scenarios, selection, groups_of(registry))
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
        plan.unknown = selection.only - {run.run_id for world in plan.worlds for run in world.runs}
        plan.worlds = [w for w in plan.worlds if any(run.run_id in selection.only for run in w.runs)]
    part, parts = selection.shard
    plan.worlds = [world for index, world in enumerate(plan.worlds) if index % parts == part - 1]
    plan.traces = sorted({run.trace.name for world in plan.worlds for run in world.runs})
    return plan


def misfits(scenario: Scenario, source: TraceFile) -> list[str]:
    """Why a trace cannot meet every fault of a scenario; empty where it can."""
    reasons = []
    for fault in scenario.faults:
        site, recorded = fault.at, source.at(fault.at)
        undoing = source.compensable[site.tool] if site.tool else 0
        most = undoing + len(source.at(replace(site, call=None)))
        if most < (site.call or 1):
            reasons.append(f"`{source.name}` has {most or 'no'} calls that `{fault.kind}` at {site} could strike")
        elif recorded and not any(_offers_hold(fault, tries) for tries in recorded):
            reasons.append(f"`{source.name}`: `{fault.kind}` finds nothing to take hold of at {site}")
    # A group's n-th call is some tool's call: which one, and so whether two faults meet there, the trace tells.
    struck = [replace(fault, at=source.tool_site(fault.at)) for fault in scenario.faults]
    return reasons + [f"`{source.name}`: {reason}" for reason in shadows(struck)]


def _offers_hold(fault: Fault, tries: Sequence[Exchange]) -> bool:
    """Whether a fault would act on what was answered when the call was recorded: a cut inside a number needs a
    number, and what is reported as failed has to have been done."""
    exchange = tries[min(fault.at.attempt, len(tries)) - 1]
    return fault.strikes_at is not Point.AFTER_EFFECT or bool(fault.strike(_recorded_moment(fault, exchange)))


def _recorded_moment(fault: Fault, exchange: Exchange) -> Moment:
    status, content_type, body = reply_bytes(exchange.response)
    provider = for_api(exchange.api or "")
    if provider is not None and exchange.streamed:
        # The gateway streams in small pieces, whatever the recording's own were.
        body = refragment(provider, body)
    return Moment(
        point=Point.AFTER_EFFECT,
        place=Place(channel=fault.at.channel, call=fault.at.call or 1, attempt=fault.at.attempt, tool=exchange.tool),
        request=Request(method="POST", path="", api=exchange.api or "", tool=exchange.tool),
        reply=Reply(status=status, headers=(("content-type", content_type),), body=body),
    )


def groups_of(registry: Registry) -> dict[str, str]:
    """The resource group of each tool that has one."""
    return {tool.name: tool.resource_group for tool in registry.tools.values() if tool.resource_group}


def check_sites(scenario: Scenario, traces: Sequence[TraceFile], registry: Registry) -> list[str]:
    """Sites that name an unknown tool or group, faults on a group that hide others on its tools, and traces named
    outright in which nothing can be struck."""
    complaints = []
    group_of = groups_of(registry)
    groups = set(group_of.values())
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
    for (first, _), (second, place) in combinations(zip(scenario.faults, scenario.places, strict=True), 2):
        complaints += [f"{place}: {reason}" for reason in shadows((first, second), group_of)]
    for pattern in scenario.traces:
        matching = [t for t in traces if fnmatch.fnmatchcase(t.name, pattern)]
        exact = not any(sign in pattern for sign in "*?[")
        # Of a combination each list is only a part; what fits none of the traces is said where it is planned.
        exact = exact and not scenario.other_traces
        if exact and matching and (reasons := misfits(scenario, matching[0])):
            complaints.append(f"{scenario.path}:1: scenario {scenario.number} can strike nothing there: {reasons[0]}")
    return complaints


def unmatched(scenario: Scenario, traces: Sequence[TraceFile]) -> str | None:
    """A complaint where not one trace fits the scenario, else `None`."""
    if absent := {entry.trace for entry in scenario.world} - {t.name for t in traces}:
        return f"{scenario.path}:1: `world` names traces that are not there: {', '.join(sorted(absent))}"
    named = [t for t in traces if scenario.names_trace(t.name)]
    if scenario.world or any(not misfits(scenario, t) for t in named):
        return None
    why = misfits(scenario, named[0])[0] if named else f"no trace is called {', '.join(scenario.traces)}"
    return f"{scenario.path}:1: scenario {scenario.number} can strike in no trace: {why}"


def describe_trace(path: Path, trace: Trace, registry: Registry) -> TraceFile:
    """A trace with the logical calls that a registry makes of it."""
    calls = logical_calls(trace, registry)
    compensable: Counter[str] = Counter()
    for call in calls:
        tool = registry.tools.get(call.tool)
        if tool is not None and tool.compensation is not None and tool.compensation.tool:
            compensable[tool.compensation.tool] += 1
    return TraceFile(path=path, trace=trace, calls=tuple(calls), compensable=compensable)


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
