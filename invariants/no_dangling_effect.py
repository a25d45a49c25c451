"""no-dangling-effect: at the end nobody wonders about any effect (contract section 4.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from invariants.facts import Forward, Run
from invariants.invariant import Hook, Invariant
from invariants.verdict import Outcome, Ruling, Standing
from traces.history import CoreRecord

_HELD = Standing("held", "every effect was kept, undone or handed over")
_VACUOUS = Standing("vacuous", "the run had no forward effect")
_UNOBSERVABLE = Standing("unobservable", "an effectful call that only the agent tells of ended unknown")


class _Settlement(msgspec.Struct, eq=False, gc=False):
    """What the agent said of one step: lines of its `effect_settled` records, and whether a person has it."""

    first_compensated: int = 0
    last_compensated: int = 0
    last_kept: int = 0
    handed_over: bool = False


_NOTHING_SAID = _Settlement()


class NoDanglingEffect(Invariant):
    """Asks of each forward effect what settles it."""

    name: ClassVar[str] = "no-dangling-effect"

    def hooks(self) -> Mapping[str, Hook]:
        return {"effect_settled": self._settled}

    def rule(self, run: Run) -> Outcome:
        said: dict[int, _Settlement] = run.notes[self._slot] or {}
        if run.forwards and (said or not _keeps_all(run)):
            unsettled: Ruling | None = None
            false_claim: Ruling | None = None
            for forward in run.forwards:
                words = said.get(forward.step, _NOTHING_SAID) if forward.step is not None else _NOTHING_SAID
                if not _is_settled(run, forward, words):
                    unsettled = _earlier(unsettled, _unsettled(run, forward))
                if words.first_compensated and not forward.claimed and not _is_undone(run, forward):
                    false_claim = _earlier(false_claim, _false_claim(forward, words.first_compensated))
            if rulings := [ruling for ruling in (unsettled, false_claim) if ruling is not None]:
                return rulings
        if run.open_calls:
            return _UNOBSERVABLE
        return _HELD if run.forwards else _VACUOUS

    def _settled(self, run: Run, line: int, record: CoreRecord) -> None:
        step = record.step
        if step is None:
            return
        said: dict[int, _Settlement] | None = run.notes[self._slot]
        if said is None:
            said = run.notes[self._slot] = {}
        words = said.get(step)
        if words is None:
            words = said[step] = _Settlement()
        disposition = record.disposition
        if disposition == "compensated":
            words.first_compensated = words.first_compensated or line
            words.last_compensated = line
        elif disposition == "kept":
            words.last_kept = line
        elif disposition == "manual" or disposition == "uncompensatable":
            words.handed_over = True


def _keeps_all(run: Run) -> bool:
    """Whether the run ended well after its last forward effect, which settles them all."""
    return run.end_status == "succeeded" and run.forwards[-1].line < run.end_line


def _is_undone(run: Run, forward: Forward) -> bool:
    return forward.effect_id is not None and forward.effect_id in run.world.undone


def _is_settled(run: Run, forward: Forward, words: _Settlement) -> bool:
    line, step = forward.line, forward.step
    if words.handed_over or words.last_compensated > line or _is_undone(run, forward):
        return True
    status = run.end_status if run.end_line else None
    if words.last_kept > line and status != "rolled_back":
        return True
    if line < run.end_line:
        if status == "succeeded":
            return True
        reported = step in (run.completed or ()) or step in (run.end_completed or ())
        if status == "partial_success" and step is not None and reported:
            return True
    if forward.claimed and step is not None and run.undo_ends is not None:
        return any(finished > line for finished in run.undo_ends.get(step, ()))
    return False


def _unsettled(run: Run, forward: Forward) -> Ruling:
    what = f"{forward.describe()} took effect and nothing settles it"
    if not run.end_line:
        return Ruling("unfinished", (forward.line,), f"{what}; the run never finished")
    if forward.line > run.end_line:
        return Ruling("unsettled", (run.end_line, forward.line), f"{what}: it came after the run's end")
    message = f"{what}: the run ended {run.end_status or 'without a status'} without undoing or reporting it"
    return Ruling("unsettled", (forward.line, run.end_line), message)


def _false_claim(forward: Forward, settled: int) -> Ruling:
    message = f"{forward.describe()} was reported as compensated, but the service undid nothing"
    return Ruling("false-claim", (forward.line, settled), message)


def _earlier(known: Ruling | None, found: Ruling) -> Ruling:
    """The proof with the smaller breaking line, then with the smaller lines."""
    if known is None:
        return found
    return min(known, found, key=lambda ruling: (max(ruling.lines), sorted(ruling.lines)))
