"""`stormproof run`: the main job, from the files named on the command line to the exit code."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.agents import AgentSpec, find_agent
from harness.errors import InputError, told
from harness.inputs import ToolsFile, load_tools, load_traces, require_stand_ins
from harness.loading import shown
from harness.options import RunOptions
from harness.planning import Plan, Selection, TraceFile, check_sites, plan_runs, unmatched
from harness.results import ResultWriter
from harness.runner import Tally, default_parallel, run_all
from harness.scenario import Scenario, load_scenarios
from harness.session import session_of
from harness.settings import APPLICATION, Settings, load_settings
from reports.console import Progress
from reports.render import HTML, WRITTEN, render_all
from reports.results import Results, ResultsError, RunResult, read_results
from reports.summary import Summary, summarise
from reports.text import counted, visible


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What the command line says; `None` and empty mean that it says nothing."""

    selection: Selection
    agent: str | None = None
    out: Path | None = None
    tools: Path | None = None
    scenarios: tuple[Path, ...] = ()
    trace_places: tuple[Path, ...] = ()
    parallel: int | None = None
    resume: bool = False
    last_failed: bool = False
    only: Path | None = None
    max_time_s: float | None = None
    quiet: bool = False

    def folder(self) -> Path:
        """Where the results go."""
        return self.out or load_settings().out


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Everything loaded and checked; nothing started."""

    plan: Plan
    agent: AgentSpec
    tools: ToolsFile
    out: Path
    notes: tuple[str, ...] = ()


def prepare(request: RunRequest) -> Prepared:
    """Load and validate. Raises `InputError` with every mistake that can be seen without starting anything."""
    settings = load_settings()
    faults: list[str] = []
    agent = _collect(faults, lambda: find_agent(settings.agent if request.agent is None else request.agent))
    tools = _collect(faults, lambda: load_tools(request.tools or settings.tools))
    scenarios = _collect(faults, lambda: load_scenarios(list(request.scenarios or settings.scenarios)))
    traces: list[TraceFile] | None = None
    if tools is not None:
        _collect(faults, lambda: require_stand_ins(tools))
        traces = _collect(faults, lambda: load_traces(request.trace_places or settings.traces, tools.registry))
    if faults or agent is None or tools is None or scenarios is None or traces is None:
        raise InputError(faults)
    out = request.out or settings.out
    selection = request.selection
    if not selection.sets and not selection.numbers:
        selection = replace(selection, sets=settings.sets)
    if request.last_failed:
        selection = replace(selection, only=_last_failed(out), sets=())
    if request.only is not None:
        selection = replace(selection, only=_listed(request.only))
    usable, notes = _usable(scenarios, traces, tools, selection=selection)
    plan = plan_runs(usable, traces, registry=tools.registry, selection=selection)
    if request.only is not None and plan.unknown:
        raise InputError(
            [
                f"--only {request.only}: no run that is asked for is called `{shown(name)}`; `--dry-run` lists them"
                for name in sorted(plan.unknown)
            ]
        )
    if plan.skipped_combinations:
        notes.append(f"{counted(plan.skipped_combinations, 'combination')} left out: faults that shadow each other")
    return Prepared(plan=plan, agent=agent, tools=tools, out=out, notes=tuple(notes))


def execute(request: RunRequest) -> Summary:
    """Run, judge, render; whatever goes wrong on the way is told beside what was proven until then.

    Raises `InputError`, and `OSError` where the folder of the results cannot be set up.
    """
    prepared = prepare(request)
    plan = prepared.plan
    writer = ResultWriter(
        prepared.out,
        resume=request.resume,
        session=session_of(plan, agent=prepared.agent, tools=prepared.tools),
        worlds=[{run.run_id for run in world.runs} for world in plan.worlds],
    )
    done = {result.run_id for result in writer.done}
    plan.worlds = [world for world in plan.worlds if not all(run.run_id in done for run in world.runs)]
    _say(request, *_opening(prepared, request, already=len(done)))
    options = RunOptions(
        out=prepared.out,
        agent=prepared.agent,
        registry=prepared.tools.registry,
        registry_data=prepared.tools.data,
        parallel=request.parallel or default_parallel(),
        max_time_s=request.max_time_s,
        replay_options=_replay_options(request),
    )
    total = sum(len(world.runs) for world in plan.worlds)
    try:
        with Progress(total=total, quiet=request.quiet) as progress:
            tally = asyncio.run(_until_signal(plan, options, writer, progress))
    finally:
        writer.close()
    if tally.stopped:
        _say(request, f"stopped early: {tally.stopped}; go on with --resume")
    if tally.error is not None:
        sys.stderr.write(f"stormproof could not do its work: {visible(tally.error)}\n")
    undecided = None
    if tally.not_played:
        missing = sum(len(world.runs) for world in tally.not_played)
        undecided = f"{missing} of {total} runs were not played: {tally.stopped or 'interrupted'}"
    seed = request.selection.seed if request.selection.by_chance else None
    return _render(writer, seed=seed, agent=prepared.agent.name, undecided=undecided, error=tally.error)


def _render(
    writer: ResultWriter, *, seed: int | None, agent: str, undecided: str | None, error: str | None
) -> Summary:
    """Write the reports. Where that fails, what was proven is told all the same, and no half of a report stays."""
    try:
        return render_all(writer.folder, seed=seed, agent=agent, undecided=undecided, error=error)
    except Exception as failure:  # noqa: BLE001 - told as an error of the session, beside what was proven
        unwritten = f"the reports could not be written: {told(failure)}"
    sys.stderr.write(f"stormproof could not do its work: {visible(unwritten)}\n")
    for name in WRITTEN:
        with suppress(OSError):
            (writer.folder / name).unlink(missing_ok=True)
    return summarise(
        Results(writer.folder, (*writer.done, *writer.written)),
        seed=seed,
        agent=agent,
        undecided_because=undecided,
        error=unwritten if error is None else f"{error}; {unwritten}",
    )


async def _until_signal(plan: Plan, options: RunOptions, writer: ResultWriter, progress: Progress) -> Tally:
    """Play the plan; Ctrl-C, SIGTERM or a failure of ours ends it early with everything finished kept."""
    tally_so_far = Tally()

    def announce(result: RunResult) -> None:
        tally_so_far.results.append(result)
        progress.advance(result)

    loop = asyncio.get_running_loop()
    playing = asyncio.create_task(run_all(plan, options, announce, writer=writer))
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, playing.cancel)
    try:
        return await playing
    except asyncio.CancelledError:
        tally_so_far.stopped = "interrupted"
    except Exception as error:  # noqa: BLE001 - told as an error of the session, beside what was proven
        tally_so_far.stopped = "the harness failed"
        tally_so_far.error = told(error)
    finished = {result.run_id for result in tally_so_far.results}
    tally_so_far.not_played = [w for w in plan.worlds if any(run.run_id not in finished for run in w.runs)]
    return tally_so_far


def _usable(
    scenarios: Sequence[Scenario], traces: Sequence[TraceFile], tools: ToolsFile, *, selection: Selection
) -> tuple[list[Scenario], list[str]]:
    """The scenarios that can strike something, and a note of how many cannot.

    A scenario that is asked for by its number has to strike. One that comes with a set may find no hold in the
    traces at hand, but not name a tool that nobody knows, unless it is one of ours meeting somebody else's tools.
    """
    ours = (APPLICATION / "scenarios").resolve()
    foreign_tools = tools.path.resolve() != Settings().tools.resolve()
    named = {part for number in selection.numbers for part in number.split("+")}
    usable: list[Scenario] = []
    faults: list[str] = []
    idle: list[Scenario] = []
    for scenario in scenarios:
        chosen = (
            scenario.number in named
            if named
            else bool(set(scenario.sets) & set(selection.sets)) or not selection.sets
        )
        complaint = unmatched(scenario, traces)
        if complaint is None or not chosen:
            usable.append(scenario)
        elif named:
            faults += check_sites(scenario, traces, tools.registry) or [complaint]
        else:
            foreign = foreign_tools and Path(scenario.path).resolve().parent == ours
            faults += [] if foreign else check_sites(scenario, traces, tools.registry)
            idle.append(scenario)
    faults += [] if named else _idle_sets(selection.sets, usable=usable, idle=idle, traces=traces)
    if faults:
        raise InputError(faults)
    notes = [f"left out, for want of a place to strike in these traces: {', '.join(s.number for s in idle)}"]
    return usable, notes if idle else []


def _idle_sets(
    sets: Sequence[str], *, usable: Sequence[Scenario], idle: Sequence[Scenario], traces: Sequence[TraceFile]
) -> list[str]:
    """A complaint about each set in which there are scenarios, but none that could strike anything."""
    complaints = []
    for name in sets:
        members = [scenario for scenario in idle if name in scenario.sets]
        if members and not any(name in scenario.sets for scenario in usable):
            complaints.append(
                f"--set {name}: not one of its scenarios can strike in these traces; the first of "
                f"{len(members)}: {unmatched(members[0], traces)}"
            )
    return complaints


def _last_failed(out: Path) -> frozenset[str]:
    try:
        results = read_results(out)
    except ResultsError as error:
        raise InputError(f"--last-failed: {error}") from None
    return frozenset(
        run.run_id for run in results.runs if run.violations() or run.misfires() or run.undecided or run.harness_error
    )


def _listed(path: Path) -> frozenset[str]:
    """The run ids that a file lists. Raises `InputError`."""
    try:
        return frozenset(path.read_text(encoding="utf-8").split())
    except OSError as error:
        raise InputError(f"--only {path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"--only {path}: is no UTF-8 text; it has to list run ids") from None


def _opening(prepared: Prepared, request: RunRequest, *, already: int) -> list[str]:
    plan = prepared.plan
    runs = sum(len(world.runs) for world in plan.worlds)
    lines = [
        f"agent {prepared.agent.name}: {counted(len(plan.scenarios), 'scenario')}"
        f" on {counted(len(plan.traces), 'trace')}, {counted(runs, 'run')}"
        + (f" to go, {already} done before" if already else ""),
        *prepared.notes,
    ]
    if request.selection.by_chance:
        lines.append(f"seed {request.selection.seed}")
    return lines


def _replay_options(request: RunRequest) -> str:
    words: list[str] = []
    for option, values in (
        ("--tools", [request.tools] if request.tools else []),
        ("--scenarios", request.scenarios),
        ("--traces", request.trace_places),
    ):
        for value in values:
            words += [option, str(value)]
    return "".join(f" {shlex.quote(word)}" for word in words)


def _say(request: RunRequest, *lines: str) -> None:
    if not request.quiet:
        for line in lines:
            sys.stderr.write(f"{visible(line)}\n")


def _collect(faults: list[str], load: Any) -> Any:
    """Call a loader, and keep its complaints for later instead of stopping at the first file."""
    try:
        return load()
    except InputError as error:
        faults.extend(error.faults)
        return None


def pairs(prepared: Prepared) -> list[dict[str, Any]]:
    """What would be run: one entry per run, for `--dry-run` and the pytest plugin."""
    return [
        {"run_id": run.run_id, "scenario": run.scenario.number, "title": run.scenario.title, "trace": run.trace.name}
        for world in prepared.plan.worlds
        for run in world.runs
    ]


def show(summary: Summary, *, json: bool, quiet: bool, directory: Path) -> int:
    """Print the summary of a result directory and return its exit code, also where nobody reads on (`| head`)."""
    try:
        if json:
            sys.stdout.buffer.write(summary.to_json() + b"\n")
        else:
            from reports.console import show_summary

            show_summary(summary, quiet=quiet, directory=directory if (directory / HTML).exists() else None)
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still buffered would be tried once more at the end, and fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return summary.exit_code


def shard_from(text: str) -> tuple[int, int]:
    """`I/N` as two numbers. Raises `InputError`."""
    found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    part, parts = (int(number) for number in found.groups()) if found else (0, 0)
    if not 1 <= part <= parts:
        raise InputError(f"--shard {text}: has to be I/N with I from 1 to N, such as 1/4")
    return part, parts


def seconds_from(text: str | None) -> float | None:
    """A duration such as `90`, `90s`, `10m` or `1h`, in seconds. Raises `InputError`."""
    if text is None:
        return None
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1.0)
    try:
        seconds = float(number) * unit
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise InputError(f"--max-time {text}: has to be a time such as 90s, 10m or 1h")
    return seconds
