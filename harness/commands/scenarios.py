"""`stormproof scenarios`: the catalogue of scenarios and fault kinds, and a check of scenario files."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from harness.commands.output import print_json, print_lines
from harness.errors import InputError
from harness.inputs import load_tools, load_traces
from harness.loading import did_you_mean
from harness.planning import check_sites, misfits, unmatched
from harness.scenario import Scenario, load_scenarios
from harness.settings import load_settings
from injectors.catalogue import KINDS, described
from reports.text import counted

ACTIONS = ("list", "kinds", "show", "validate")


def execute(action: str, what: list[str], *, json: bool, quiet: bool) -> int:
    """Carry out one of `list`, `kinds`, `show N`, `validate [PATH...]`."""
    if action not in ACTIONS:
        raise InputError(
            f"scenarios {action}: has to be list, kinds, show or validate{did_you_mean(action, ACTIONS)}"
        )
    if action == "kinds":
        return _kinds(json=json)
    if action == "validate":
        return _validate([Path(item) for item in what], json=json, quiet=quiet)
    scenarios = load_scenarios(list(load_settings().scenarios))
    if action == "show":
        return _show(scenarios, what, json=json)
    if json:
        print_json([_row(scenario) for scenario in scenarios])
        return 0
    print_lines(
        f"{s.number}  v{s.version}  {'+'.join(s.layers) or 'none':<14}  {','.join(s.sets):<12}  {s.title}"
        for s in scenarios
    )
    return 0


def _row(scenario: Scenario) -> dict[str, Any]:
    return {
        "number": int(scenario.number),
        "version": int(scenario.version),
        "title": scenario.title,
        "layer": "+".join(scenario.layers),
        "sets": list(scenario.sets),
        "kinds": list(scenario.kinds),
        "path": scenario.path,
    }


def _kinds(*, json: bool) -> int:
    kinds = [described(kind) for kind in KINDS]
    if json:
        print_json(kinds)
        return 0
    lines: list[str] = []
    for kind in kinds:
        lines.append(f"{kind['kind']}  ({kind['layer']})")
        lines.append(f"    the agent sees   {kind['agent_sees']}")
        lines.append(f"    the world sees   {kind['world_sees']}")
        for name, parameter in kind["parameters"].items():
            unit = f" {parameter['unit']}" if parameter["unit"] else ""
            choices = f", one of {', '.join(parameter['choices'])}" if parameter.get("choices") else ""
            lines.append(f"    {name:<16} {parameter['type']}{unit}, default {parameter['default']}{choices}")
    print_lines(lines)
    return 0


def _show(scenarios: list[Scenario], what: list[str], *, json: bool) -> int:
    by_number = {scenario.number: scenario for scenario in scenarios}
    missing = [number for number in what if number not in by_number]
    if missing or not what:
        problem = f"there is no scenario {', '.join(missing)}" if missing else "needs a number"
        raise InputError(f"scenarios show: {problem}{did_you_mean(missing[0], by_number) if missing else ''}")
    settings = load_settings()
    registry = load_tools(settings.tools).registry
    traces = load_traces(settings.traces, registry)
    shown = []
    for number in what:
        scenario = by_number[number]
        fitting = [t.name for t in traces if scenario.names_trace(t.name) and not misfits(scenario, t)]
        shown.append(
            {
                **_row(scenario),
                "why": scenario.why,
                "traces": fitting,
                "faults": [fault.to_data() for fault in scenario.faults],
            }
        )
    if json:
        print_json(shown)
        return 0
    for entry in shown:
        lines = [f"{entry['number']} (version {entry['version']}): {entry['title']}"]
        lines += [f"  {line}" for line in textwrap.wrap(entry["why"], 100)]
        for fault in entry["faults"]:
            options = ", ".join(f"{name} {value}" for name, value in fault["with"].items() if value is not None)
            lines.append(f"  fault   {fault['kind']} at {_words(fault['at'])}, times {fault['times']}; {options}")
        lines.append(f"  sets    {', '.join(entry['sets'])}")
        lines.append(f"  traces  {', '.join(entry['traces'])}")
        print_lines(lines)
    return 0


def _words(at: dict[str, Any]) -> str:
    place = "model" if at.get("model") else at.get("tool") or f"group {at.get('group')}"
    return f"{place}, call {at['call']}, attempt {at['attempt']}"


def _validate(paths: list[Path], *, json: bool, quiet: bool) -> int:
    settings = load_settings()
    registry = load_tools(settings.tools).registry
    traces = load_traces(settings.traces, registry)
    scenarios = load_scenarios(paths or list(settings.scenarios))
    faults: list[str] = []
    for scenario in scenarios:
        found = check_sites(scenario, traces, registry)
        faults += found or [complaint for complaint in [unmatched(scenario, traces)] if complaint]
    if faults:
        raise InputError(faults)
    if json:
        print_json({"scenarios": len(scenarios), "valid": True})
    elif not quiet:
        number = len(scenarios)
        print_lines([f"{counted(number, 'scenario')} {'is' if number == 1 else 'are'} valid"])
    return 0
