"""What changed between two result directories: violations, activation rates, bounds, and what was run at all.

A rate is said to have moved when each result lies outside the other's interval, in either direction: a mechanism
that suddenly acts less, or whose opportunities are gone, is as suspicious as one that fails (a breaker that no
longer opens has rarely got healthier).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from reports.rates import by_scenario, percent, wilson
from reports.results import Bound, Results, RunResult, read_results, scenario_key
from reports.summary import HELD, VIOLATED
from reports.text import counted, plain, scenario_label

VANISHED_FROM = 5
"""Opportunities from which their absence in the other result is worth a line."""


class Place(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """Where a violation stands: the scenario, trace and tenant are its identity, run ids are not."""

    scenario: str
    trace: str
    tenant: str
    invariant: str
    reason: str


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """One violation that is new or gone."""

    scenario: str
    trace: str
    tenant: str
    invariant: str
    reason: str
    message: str
    replay: str


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """One run that still violates the same invariant, for another reason."""

    scenario: str
    trace: str
    tenant: str
    invariant: str
    before: list[str]
    after: list[str]


class RateMove(msgspec.Struct, frozen=True, kw_only=True):
    """A rate that left its interval; `scenario` is null for the total over the scenarios that both results ran.

    `direction` is `down`, `up`, or `gone` where the opportunities vanished.
    """

    mechanism: str
    scenario: str | None
    direction: str
    before: tuple[int, int]
    after: tuple[int, int]
    before_rate: float
    after_rate: float | None
    low: float
    high: float

    def sentence(self) -> str:
        """The move in words."""
        where = f" in {self.scenario}" if self.scenario else ""
        was = f"{percent(self.before_rate)} ({self.before[1]} of {self.before[0]})"
        if self.direction == "gone":
            return f"{self.mechanism}{where}: no opportunity any more, was {was}"
        now = f"{percent(self.after_rate)} ({self.after[1]} of {self.after[0]})"
        word = "rose" if self.direction == "up" else "fell"
        return (
            f"{self.mechanism}{where}: {word} from {was} to {now}, outside {percent(self.low)} – {percent(self.high)}"
        )


class BoundMove(msgspec.Struct, frozen=True, kw_only=True):
    """A bound of a scenario that is another one now: a threshold that moved changes what a rate means."""

    mechanism: str
    scenario: str
    before: Bound | None
    after: Bound | None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `compare --json`; scenarios are written as in file names."""

    format: int = 1
    old: str
    new: str
    new_violations: list[Changed]
    gone_violations: list[Changed]
    moved_violations: list[Moved]
    rates: list[RateMove]
    bounds: list[BoundMove]
    scenarios_gone: list[str]
    scenarios_new: list[str]
    exit_code: int

    def to_json(self) -> bytes:
        """One line of JSON."""
        return msgspec.json.encode(self)


def compare(old: Path, new: Path) -> Comparison:
    """Compares two result directories; raises `ResultsError` where one cannot be read."""
    return compare_results(read_results(old), read_results(new))


def compare_results(old: Results, new: Results) -> Comparison:
    """Compares two results that are in memory. Exit code 1 where a violation is new, else 0."""
    before, after = _violations(old.runs), _violations(new.runs)
    played = {(_number(run), run.trace, run.tenant) for run in new.runs if run.judged}
    fresh = [at for at in sorted(after) if at not in before]
    past = [at for at in sorted(before) if at not in after and (at.scenario, at.trace, at.tenant) in played]
    moved = _moved(fresh, past)
    spots = {(move.scenario, move.trace, move.tenant, move.invariant) for move in moved}
    new_violations = [_changed(at, after[at]) for at in fresh if _spot(at) not in spots]
    then, now = {_number(run) for run in old.runs}, {_number(run) for run in new.runs}
    return Comparison(
        old=str(old.directory),
        new=str(new.directory),
        new_violations=new_violations,
        gone_violations=[_changed(at, before[at]) for at in past if _spot(at) not in spots],
        moved_violations=moved,
        rates=_rate_moves(old.runs, new.runs),
        bounds=_bound_moves(old.runs, new.runs, then & now),
        scenarios_gone=sorted(then - now, key=scenario_key),
        scenarios_new=sorted(now - then, key=scenario_key),
        exit_code=VIOLATED if new_violations or moved else HELD,
    )


def comparison_text(comparison: Comparison) -> str:
    """The comparison for people, a line for each change; ends with a newline."""
    blocks: list[tuple[str, list[str]]] = [
        ("New violations", [f"{_said(c)}\n    {c.message}\n    $ {c.replay}" for c in comparison.new_violations]),
        (
            "Moved violations",
            [
                f"{m.scenario} on {m.trace}: {m.invariant} {', '.join(m.before)} → {', '.join(m.after)}"
                for m in comparison.moved_violations
            ],
        ),
        ("Gone violations", [_said(c) for c in comparison.gone_violations]),
        ("Activation rates", [move.sentence() for move in comparison.rates]),
        ("Bounds that changed", [_bound_said(move) for move in comparison.bounds]),
        ("Scenarios no longer run", comparison.scenarios_gone),
        ("Scenarios run for the first time", comparison.scenarios_new),
    ]
    parts = []
    for title, lines in blocks:
        if lines:
            shown = "\n".join("  " + "\n".join(map(plain_line, line.split("\n"))) for line in lines)
            parts.append(f"{title} ({len(lines)})\n{shown}")
    if not parts:
        parts = [f"Nothing changed between {plain(comparison.old)} and {plain(comparison.new)}"]
    head = "" if comparison.exit_code == HELD else f"{counted(len(comparison.new_violations), 'new violation')}\n\n"
    return head + "\n\n".join(parts) + "\n"


def plain_line(line: str) -> str:
    """One line made harmless, its indentation kept."""
    return line[: len(line) - len(line.lstrip())] + plain(line)


def _number(run: RunResult) -> str:
    return scenario_label(run.number)


def _spot(at: Place) -> tuple[str, str, str, str]:
    return (at.scenario, at.trace, at.tenant, at.invariant)


def _violations(runs: Iterable[RunResult]) -> dict[Place, tuple[str, str]]:
    found: dict[Place, tuple[str, str]] = {}
    for run in runs:
        for ruling in run.violations():
            place = Place(
                scenario=_number(run),
                trace=run.trace,
                tenant=run.tenant,
                invariant=ruling.invariant,
                reason=ruling.reason or "",
            )
            found.setdefault(place, (ruling.message or "", run.replay))
    return found


def _changed(at: Place, told: tuple[str, str]) -> Changed:
    return Changed(
        scenario=at.scenario,
        trace=at.trace,
        tenant=at.tenant,
        invariant=at.invariant,
        reason=at.reason,
        message=told[0],
        replay=told[1],
    )


def _moved(fresh: Iterable[Place], past: Iterable[Place]) -> list[Moved]:
    before: dict[tuple[str, str, str, str], list[str]] = {}
    after: dict[tuple[str, str, str, str], list[str]] = {}
    for at in past:
        before.setdefault(_spot(at), []).append(at.reason)
    for at in fresh:
        after.setdefault(_spot(at), []).append(at.reason)
    return [
        Moved(scenario=s, trace=t, tenant=n, invariant=i, before=before[(s, t, n, i)], after=reasons)
        for (s, t, n, i), reasons in after.items()
        if (s, t, n, i) in before
    ]


def _rate_moves(old: Iterable[RunResult], new: Iterable[RunResult]) -> list[RateMove]:
    before, after = by_scenario(old), by_scenario(new)
    common = sorted(set(before) & set(after), key=scenario_key)
    moves: list[RateMove] = []
    total_before: dict[str, tuple[int, int]] = {}
    total_after: dict[str, tuple[int, int]] = {}
    for number in common:
        _add(total_before, before[number])
        _add(total_after, after[number])
    moves += _between(None, total_before, total_after)
    for number in common:
        moves += _between(scenario_label(number), before[number], after[number])
    return moves


def _add(total: dict[str, tuple[int, int]], counts: Mapping[str, tuple[int, int]]) -> None:
    for name, (opportunities, activations) in counts.items():
        seen, acted = total.get(name, (0, 0))
        total[name] = (seen + opportunities, acted + activations)


def _between(
    scenario: str | None, before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]]
) -> list[RateMove]:
    moves = []
    for name, was in before.items():
        seen, acted = was
        now = after.get(name, (0, 0))
        if not seen or (not now[0] and seen < VANISHED_FROM):
            continue
        low, high = wilson(acted, seen)
        rate, rate_now = acted / seen, now[1] / now[0] if now[0] else None
        if rate_now is not None:
            low_now, high_now = wilson(now[1], now[0])
            if low <= rate_now <= high or low_now <= rate <= high_now:
                continue
        moves.append(
            RateMove(
                mechanism=name,
                scenario=scenario,
                direction="gone" if rate_now is None else "up" if rate_now > rate else "down",
                before=was,
                after=now,
                before_rate=rate,
                after_rate=rate_now,
                low=low,
                high=high,
            )
        )
    return moves


def _bound_moves(old: Iterable[RunResult], new: Iterable[RunResult], common: set[str]) -> list[BoundMove]:
    def bounds(runs: Iterable[RunResult]) -> dict[tuple[str, str], Bound]:
        return {(_number(run), name): bound for run in runs for name, bound in run.expect.items()}

    before, after = bounds(old), bounds(new)
    return [
        BoundMove(mechanism=name, scenario=number, before=before.get((number, name)), after=after.get((number, name)))
        for number, name in sorted(before.keys() | after.keys())
        if number in common and before.get((number, name)) != after.get((number, name))
    ]


def _said(changed: Changed) -> str:
    tenant = f" ({changed.tenant})" if changed.tenant != "default" else ""
    return f"{changed.scenario} on {changed.trace}{tenant}: {changed.invariant} {changed.reason}"


def _bound_said(move: BoundMove) -> str:
    def told(bound: Bound | None) -> str:
        if bound is None:
            return "none"
        low = percent(bound.min) if bound.min is not None else "any"
        high = percent(bound.max) if bound.max is not None else "any"
        return f"{low} to {high}{', rare' if bound.rare else ''}"

    return f"{move.mechanism} in {move.scenario}: {told(move.before)} → {told(move.after)}"
