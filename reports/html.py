"""`report.html`: one file without network that a person opens first and goes down from to the single record.

Everything from traces is escaped by the template, and the page's own policy lets no other script or style run.
"""

from __future__ import annotations

import base64
import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from reports.evidence import RawLine, compare_evidence, timeline
from reports.glance import (
    failure_legend,
    finding_groups,
    mechanism_legend,
    rated,
    status_label,
    untold_sentences,
    verdict_legend,
)
from reports.rates import Rate, percent
from reports.results import INVARIANTS, Results, RunResult, scenario_key
from reports.story import LANES
from reports.summary import (
    HARNESS_ERROR,
    HELD,
    UNDECIDED,
    VIOLATED,
    Summary,
    count_verdicts,
    doubt_sentences,
    doubts_of,
    most_telling,
)
from reports.text import counted, duration, fired, lines_label, number, plain, scenario_label, spans

TEMPLATES = Path(__file__).parent / "templates"
MOST_TIMELINES = 40
"""Violations shown with records and time line; the others keep sentence, lines and command (the file stays small)."""
MOST_OPEN = 1
MOST_FACTS = 12
_TONES = {HELD: "good", VIOLATED: "bad", HARNESS_ERROR: "broken", UNDECIDED: "doubt"}
_SIGNS = {"violated": "✘", "unobservable": "?", "held": "✔", "vacuous": "○"}
_WORST_FIRST = ("violated", "unobservable", "held", "vacuous")


def runs_to_show(results: Results, summary: Summary) -> list[RunResult]:
    """The runs of which the page shows history: those of the first violations, one per scenario and reason first."""
    by_id = {run.run_id: run for run in results.runs}
    return [by_id[v.run_id] for v in most_telling(summary.violations)[:MOST_TIMELINES] if v.run_id in by_id]


def report_html(
    results: Results,
    summary: Summary,
    *,
    excerpts: Mapping[str, Sequence[RawLine]] | None = None,
) -> str:
    """The page; `excerpts` are the history lines of the runs that `runs_to_show` names."""
    style, script = (_read(name) for name in ("report.css", "report.js"))
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, finalize=_clean
    )
    runs = sorted(results.runs, key=lambda run: (scenario_key(run.number), run.trace, run.run_id))
    violations = _violations(runs, summary, excerpts or {})
    anchors: dict[str, str] = {}
    for shown in violations:
        anchors.setdefault(shown["run_id"], shown["anchor"])
    unsettled = {
        scenario_label(doubt.scenario): doubt.why
        for doubt in reversed(summary.undecided)
        if doubt.run_id is None and doubt.scenario is not None
    }
    rows = [_run_row(run, anchors.get(run.run_id, ""), unsettled) for run in runs]
    rates = rated(summary)
    without = [name for name in summary.activations if name not in rates]
    return environment.get_template("report.html.j2").render(
        style=Markup(style),
        script=Markup(script),
        style_hash=Markup(_policy_hash(style)),
        script_hash=Markup(_policy_hash(script)),
        headline=summary.headline(),
        tone=_TONES.get(summary.exit_code, "bad"),
        agent=summary.agent,
        facts=_facts(summary),
        failure_legend=failure_legend(summary),
        strip=_strip(runs, set(unsettled) | {row["number"] for row in rows if row["verdict"] == "undecided"}),
        verdict_legend=verdict_legend(summary),
        untold=[spans(text) for text in untold_sentences(summary)],
        violations=violations,
        mechanisms=[_mechanism(name, rate, status_label(summary, name)) for name, rate in rates.items()],
        mechanism_legend=mechanism_legend(summary),
        without=without,
        without_title=f"No opportunity for {counted(len(without), 'other')}",
        doubts=doubt_sentences(summary.undecided),
        undecided=number(len(summary.undecided)),
        warnings=doubt_sentences(summary.warnings),
        errors=[error.sentence() for error in summary.errors],
        findings=_findings(summary),
        runs=rows,
        runs_shown=counted(len(rows), "run"),
        filters=[
            (name, choices)
            for name, choices in (
                ("scenario", list(dict.fromkeys(row["number"] for row in rows))),
                ("verdict", sorted({row["verdict"] for row in rows})),
                ("agent", sorted({row["agent"] for row in rows})),
                ("tenant", sorted({row["tenant"] for row in rows})),
            )
            if len(choices) > 1
        ],
    )


def _clean(value: Any) -> Any:
    """What every inserted value goes through before it is escaped: no control characters, no hidden directions."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    # Blanks at the edges are part of a sentence that is put together from its spans.
    text = plain(value)
    return f"{' ' * value.startswith(' ')}{text}{' ' * value.endswith(' ')}"


def _read(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _policy_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _facts(summary: Summary) -> list[tuple[str, str]]:
    faults = summary.faults

    def fact(count: int, noun: str) -> tuple[str, str]:
        return (noun if count == 1 else f"{noun}s", number(count))

    facts = [
        fact(summary.runs, "run"),
        fact(summary.scenarios, "scenario"),
        fact(summary.traces, "trace"),
        fact(len(summary.violations), "violation"),
        ("faults fired", f"{number(faults.fired)} of {number(faults.armed)}"),
        fact(summary.ordinary_failures, "ordinary failure"),
        ("undecided", number(len(summary.undecided))),
        fact(summary.harness_errors, "harness error"),
        ("time", duration(summary.wall_s)),
        ("exit code", f"{summary.exit_code}"),
    ]
    return [*facts, ("seed", f"{summary.seed}")] if summary.seed is not None else facts


def _strip(runs: Sequence[RunResult], undecided: Set[str]) -> dict[str, Any]:
    """Scenarios by invariants, each cell with its worst verdict and how the other runs went."""
    groups: dict[str, list[RunResult]] = defaultdict(list)
    for run in runs:
        groups[scenario_label(run.number)].append(run)
    eighth = any(ruling.invariant == INVARIANTS[7] for run in runs for ruling in run.verdicts)
    invariants = INVARIANTS if eighth else INVARIANTS[:7]
    rows = []
    for label, group in groups.items():
        counts = count_verdicts(group)
        armed = [fault for run in group for fault in run.faults if fault.armed]
        rows.append(
            {
                "number": label,
                "title": group[0].scenario,
                "undecided": label in undecided,
                "runs": len(group),
                "fired": f"{sum(bool(fault.fired) for fault in armed)}/{len(armed)}",
                "cells": [_cell(counts.get(name, {}), name) for name in invariants],
            }
        )
    return {"invariants": invariants, "rows": rows}


def _cell(words: Mapping[str, int], name: str) -> dict[str, Any] | None:
    present = [word for word in _WORST_FIRST if words.get(word)]
    if not present:
        return None
    worst = present[0]
    return {
        "word": worst,
        "sign": _SIGNS[worst],
        "count": words[worst],
        "rest": ", ".join(f"{words[word]} {word}" for word in present[1:]),
        "full": f"{name}: " + ", ".join(f"{words[word]} {word}" for word in present),
    }


def _violations(
    runs: Sequence[RunResult],
    summary: Summary,
    excerpts: Mapping[str, Sequence[RawLine]],
) -> list[dict[str, Any]]:
    by_id = {run.run_id: run for run in runs}
    shown = []
    for at, violation in enumerate(most_telling(summary.violations)):
        run = by_id.get(violation.run_id)
        lines = excerpts.get(violation.run_id, ()) if at < MOST_TIMELINES else ()
        moments = timeline(violation.run_id, violation.evidence, lines)
        shown.append(
            {
                "anchor": f"violation-{at + 1}",
                "open": at < MOST_OPEN,
                "run_id": violation.run_id,
                "invariant": violation.invariant,
                "reason": violation.reason or "",
                "message": spans(violation.message),
                "number": scenario_label(violation.scenario),
                "title": violation.title,
                "trace": violation.trace,
                "agent": violation.agent,
                "tenant": violation.tenant,
                "owner": violation.owner,
                "evidence": lines_label(violation.evidence),
                "replay": violation.replay,
                "comparison": compare_evidence(violation.reason, violation.evidence, lines, run_id=violation.run_id),
                "faults": [
                    f"{fault.layer}: {fault.kind} at {fault.site}, {fired(fault.fired)}"
                    for fault in (run.faults if run else ())
                ],
                "moments": moments,
                "lanes": [name for name in LANES if any(moment.lane == name for moment in moments)],
            }
        )
    return shown


def _mechanism(name: str, rate: Rate, status: str) -> dict[str, Any]:
    """One rate; its floors are the scenarios' own, and stand with the status."""

    def x(value: float) -> str:
        return f"{4 + 160 * value:.1f}"

    shown = percent(rate.rate)
    interval = f"{percent(rate.low)} – {percent(rate.high)}" if rate.opportunities else "–"
    return {
        "name": name,
        "rated": rate.opportunities > 0,
        "acted": f"{rate.activations} / {rate.opportunities}",
        "rate": shown,
        "interval": interval,
        "status": rate.status,
        "owed": status.removeprefix(rate.status),
        "low_x": x(rate.low),
        "high_x": x(rate.high),
        "rate_x": x(rate.rate if rate.rate is not None else 0),
        "label": f"{shown}, interval {interval}",
    }


def _findings(summary: Summary) -> list[dict[str, Any]]:
    """One row per code; its facts, the first ones, and the runs that showed it, for those who want to know."""
    rows = []
    for group in finding_groups(summary.findings):
        facts, run_ids = group.facts[:MOST_FACTS], group.run_ids[:MOST_FACTS]
        rows.append(
            {
                "code": group.code,
                "told": group.sentence(),
                "advice": group.advice,
                "facts": facts,
                "more": len(group.facts) - len(facts),
                "where": ", ".join(run_ids) + (" …" if len(group.run_ids) > len(run_ids) else ""),
            }
        )
    return rows


def _run_row(run: RunResult, anchor: str, unsettled: Mapping[str, str]) -> dict[str, Any]:
    """One run in one word: the worst that is true of it, be it only for its scenario as a whole (`unsettled`)."""
    label = scenario_label(run.number)
    untold = [ruling.invariant for ruling in run.verdicts if ruling.verdict == "unobservable"]
    verdict, style, why = "held", "passed", ""
    violations, doubts = run.violations(), doubts_of(run)
    if violations:
        verdict, style = "violated", "violated"
        why = ", ".join(ruling.reason or ruling.invariant for ruling in violations)
    elif run.harness_error is not None:
        verdict, style, why = "harness error", "harness-error", run.harness_error
    elif doubts:
        verdict, style, why = "undecided", "undecided", doubts[0].why
    elif label in unsettled:
        verdict, style, why = "undecided", "undecided", unsettled[label]
    elif run.ordinary_failure:
        verdict, style = "ordinary failure", "ordinary"
    elif untold:
        verdict, style, why = "unobservable", "undecided", ", ".join(untold)
    elif run.vacuous:
        verdict, style = "vacuous", "quiet"
    return {
        "number": label,
        "trace": run.trace,
        "agent": run.agent,
        "tenant": run.tenant,
        "verdict": verdict,
        "style": style,
        "why": plain(why, limit=120),
        "anchor": anchor,
        "status": run.status or "–",
        "faults": ", ".join(
            f"{fault.kind} {fault.site}" + ("" if fault.fired else " (never)") for fault in run.faults
        ),
        "wall": f"{run.wall_s:.2f}",
        "lines": f"{run.lines[0]}–{run.lines[1]}" if run.lines else "–",
    }
