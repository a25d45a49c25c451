"""From what a run left behind to its result: verdicts, faults, activations, findings (contract section 8)."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.digest import history_digest
from harness.options import RunOptions
from harness.playing import MOST_GENERATIONS, Played
from harness.results import Block
from invariants.verdict import Verdict
from reports.findings import find
from reports.mechanisms.catalogue import detect, tally
from reports.results import Bound, FaultUse, Finding, Ruling, RunResult
from traces.registry import Registry

REPLAYS = ("stormproof-replay", "stormproof-replay-2")
"""Folders for the results of replays."""
GOOD_ENDS = frozenset({"succeeded", "partial_success"})
"""Every other end that breaks no invariant is an ordinary failure: counted, reported, exit 0."""


def run_result(played: Played, *, block: Block, options: RunOptions) -> RunResult:
    """The result of one run, judged from its lines of the history."""
    plan, scenario = played.plan, played.plan.scenario
    own = [(line, record) for line, record in block.records if record.run_id == plan.run_id]
    tools = {line: record.tool for line, record in block.records}
    rulings = [
        _ruling(verdict, tools=tools, registry=options.registry, last_words=_last_words(played))
        for verdict in block.verdicts.get(plan.run_id, ())
    ]
    rulings = _proven(rulings, played, times={line: record.t for line, record in block.records})
    violated = any(ruling.verdict == "violated" for ruling in rulings)
    harness_error = played.harness_error or block.error
    return RunResult(
        run_id=plan.run_id,
        number=int(scenario.number) if scenario.number.isdigit() else scenario.number,
        scenario=scenario.title,
        version=int(scenario.version) if scenario.version.isdigit() else scenario.version,
        layers=list(scenario.layers),
        trace=plan.trace.name,
        task_type=plan.trace.task_type,
        agent=options.agent.name,
        tenant=plan.tenant,
        world=plan.world,
        sets=list(scenario.sets),
        status=played.words.status,
        ordinary_failure=not violated and harness_error is None and played.words.status not in GOOD_ENDS,
        verdicts=rulings,
        faults=[
            FaultUse(
                kind=fault.kind,
                layer=fault.layer,
                site=str(fault.at),
                armed=1,
                fired=int(played.fired.get(data["id"], 0)),
            )
            for fault, data in zip(scenario.faults, scenario.fault_data, strict=True)
        ],
        harness_error=harness_error,
        undecided=None if harness_error else _undecided(played, rulings),
        lines=(block.first, block.last),
        digest=history_digest(record for _, record in own),
        replay=replay_command(played, options),
        wall_s=round(played.wall_s, 4),
        agent_s=round(played.agent_s, 4),
        harness_s=round(max(0.0, played.wall_s - played.agent_s - played.queued_s), 4),
        activations=tally(detect(block.records, run_id=plan.run_id, registry=options.registry)),
        expect={
            # Somebody else's agent may well be right without the mechanism that ours has: it is told, not failed.
            name: Bound(
                min=bound.least, max=bound.most, rare=bound.rare or (scenario.bundled and not options.agent.ours)
            )
            for name, bound in scenario.mechanisms.items()
        },
        findings=[
            *_findings(played, block, options.registry),
            *_own_findings(played),
        ],
        started=played.started,
    )


def _ruling(verdict: Verdict, *, tools: Mapping[int, str | None], registry: Registry, last_words: str) -> Ruling:
    tool = registry.tools.get(tools.get(verdict.evidence[-1]) or "") if verdict.evidence else None
    return Ruling(
        invariant=verdict.invariant,
        verdict=verdict.verdict,
        reason=verdict.reason,
        evidence=list(verdict.evidence),
        message=f"{verdict.message}{last_words}" if verdict.reason in ("crash", "unhandled") else verdict.message,
        owner=tool.owner if tool else None,
    )


def _last_words(played: Played) -> str:
    """What the agent wrote on standard error last, and where the rest is."""
    words = played.words.last_error
    return f'; its last words: "{words}" (runs/{played.plan.run_id}/stderr.txt)' if words else ""


def replay_command(played: Played, options: RunOptions) -> str:
    """The one command that repeats a run, into a folder of its own: the report it is read from has to stay."""
    plan = played.plan
    words = ["stormproof", "run", "--scenario", plan.scenario.number]
    if len(plan.scenario.world) == 0:
        words += ["--trace", plan.trace.name]
    words += ["--agent", options.agent.reference]
    words += ["--out", next(folder for folder in REPLAYS if Path(folder).resolve() != options.out.resolve())]
    return " ".join(shlex.quote(word) for word in words) + options.replay_options


def _proven(rulings: Sequence[Ruling], played: Played, *, times: Mapping[int, float]) -> list[Ruling]:
    """The rulings, without violations that may be our own doing; what they were about cannot be told.

    Where the harness failed, a violation is proven by what stood on record before the failure. That nothing settled
    an effect is proven by no such record: what was lost may have settled it.
    """
    kept: list[Ruling] = []
    doubted: dict[str, Ruling] = {}
    for ruling in rulings:
        why = None if ruling.verdict != "violated" else _why_not_proven(ruling, played, times)
        if why is None:
            kept.append(ruling)
        else:
            doubted.setdefault(
                ruling.invariant, Ruling(invariant=ruling.invariant, verdict="unobservable", message=why)
            )
    broken = {ruling.invariant for ruling in kept}
    kept += [ruling for ruling in doubted.values() if ruling.invariant not in broken]
    order = list(dict.fromkeys(ruling.invariant for ruling in rulings))
    return sorted(kept, key=lambda ruling: order.index(ruling.invariant))


def _why_not_proven(ruling: Ruling, played: Played, times: Mapping[int, float]) -> str | None:
    if played.given_up and ruling.reason == "unfinished":
        return "the harness did not start it again, so that it could not finish"
    if played.sound_until == math.inf:
        return None
    if ruling.invariant == "no-dangling-effect":
        return "the harness failed in this run; what settles the effect may be lost"
    last = max((times.get(line, math.inf) for line in ruling.evidence if isinstance(line, int)), default=math.inf)
    return None if last < played.sound_until else f"the harness had failed before this was seen: {ruling.message}"


def _undecided(played: Played, rulings: Sequence[Ruling]) -> str | None:
    if played.given_up:
        return f"killed {MOST_GENERATIONS} times by its faults, and then not started again"
    if played.traffic == 0:
        return "no traffic of the agent was seen: it never reached the proxy"
    for invariant, wanted in played.plan.scenario.invariants.items():
        words = {ruling.verdict for ruling in rulings if ruling.invariant == invariant} or {"not judged"}
        if wanted not in words:
            return f"the scenario expects {invariant} to be {wanted}; it was {', '.join(sorted(words))}"
    return None


def _findings(played: Played, block: Block, registry: Registry) -> list[Finding]:
    """What the history shows beside the invariants. One that a failure of ours has touched shows nothing."""
    if played.sound_until != math.inf:
        return []
    return find(
        block.records,
        run_id=played.plan.run_id,
        registry=registry,
        egress=map(str, played.flows.get("egress", ())),
        orphans=played.orphans,
    )


def _own_findings(played: Played) -> list[Finding]:
    """What only the harness saw."""
    findings = []
    if played.words.unreadable:
        findings.append(
            Finding(
                code="unreadable-events",
                fact=f"{len(played.words.unreadable)} event lines could not be used: {played.words.unreadable[0]}",
                advice="write one JSON object a line with type and t (contract section 3)",
            )
        )
    if played.timed_out:
        findings.append(
            Finding(
                code="harness-timeout",
                fact=f"ended by the harness after {played.agent_s:.1f} s",
                advice="give the run a wall-clock budget of its own, or raise timeout_s in agent.yaml",
            )
        )
    return findings
