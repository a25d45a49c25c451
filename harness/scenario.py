"""Scenario files: `NNN-slug.yaml` as a typed value (contract section 2)."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.loading import Document, Fields, did_you_mean, shown
from harness.settings import APPLICATION
from injectors.catalogue import FaultError, fault_from
from injectors.core import Fault
from injectors.plan import shadows
from reports.mechanisms.catalogue import MECHANISMS
from reports.results import INVARIANTS, VERDICT_WORDS
from traces.history import Limits

POLICIES = ("continue", "repair", "give_up")
"""How the replayed model reacts off the recording."""

MOST_RUNS = 1000
"""So many runs one entry of `world.runs` may ask for: each is a process of the agent's."""

BUNDLED = APPLICATION / "scenarios"

LIMIT_FIELDS = Limits.__struct_fields__


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What share of a mechanism's opportunities has to end in an activation, over the runs of a scenario."""

    least: float = 0.0
    most: float | None = None
    rare: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldRun:
    """One entry of `world.runs`: `count` runs of a trace by a tenant, started `start_s` seconds in."""

    trace: str
    tenant: str | None = None
    count: int = 1
    start_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One numbered scenario, or several joined into one run (`number` then reads `101+204`)."""

    number: str
    version: str
    title: str
    why: str = ""
    sets: tuple[str, ...] = ()
    traces: tuple[str, ...] = ("*",)
    other_traces: tuple[tuple[str, ...], ...] = ()
    """The lists of the further scenarios of a combination: a trace has to be in each."""
    faults: tuple[Fault, ...] = ()
    fault_data: tuple[dict[str, Any], ...] = ()
    """The same faults as the file says them, with an id each: what the proxy process is sent."""
    places: tuple[str, ...] = ()
    """`FILE:LINE` of each fault."""
    model: str = "continue"
    limits: dict[str, Any] = field(default_factory=dict)
    mechanisms: dict[str, Bound] = field(default_factory=dict)
    invariants: dict[str, str] = field(default_factory=dict)
    world: tuple[WorldRun, ...] = ()
    path: str = ""
    bundled: bool = False
    """Whether it is one of ours: its floors describe the reference agent, and only warn of anybody else's."""

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers its faults strike, in the order of the file, each once."""
        return tuple(dict.fromkeys(fault.layer for fault in self.faults))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its faults, in the order of the file, each once."""
        return tuple(dict.fromkeys(fault.kind for fault in self.faults))

    def names_trace(self, name: str) -> bool:
        """Whether a trace is among those that the file asks for (each of the files, in a combination)."""
        return all(any(fnmatch.fnmatchcase(name, p) for p in listed) for listed in (self.traces, *self.other_traces))


def load_scenarios(paths: list[Path]) -> list[Scenario]:
    """Read scenario files and the folders that hold them, ordered by number.

    Raises `InputError` with every fault of every file, a number used twice included.
    """
    files: list[Path] = []
    faults: list[str] = []
    for path in paths:
        if path.is_dir():
            files += sorted([*path.glob("*.yaml"), *path.glob("*.yml")])
        elif path.exists():
            files.append(path)
        else:
            faults.append(f"{path}:1: there is no such scenario file or folder")
    scenarios: dict[str, Scenario] = {}
    for file in files:
        try:
            scenario = load_scenario(file)
        except InputError as error:
            faults += error.faults
            continue
        if scenario.number in scenarios:
            faults.append(
                f"{scenario.path}:1: number {scenario.number} is already taken by {scenarios[scenario.number].path}; "
                "every scenario has a number of its own"
            )
        scenarios.setdefault(scenario.number, scenario)
    if faults:
        raise InputError(faults)
    return sorted(scenarios.values(), key=lambda scenario: int(scenario.number))


def load_scenario(path: Path, text: str | None = None) -> Scenario:
    """Read one scenario file. Raises `InputError` with every fault found in it, each with its line."""
    document = Document(path, text)
    document.raise_faults()
    fields = document.root("a scenario")
    number = fields.integer("number", required=True, least=100)
    version = fields.integer("version", required=True, least=1)
    named = re.match(r"(\d+)-[a-z0-9-]+$", path.stem)
    if not named:
        example = number if fields.data.get("number") == number else "204"
        fields.refuse((), f"the file has to be named like `{example}-what-happens.yaml`")
    elif fields.data.get("number") == number != int(named[1]):
        fields.refuse("number", f"`number` is {number}, but the file name says {named[1]}; they have to agree")
    title = fields.text("title", required=True)
    why = fields.text("why")
    sets = fields.texts("sets")
    traces = fields.texts("traces", ["*"])
    faults, data, places = _read_faults(fields, number)
    model = fields.mapping("model")
    policy = model.choice("on_tool_error", POLICIES, "continue")
    model.done()
    limits = _read_limits(fields.mapping("limits"))
    expect = fields.mapping("expect")
    mechanisms = _read_mechanisms(expect.mapping("mechanisms"))
    expected = _read_invariants(expect.mapping("invariants"))
    expect.done()
    world = _read_world(fields.mapping("world"))
    fields.done()
    if not faults and "faults" not in fields:
        fields.refuse((), "a scenario needs `faults` (an empty list, `faults: []`, is a clean run)")
    for message in shadows(faults):
        fields.refuse("faults", message)
    document.raise_faults()
    return Scenario(
        number=str(number),
        version=str(version),
        title=title,
        why=" ".join(why.split()),
        sets=sets,
        traces=traces,
        faults=tuple(faults),
        fault_data=tuple(data),
        places=tuple(places),
        model=policy,
        limits=limits,
        mechanisms=mechanisms,
        invariants=expected,
        world=world,
        path=document.name,
        bundled=path.resolve().parent == BUNDLED,
    )


def joined(scenarios: Sequence[Scenario], groups: Mapping[str, str] | None = None) -> Scenario:
    """Several scenarios as one run, named by their numbers; its trace is one that each of them names.

    `groups` maps tools to their resource groups. Raises `InputError` where faults shadow each other, and where two
    scenarios state worlds of their own.
    """
    if len(scenarios) == 1:
        return scenarios[0]
    number = "+".join(scenario.number for scenario in scenarios)
    faults = tuple(fault for scenario in scenarios for fault in scenario.faults)
    worlds = [scenario for scenario in scenarios if scenario.world]
    clashes = shadows(list(faults), groups)
    if len({scenario.world for scenario in worlds}) > 1:
        named = " and ".join(scenario.number for scenario in worlds)
        clashes.append(f"{named} each state a world of their own; only one of them can be played")
    if clashes:
        raise InputError([f"--scenario {number}: {clash}" for clash in clashes])
    limits: dict[str, Any] = {}
    for scenario in scenarios:
        limits.update(scenario.limits)
    policies = [scenario.model for scenario in scenarios]
    return Scenario(
        number=number,
        version="+".join(scenario.version for scenario in scenarios),
        title=" and ".join(scenario.title for scenario in scenarios),
        why=" ".join(scenario.why for scenario in scenarios),
        sets=(),
        traces=scenarios[0].traces,
        other_traces=tuple(traces for s in scenarios[1:] for traces in (s.traces, *s.other_traces)),
        faults=faults,
        fault_data=tuple(
            {**data, "id": f"f{index}"}
            for index, data in enumerate((d for scenario in scenarios for d in scenario.fault_data), 1)
        ),
        places=tuple(place for scenario in scenarios for place in scenario.places),
        model=max(policies, key=POLICIES.index),
        limits=limits,
        mechanisms=_joined_bounds(scenarios),
        invariants={
            name: word
            for name, word in scenarios[0].invariants.items()
            if all(other.invariants.get(name) == word for other in scenarios)
        },
        world=worlds[0].world if worlds else (),
        path=", ".join(scenario.path for scenario in scenarios),
        bundled=all(scenario.bundled for scenario in scenarios),
    )


def _joined_bounds(scenarios: Sequence[Scenario]) -> dict[str, Bound]:
    """What is expected of a combination: the weakest of what its scenarios expect.

    A floor that only some of them state was measured without the others' faults, so it warns and decides nothing.
    """
    bounds: dict[str, Bound] = {}
    for name in dict.fromkeys(name for scenario in scenarios for name in scenario.mechanisms):
        stated = [scenario.mechanisms[name] for scenario in scenarios if name in scenario.mechanisms]
        tops = [bound.most for bound in stated if bound.most is not None]
        bounds[name] = Bound(
            least=min(bound.least for bound in stated),
            most=max(tops) if len(tops) == len(stated) else None,
            rare=len(stated) < len(scenarios) or any(bound.rare for bound in stated),
        )
    return bounds


def _read_faults(fields: Fields, number: int) -> tuple[list[Fault], list[dict[str, Any]], list[str]]:
    faults: list[Fault] = []
    data: list[dict[str, Any]] = []
    places: list[str] = []
    for index, entry in enumerate(fields.mappings("faults", "a fault"), 1):
        kind = entry.text("kind", required=True)
        at, times, parameters = entry.anything("at"), entry.anything("times"), entry.anything("with")
        entry.done()
        if parameters is not None and not isinstance(parameters, dict):
            entry.refuse("with", f"`with` has to be a mapping of parameters to values, not {shown(repr(parameters))}")
            continue
        raw = {
            "id": f"f{index}",
            "kind": kind,
            "at": at,
            "times": 1 if times is None else times,
            "with": parameters or {},
            "scenario": str(number),
        }
        if not kind:
            continue
        try:
            faults.append(
                fault_from(kind=kind, at=at, times=raw["times"], parameters=raw["with"], scenario=str(number))
            )
            data.append(raw)
            places.append(f"{entry.document.name}:{entry.document.line(entry.where)}")
        except FaultError as error:
            for message in error.messages:
                entry.refuse("kind" if "kind" in message.split(" ", 2)[:2] else (), message)
    return faults, data, places


def _read_limits(fields: Fields) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    for key in fields.keys():  # noqa: SIM118
        if key not in LIMIT_FIELDS:
            fields.refuse(key, f"there is no limit `{key}`{did_you_mean(key, LIMIT_FIELDS)}")
        elif key == "group_concurrency":
            groups = fields.mapping(key)
            limits[key] = {group: groups.number(group) for group in groups.keys()}  # noqa: SIM118
        elif key == "steps":
            limits[key] = fields.integer(key)
        else:
            limits[key] = fields.number(key)
    return limits


def _read_mechanisms(fields: Fields) -> dict[str, Bound]:
    bounds: dict[str, Bound] = {}
    for name in fields.keys():  # noqa: SIM118
        if name not in MECHANISMS:
            fields.refuse(name, f"there is no mechanism `{name}`{did_you_mean(name, MECHANISMS)}")
            continue
        if isinstance(fields.data[name], dict):
            entry = fields.mapping(name)
            least, most = entry.number("min", 0.0), entry.number("max")
            bounds[name] = Bound(least=least or 0.0, most=most, rare=entry.flag("rare"))
            entry.done()
        else:
            # A bare number is the floor; an upper bound is only meant where it is written out.
            bounds[name] = Bound(least=fields.number(name, 0.0) or 0.0)
        bound = bounds[name]
        if bound.least > 1 or (bound.most is not None and not bound.least <= bound.most <= 1):
            fields.refuse(name, f"the bounds of `{name}` are shares between 0 and 1, the smaller one first")
    return bounds


def _read_invariants(fields: Fields) -> dict[str, str]:
    expected: dict[str, str] = {}
    for name in fields.keys():  # noqa: SIM118
        if name not in INVARIANTS:
            fields.refuse(name, f"there is no invariant `{name}`{did_you_mean(name, INVARIANTS)}")
        else:
            expected[name] = fields.choice(name, VERDICT_WORDS, VERDICT_WORDS[0])
    return expected


def _read_world(fields: Fields) -> tuple[WorldRun, ...]:
    runs = []
    for entry in fields.mappings("runs", "a run of the world"):
        runs.append(
            WorldRun(
                trace=entry.text("trace", required=True),
                tenant=entry.text("tenant") or None,
                count=entry.integer("count", 1, least=1, most=MOST_RUNS),
                start_s=entry.number("start_s", 0.0) or 0.0,
            )
        )
        entry.done()
    if fields.integer("workers", 1, least=1) != 1:
        fields.refuse("workers", "a second worker on one run is not offered yet; `workers` has to be 1")
    fields.done()
    return tuple(runs)
