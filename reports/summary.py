"""The result of a whole session in one value: `summary.json` and the answer of `run --json` (contract section 8).

The exit code is decided here and nowhere else, so that console, JSON, JUnit, HTML and Markdown cannot disagree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from reports.rates import Rate, activation_rates, gates
from reports.results import INVARIANTS, VERDICT_WORDS, Results, Ruling, RunResult, scenario_key
from reports.text import counted, scenario_label

FORMAT = 1
NOT_JUDGED = "no run at all was judged"
HELD, VIOLATED, BAD_INPUT, HARNESS_ERROR, UNDECIDED = 0, 1, 2, 3, 4
WORST_FIRST: tuple[int, ...] = (BAD_INPUT, VIOLATED, HARNESS_ERROR, UNDECIDED, HELD)
"""Exit codes, the one that wins first (contract section 1)."""


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """One violated verdict of one run; `replay` is the one command that repeats it."""

    run_id: str
    scenario: int | str
    trace: str
    invariant: str
    reason: str | None
    message: str
    evidence: list[int | str]
    replay: str
    title: str = ""
    agent: str = ""
    tenant: str = ""
    owner: str = ""


class FaultCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Faults over all runs: armed, fired at least once, never fired."""

    armed: int = 0
    fired: int = 0
    misfired: int = 0


class RunFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding and the run that showed it."""

    code: str
    fact: str
    advice: str
    run_id: str
    lines: list[int | str] = []
    tool: str | None = None
    times: int = 1


class Untold(msgspec.Struct, frozen=True, kw_only=True):
    """Why an invariant could not be told, and in how many runs for this reason."""

    invariant: str
    why: str
    runs: int


class Doubt(msgspec.Struct, frozen=True, kw_only=True):
    """Why something stays undecided (or only warns): `what` is `run`, `fault`, `mechanism` or `session`.

    `problem` is the status that a mechanism has in this scenario, such as `below-floor`.
    """

    what: str
    why: str
    scenario: int | str | None = None
    run_id: str | None = None
    trace: str | None = None
    mechanism: str | None = None
    problem: str | None = None


class RunError(msgspec.Struct, frozen=True, kw_only=True):
    """Where the harness itself failed: in a run, or, where no run is named, in the session as a whole."""

    run_id: str | None = None
    scenario: int | str | None = None
    trace: str = ""
    message: str
    replay: str = ""

    def sentence(self) -> str:
        """For people: where, if it was in a run, and what."""
        if self.scenario is None:
            return self.message
        return f"{scenario_label(self.scenario)} · {self.trace}: {self.message}"


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Contract section 8, `run`; what stands after `exit_code` is added to it. `wall_s` is in seconds."""

    format: int = FORMAT
    seed: int | None
    agent: str
    runs: int
    scenarios: int
    traces: int
    verdicts: dict[str, dict[str, int]]
    violations: list[Violation]
    ordinary_failures: int
    faults: FaultCounts
    harness_errors: int
    activations: dict[str, Rate]
    findings: list[RunFinding]
    wall_s: float
    exit_code: int
    judged: int = 0
    vacuous: int = 0
    undecided: list[Doubt] = []
    warnings: list[Doubt] = []
    errors: list[RunError] = []
    unobservable: list[Untold] = []

    def to_json(self) -> bytes:
        """The answer of `run --json`, one line, in the order of the contract."""
        return msgspec.json.encode(self)

    def headline(self) -> str:
        """The verdict in words: one sentence that a person reads first."""
        if self.exit_code == VIOLATED:
            hit = len({violation.run_id for violation in self.violations})
            return f"{counted(len(self.violations), 'violation')} in {hit} of {counted(self.runs, 'run')}"
        if self.exit_code == HARNESS_ERROR:
            failed = sum(error.run_id is not None for error in self.errors)
            where = f"in {failed} of" if failed == self.harness_errors else "after"
            return f"The harness failed {where} {counted(self.runs, 'run')}; no violation was found"
        if self.exit_code == UNDECIDED:
            if not self.judged:
                return f"Undecided: {NOT_JUDGED}"
            return f"Undecided in {counted(len(self.undecided), 'case')}; no violation was found"
        if self.vacuous == self.judged:
            return f"No violation, but nothing could have broken in {counted(self.runs, 'run')}"
        untold = sum(words["unobservable"] for words in self.verdicts.values())
        if untold:
            return f"No violation in {counted(self.runs, 'run')}; {counted(untold, 'verdict')} could not be told"
        return f"Every invariant held in {counted(self.runs, 'run')}"


def worst(codes: Iterable[int]) -> int:
    """The exit code that wins among several."""
    found = set(codes)
    return next((code for code in WORST_FIRST if code in found), HELD)


def summarise(
    results: Results,
    *,
    seed: int | None = None,
    agent: str | None = None,
    wall_s: float | None = None,
    undecided_because: str | None = None,
    error: str | None = None,
) -> Summary:
    """What a result directory says as a whole; pure.

    `seed`, `agent` and `wall_s` override what the runs themselves say; `undecided_because` is a reason why the
    whole session is undecided that no run can know, such as an early stop, and `error` what the harness failed at
    outside of any run.
    """
    runs = sorted(results.runs, key=lambda run: (scenario_key(run.number), run.trace, run.tenant, run.run_id))
    violations = [_violation(run, ruling) for run in runs for ruling in run.violations()]
    errors = [
        RunError(
            run_id=run.run_id, scenario=run.number, trace=run.trace, message=run.harness_error, replay=run.replay
        )
        for run in runs
        if run.harness_error is not None
    ]
    errors += [] if error is None else [RunError(message=error)]
    undecided, warnings = _doubts(runs)
    if undecided_because:
        undecided.append(Doubt(what="session", why=undecided_because))
    armed = [fault for run in runs for fault in run.faults if fault.armed]
    codes = [HELD]
    codes += [VIOLATED] if violations else []
    codes += [HARNESS_ERROR] if errors else []
    codes += [UNDECIDED] if undecided else []
    seeds = [run.seed for run in runs if run.seed is not None]
    return Summary(
        seed=seed if seed is not None else (seeds[0] if seeds else None),
        agent=agent if agent is not None else ", ".join(sorted({run.agent for run in runs if run.agent})),
        runs=len(runs),
        scenarios=len({str(run.number) for run in runs}),
        traces=len({run.trace for run in runs}),
        verdicts=count_verdicts(runs),
        violations=violations,
        ordinary_failures=sum(run.ordinary_failure for run in runs),
        faults=FaultCounts(
            armed=len(armed),
            fired=sum(bool(fault.fired) for fault in armed),
            misfired=sum(not fault.fired for fault in armed),
        ),
        harness_errors=len(errors),
        activations=activation_rates(runs),
        findings=[
            RunFinding(
                code=found.code,
                fact=found.fact,
                advice=found.advice,
                run_id=run.run_id,
                lines=found.lines,
                tool=found.tool,
                times=found.times,
            )
            for run in runs
            for found in run.findings
        ],
        wall_s=round(wall_s if wall_s is not None else _span(runs), 3),
        exit_code=worst(codes),
        judged=sum(run.judged for run in runs),
        vacuous=sum(run.vacuous for run in runs if run.judged),
        undecided=undecided,
        warnings=warnings,
        errors=errors,
        unobservable=_untold(runs),
    )


def count_verdicts(runs: Iterable[RunResult]) -> dict[str, dict[str, int]]:
    """Runs by invariant and verdict; a run counts once per invariant however many reasons it breaks it for.

    Of a run in which the harness failed only what was proven counts: its violations.
    """
    counts = {name: dict.fromkeys(VERDICT_WORDS, 0) for name in INVARIANTS[:7]}
    for run in runs:
        seen: dict[str, str] = {}
        for ruling in run.verdicts:
            if run.harness_error is not None and ruling.verdict != "violated":
                continue
            if seen.get(ruling.invariant) != "violated":
                seen[ruling.invariant] = ruling.verdict
        for invariant, verdict in seen.items():
            words = counts.setdefault(invariant, dict.fromkeys(VERDICT_WORDS, 0))
            words[verdict] = words.get(verdict, 0) + 1
    return counts


def most_telling(violations: Iterable[Violation]) -> list[Violation]:
    """All violations, the first of each scenario, invariant and reason in front: variety before repetition."""
    first: list[Violation] = []
    again: list[Violation] = []
    seen: set[tuple[str, str, str | None]] = set()
    for violation in violations:
        kind = (str(violation.scenario), violation.invariant, violation.reason)
        (again if kind in seen else first).append(violation)
        seen.add(kind)
    return [*first, *again]


def doubt_sentences(doubts: Iterable[Doubt]) -> list[str]:
    """Doubts for people, one sentence each: what is the same for several traces of a scenario is said once."""
    groups: dict[tuple[str, str], list[str]] = {}
    for doubt in doubts:
        scenario = scenario_label(doubt.scenario) if doubt.scenario is not None else ""
        groups.setdefault((scenario, doubt.why), []).append(doubt.trace or "")
    sentences = []
    for (scenario, why), named in groups.items():
        traces = [trace for trace in dict.fromkeys(named) if trace]
        more = f" and {len(traces) - 1} more" if len(traces) > 1 else ""
        where = " · ".join(place for place in (scenario, f"{traces[0]}{more}" if traces else "") if place)
        sentences.append(f"{where}: {why}" if where else why)
    return sentences


def doubts_of(run: RunResult) -> list[Doubt]:
    """Why nothing can be concluded from one run, apart from errors of the harness: empty when it is decided."""

    def doubt(what: str, why: str) -> Doubt:
        return Doubt(what=what, why=why, scenario=run.number, run_id=run.run_id, trace=run.trace)

    found = [] if run.undecided is None else [doubt("run", run.undecided)]
    found += [
        doubt("fault", f"the fault {fault.kind} at {fault.site} was armed and never fired")
        for fault in run.misfires()
    ]
    if not run.verdicts and run.harness_error is None and not found:
        found.append(doubt("run", "the run was not judged"))
    return found


def _doubts(runs: list[RunResult]) -> tuple[list[Doubt], list[Doubt]]:
    """What leaves the session undecided, and what only warns."""
    undecided = [doubt for run in runs for doubt in doubts_of(run)]
    warnings: list[Doubt] = []
    for gate in gates(runs):
        if gate.problem:
            doubt = Doubt(
                what="mechanism",
                why=gate.sentence(),
                scenario=gate.scenario,
                mechanism=gate.mechanism,
                problem=gate.problem,
            )
            (undecided if gate.decides else warnings).append(doubt)
    if not any(run.judged or run.violations() for run in runs):
        undecided.append(Doubt(what="session", why=NOT_JUDGED))
    return undecided, warnings


def _untold(runs: Iterable[RunResult]) -> list[Untold]:
    """The reasons of unobservable verdicts, the most frequent first."""
    counts = Counter(
        (ruling.invariant, ruling.message or "no reason is given")
        for run in runs
        if run.harness_error is None
        for ruling in run.verdicts
        if ruling.verdict == "unobservable"
    )
    return [Untold(invariant=name, why=why, runs=number) for (name, why), number in counts.most_common()]


def _violation(run: RunResult, ruling: Ruling) -> Violation:
    return Violation(
        run_id=run.run_id,
        scenario=run.number,
        trace=run.trace,
        invariant=ruling.invariant,
        reason=ruling.reason,
        message=ruling.message or f"{ruling.invariant} is violated ({ruling.reason or 'no reason given'}).",
        evidence=ruling.evidence,
        replay=run.replay,
        title=run.scenario,
        agent=run.agent,
        tenant=run.tenant,
        owner=ruling.owner or "",
    )


def _span(runs: list[RunResult]) -> float:
    """Seconds from the start of the first run to the end of the last."""
    timed = [run for run in runs if run.started]
    if not timed:
        return sum(run.wall_s for run in runs)
    return max(run.started + run.wall_s for run in timed) - min(run.started for run in timed)
