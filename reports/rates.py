"""Activation rates: the interval around a rate, and what is to be thought of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import sqrt

import msgspec

from reports.mechanisms.catalogue import MECHANISMS, STOPS
from reports.results import Bound, RunResult

Z95 = 1.959963984540054
"""Two-sided 95 % point of the normal distribution."""

SILENT_FROM = 5
"""Opportunities below which a mechanism that never acted is not yet called silent (contract section 9)."""

STOP_EXCESSIVE = 0.95
"""Rate above which a stop acts suspiciously often where the scenario says nothing (contract section 9)."""

STATUSES: tuple[str, ...] = ("ok", "silent", "below-floor", "no-opportunity", "excessive")


def wilson(successes: int, trials: int, *, z: float = Z95) -> tuple[float, float]:
    """The score interval of a proportion (Wilson 1927, JASA 22, 209-212); (0, 1) where nothing was tried.

    Unlike the textbook interval it stays inside 0..1 and means something for few trials and for rates of 0 or 1.
    """
    if trials <= 0:
        return 0.0, 1.0
    rate, weight = successes / trials, z * z / trials
    centre = (rate + weight / 2) / (1 + weight)
    half = z / (1 + weight) * sqrt(rate * (1 - rate) / trials + weight / (4 * trials))
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return low, high


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `activations` in contract section 8; rates are 0..1, `rate` is null without opportunities."""

    opportunities: int
    activations: int
    rate: float | None
    low: float
    high: float
    floor: float | None
    status: str


@dataclass(frozen=True, slots=True)
class Gate:
    """What one scenario expects of a mechanism, and what its runs showed; `problem` is empty when it holds."""

    scenario: int | str
    mechanism: str
    bound: Bound
    opportunities: int
    activations: int
    problem: str

    @property
    def decides(self) -> bool:
        """Whether the problem leaves the scenario undecided; a `rare` one only warns."""
        return bool(self.problem) and not self.bound.rare

    def sentence(self) -> str:
        """The problem in words."""
        floor, top = self.bound.min, self.bound.max
        if self.problem == "no-opportunity":
            return f"{self.mechanism} is expected to act in {percent(floor)} of cases and never had an opportunity"
        bound = f"under its floor of {percent(floor)}" if self.problem == "below-floor" else f"above {percent(top)}"
        rate = self.activations / self.opportunities
        return (
            f"{self.mechanism} acted at {self.activations} of {self.opportunities} opportunities"
            f" ({percent(rate)}), {bound}"
        )


def percent(rate: float | None) -> str:
    """A rate for people: `87 %`, with a decimal only where it would round to all or nothing."""
    if rate is None:
        return "–"
    shown = f"{rate * 100:.0f}"
    if (shown == "100" and rate < 1) or (shown == "0" and rate > 0):
        shown = f"{rate * 100:.1f}"
    return f"{shown} %"


def gates(runs: Iterable[RunResult]) -> list[Gate]:
    """Every bound that a scenario declares, over all runs of that scenario together."""
    bounds: dict[tuple[int | str, str], Bound] = {}
    counts: dict[tuple[int | str, str], tuple[int, int]] = {}
    for run in runs:
        if run.harness_error is not None:
            continue
        for mechanism, bound in run.expect.items():
            bounds[(run.number, mechanism)] = bound
        for mechanism, seen in run.activations.items():
            opportunities, activations = counts.get((run.number, mechanism), (0, 0))
            counts[(run.number, mechanism)] = (opportunities + seen.opportunities, activations + seen.activations)
    return [
        Gate(number, mechanism, bound, *seen, _problem(bound, *seen))
        for (number, mechanism), bound in bounds.items()
        for seen in (counts.get((number, mechanism), (0, 0)),)
    ]


def _problem(bound: Bound, opportunities: int, activations: int) -> str:
    if opportunities == 0:
        # A floor over nothing is the emptiest pass there is.
        return "no-opportunity" if bound.min is not None and bound.min > 0 else ""
    rate = activations / opportunities
    if bound.min is not None and rate < bound.min - 1e-9:
        return "below-floor"
    return "excessive" if bound.max is not None and rate > bound.max + 1e-9 else ""


def activation_rates(runs: Iterable[RunResult]) -> dict[str, Rate]:
    """The rates over all runs: a row for every mechanism that can be detected, seen or not.

    A scenario's own bounds come first; the defaults of contract section 9 judge only the scenarios that say
    nothing about a mechanism, so that a stop which is asked to act always is not blamed for it.
    """
    kept = [run for run in runs if run.harness_error is None]
    declared: dict[str, list[Gate]] = {}
    for gate in gates(kept):
        declared.setdefault(gate.mechanism, []).append(gate)
    names = dict.fromkeys(MECHANISMS, (0, 0, 0, 0))
    names |= {name: (0, 0, 0, 0) for run in kept for name in (*run.activations, *run.expect) if name not in names}
    for run in kept:
        for name, seen in run.activations.items():
            free = name not in run.expect
            total, acted, free_total, free_acted = names[name]
            names[name] = (
                total + seen.opportunities,
                acted + seen.activations,
                free_total + seen.opportunities * free,
                free_acted + seen.activations * free,
            )
    return {name: _rate(name, counts, declared.get(name, ())) for name, counts in names.items()}


def _rate(name: str, counts: tuple[int, int, int, int], declared: Iterable[Gate]) -> Rate:
    total, acted, free_total, free_acted = counts
    low, high = wilson(acted, total)
    floors = [gate.bound.min for gate in declared if gate.bound.min is not None]
    problems = {gate.problem for gate in declared}
    status = "ok"
    if total == 0:
        status = "no-opportunity"
    elif problems & {"below-floor", "no-opportunity"}:
        status = "below-floor"
    elif "excessive" in problems or (name in STOPS and free_total and free_acted / free_total > STOP_EXCESSIVE):
        status = "excessive"
    elif acted == 0 and total >= SILENT_FROM:
        status = "silent"
    return Rate(
        opportunities=total,
        activations=acted,
        rate=acted / total if total else None,
        low=low,
        high=high,
        floor=max(floors, default=None),
        status=status,
    )


def by_scenario(runs: Iterable[RunResult]) -> Mapping[int | str, dict[str, tuple[int, int]]]:
    """Opportunities and activations per scenario and mechanism."""
    found: dict[int | str, dict[str, tuple[int, int]]] = {}
    for run in runs:
        if run.harness_error is not None:
            continue
        counts = found.setdefault(run.number, {})
        for name, seen in run.activations.items():
            total, acted = counts.get(name, (0, 0))
            counts[name] = (total + seen.opportunities, acted + seen.activations)
    return found
