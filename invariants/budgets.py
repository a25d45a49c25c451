"""budgets: steps, time, tokens, money and deadlines stay within their limits (contract section 4.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import msgspec

from invariants.facts import TOLERANCE, Run
from invariants.invariant import Hook, Invariant
from invariants.verdict import Outcome, Ruling, Standing
from traces.history import CoreRecord, PlannedAction

_GRACE_S = 0.5
_RESET_S = 0.25
"""A deadline may move later by this much before it counts as given anew."""

_HELD = Standing("held", "every limit and deadline was kept")
_VACUOUS = Standing("vacuous", "the run had no limit of steps, time, tokens or cost and carried no deadline")
_LATE_CLOCK = Standing("unobservable", "the harness's own clock ran late in this run, so times cannot be judged")
_NO_START = Standing("unobservable", "time is limited, but no run_started says when the run began")
_NO_TOKENS = Standing("unobservable", "tokens are limited, but no record of the run carries any")
_NO_COST = Standing("unobservable", "cost is limited, but no record of the run carries any")


class _Notes(msgspec.Struct, eq=False):
    tokens: float | None = None
    """Sum so far; None while no record carried any."""
    tokens_line: int = 0
    """The record with which the sum passed the limit."""
    cost: float | None = None
    cost_line: int = 0
    scopes: dict[str, tuple[float, int]] | None = None
    """Scope -> earliest instant at which its budget ends, and the first start that said so. None: no deadline."""
    own_end: float = -math.inf
    """When the run's own time and its grace are over, once that was asked."""
    reset: Ruling | None = None
    late: Ruling | None = None
    """First deadline past the run's own time, without time for recovery."""
    late_recovering: Ruling | None = None
    """The same with time for recovery: whether the run recovers is known only at its end."""
    exhausted_line: int = 0
    exhausted: str = ""
    plan: list[PlannedAction] | None = None
    plan_line: int = 0
    attempted: set[int] | None = None
    """Steps that were refused, or started without an attempt id."""


class Budgets(Invariant):
    """Sums what was used and compares it with the limits of the run's `run_started`."""

    name: ClassVar[str] = "budgets"

    def hooks(self) -> Mapping[str, Hook]:
        return {
            "tool_call_started": self._started,
            "tool_call_refused": self._refused,
            "budget_exhausted": self._exhausted,
            "plan_created": self._planned,
        }

    def used(self, run: Run, line: int, record: CoreRecord) -> None:
        """A record, of whatever type, that carries tokens or cost."""
        notes = self._notes(run)
        given, taken, cost = record.input_tokens, record.output_tokens, record.cost_usd
        if given is not None or taken is not None:
            tokens = notes.tokens = (notes.tokens or 0) + (given or 0) + (taken or 0)
            limit = run.limits.tokens
            if limit is not None and tokens > limit + TOLERANCE and not notes.tokens_line:
                notes.tokens_line = line
        if cost is not None:
            cost = notes.cost = (notes.cost or 0) + cost
            limit = run.limits.cost_usd
            if limit is not None and cost > limit + TOLERANCE and not notes.cost_line:
                notes.cost_line = line

    def rule(self, run: Run) -> Outcome:
        notes: _Notes = run.notes[self._slot] or _NOTHING
        limits = run.limits
        if rulings := _rulings(run, notes):
            return rulings
        timed = limits.wall_clock_s is not None
        deadlines = notes.scopes is not None
        if run.lagged and (timed or deadlines):
            return _LATE_CLOCK
        if timed and not run.start_line:
            return _NO_START
        if limits.tokens is not None and notes.tokens is None:
            return _NO_TOKENS
        if limits.cost_usd is not None and notes.cost is None:
            return _NO_COST
        limited = timed or limits.steps is not None or limits.tokens is not None or limits.cost_usd is not None
        return _HELD if limited or deadlines else _VACUOUS

    def _notes(self, run: Run) -> _Notes:
        notes: _Notes | None = run.notes[self._slot]
        if notes is None:
            notes = run.notes[self._slot] = _Notes()
        return notes

    def _started(self, run: Run, line: int, record: CoreRecord) -> None:
        remaining = record.deadline_remaining_s
        if remaining is not None:
            self._deadline(run, line, record, instant=record.t + remaining)
        if record.attempt_id is None:
            self._refused(run, line, record)

    def _refused(self, run: Run, line: int, record: CoreRecord) -> None:
        if record.step is not None:
            notes = self._notes(run)
            notes.attempted = notes.attempted or set()
            notes.attempted.add(record.step)

    def _exhausted(self, run: Run, line: int, record: CoreRecord) -> None:
        notes = self._notes(run)
        if record.budget != "retry" and not notes.exhausted_line:
            notes.exhausted_line, notes.exhausted = line, record.budget or "unnamed"

    def _planned(self, run: Run, line: int, record: CoreRecord) -> None:
        notes = self._notes(run)
        notes.plan, notes.plan_line = record.actions, line

    def _deadline(self, run: Run, line: int, record: CoreRecord, *, instant: float) -> None:
        notes = self._notes(run)
        scope = record.scope if record.scope is not None else "root"
        scopes = notes.scopes
        if scopes is None:
            scopes = notes.scopes = {}
        earliest = scopes.get(scope)
        if earliest is None or instant < earliest[0]:
            scopes[scope] = (instant, line)
        elif notes.reset is None and instant > earliest[0] + _RESET_S + TOLERANCE:
            notes.reset = Ruling(
                "deadline-reset",
                (earliest[1], line),
                f"the deadline of scope `{scope}` is {instant - earliest[0]:.3f} s later than at an earlier call",
            )
        if instant <= notes.own_end + TOLERANCE or notes.late_recovering is not None:
            return
        limits = run.limits
        if limits.wall_clock_s is not None and run.start_line > 0:
            end = notes.own_end = run.start_t + limits.wall_clock_s + _grace(run)
            if instant <= end + TOLERANCE:
                return
            ruling = Ruling(
                "deadline-reset",
                (run.start_line, line),
                f"the deadline of scope `{scope}` is {instant - end + _grace(run):.3f} s past the run's own time",
            )
            notes.late = notes.late or ruling
            if instant > end + (limits.recovery_s or 0.0) + TOLERANCE:
                notes.late_recovering = ruling


_NOTHING = _Notes()


def _grace(run: Run) -> float:
    grace = run.limits.grace_s
    return _GRACE_S if grace is None else grace


def _rulings(run: Run, notes: _Notes) -> list[Ruling]:
    limits = run.limits
    rulings: list[Ruling] = []
    if limits.steps is not None and len(run.steps) > limits.steps:
        broken_at = list(run.steps.values())[max(math.floor(limits.steps), 0)]
        message = f"{len(run.steps)} distinct steps where {limits.steps:g} are allowed"
        rulings.append(Ruling("steps", (broken_at,), message))
    if limits.wall_clock_s is not None and run.start_line > 0 and not run.lagged:
        allowed = limits.wall_clock_s + _grace(run) + ((limits.recovery_s or 0.0) if run.recovered else 0.0)
        line, t = (run.end_line, run.end_t) if run.end_line else (run.last_line, run.last_t)
        took = t - run.start_t
        if line and took > allowed + TOLERANCE:
            message = f"the run took {took:.3f} s, {took - allowed:.3f} s more than the {allowed:g} s it had in all"
            rulings.append(Ruling("wall-clock", (run.start_line, line), message))
    if notes.tokens_line:
        message = f"{notes.tokens:g} tokens in the whole run where {limits.tokens:g} are allowed"
        rulings.append(Ruling("tokens", (notes.tokens_line,), message))
    if notes.cost_line:
        message = f"the run cost {notes.cost:g} USD in all where {limits.cost_usd:g} are allowed"
        rulings.append(Ruling("cost", (notes.cost_line,), message))
    if (notes.exhausted_line or notes.plan) and run.end_status == "succeeded":
        truncated = _silent_truncation(run, notes)
        if truncated is not None:
            rulings.append(truncated)
    if notes.scopes is not None and not run.lagged:
        late = notes.late_recovering if run.recovered else notes.late
        resets = [ruling for ruling in (notes.reset, late) if ruling is not None]
        if resets:
            rulings.append(min(resets, key=_by_break))
    return rulings


def _by_break(ruling: Ruling) -> tuple[int, tuple[int, ...]]:
    lines = tuple(sorted(ruling.lines))
    return lines[-1], lines


def _silent_truncation(run: Run, notes: _Notes) -> Ruling | None:
    """Of a run that ended `succeeded`: what it left out without a word."""
    if 0 < notes.exhausted_line < run.end_line:
        return Ruling(
            "silent-truncation",
            (notes.exhausted_line, run.end_line),
            f"the run says it succeeded although its {notes.exhausted} budget was exhausted before",
        )
    used_up = _used_up(run, notes)
    if used_up is None:
        return None
    attempted = {call.step for call in run.calls.values()}.union(notes.attempted or ())
    for action in notes.plan or ():
        if action.tool is not None and action.step is not None and action.step not in attempted:
            return Ruling(
                "silent-truncation",
                (notes.plan_line, run.end_line),
                f"the run says it succeeded, but planned step {action.step} (`{action.tool}`) was neither started "
                f"nor refused, and its {used_up} were used up",
            )
    return None


def _used_up(run: Run, notes: _Notes) -> str | None:
    limits = run.limits
    if limits.steps is not None and len(run.steps) >= limits.steps:
        return "steps"
    if limits.tokens is not None and (notes.tokens or 0) >= limits.tokens - TOLERANCE:
        return "tokens"
    if limits.cost_usd is not None and (notes.cost or 0) >= limits.cost_usd - TOLERANCE:
        return "costs"
    if limits.wall_clock_s is not None and run.start_line > 0:
        took = run.end_t - run.start_t
        if took >= limits.wall_clock_s - TOLERANCE:
            return "seconds"
    return None
