"""reverse-compensation: what was done first is undone last (contract section 4.6)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import ClassVar

import msgspec

from invariants.facts import Forward, Run
from invariants.invariant import Invariant
from invariants.verdict import Outcome, Ruling, Standing

_HELD = Standing("held", "effects were undone in reverse order")
_VACUOUS = Standing("vacuous", "fewer than two effects of the run were undone")


class _Undone(msgspec.Struct, eq=False, gc=False):
    """A compensated forward effect: the lines where its undoing starts and is finished.

    `begun` and `done` are those of its own call, 0 where not on record.
    """

    forward: Forward
    starts: int
    finished: int
    begun: int
    done: int


class ReverseCompensation(Invariant):
    """Compares, once all is known, the order of doing with the order of undoing."""

    name: ClassVar[str] = "reverse-compensation"

    def rule(self, run: Run) -> Outcome:
        if not run.undo_began and run.undo_ends is None and not run.world.undone:
            return _VACUOUS  # nobody undid anything: by far the most common case
        undone = [found for forward in run.forwards if (found := _undoing(run, forward)) is not None]
        rulings = [
            ruling
            for ruling in (_out_of_order(undone), _forward_during_compensation(run, undone))
            if ruling is not None
        ]
        if rulings:
            return rulings
        return _HELD if len(undone) > 1 else _VACUOUS


def _undoing(run: Run, forward: Forward) -> _Undone | None:
    if not forward.claimed:
        starts = finished = run.world.undone.get(forward.effect_id, 0) if forward.effect_id is not None else 0
    elif forward.step is not None and run.undo_ends is not None:
        ends = run.undo_ends.get(forward.step, ())
        finished = next((line for line in ends if line > forward.line), 0)
        begun = (run.undo_starts or {}).get(forward.step, ())
        starts = max((line for line in begun if line < finished), default=finished)
    else:
        finished = 0
    if not finished:
        return None
    call = forward.call
    return _Undone(forward, starts, finished, call.started if call else 0, call.finished if call else 0)


class _EarliestStarts:
    """Effects ordered by a line, and for each prefix of them the undoing that starts first.

    Two are kept, of different compensations, because effects undone by the same one are not compared.
    """

    def __init__(self, effects: Iterable[tuple[int, _Undone]]) -> None:
        self._lines: list[int] = []
        self._best: list[tuple[_Undone, ...]] = [()]
        for line, undone in sorted(effects, key=lambda pair: pair[0]):
            best: list[_Undone] = []
            for candidate in sorted((*self._best[-1], undone), key=lambda found: found.starts):
                if all(candidate.finished != kept.finished for kept in best):
                    best.append(candidate)
            self._lines.append(line)
            self._best.append(tuple(best[:2]))

    def before(self, line: int, *, other_than: int) -> _Undone | None:
        """The undoing that starts first among effects below `line`, not finished by the record `other_than`."""
        for undone in self._best[bisect_left(self._lines, line)]:
            if undone.finished != other_than:
                return undone
        return None


def _plainly_reversed(undone: list[_Undone]) -> bool:
    """Whether nothing that began later was undone later, which settles the most common case at once."""
    latest = 0
    for effect in sorted(undone, key=_begun, reverse=True):
        if not effect.begun or not effect.done or effect.starts < latest:
            return False
        latest = max(latest, effect.finished)
    return True


def _begun(effect: _Undone) -> int:
    return effect.begun


def _out_of_order(undone: list[_Undone]) -> Ruling | None:
    """The first undoing that finished after the undoing of something done before it had begun."""
    if len(undone) < 2 or _plainly_reversed(undone):
        return None
    by_finish = _EarliestStarts((u.done, u) for u in undone if u.done)
    without_finish = _EarliestStarts((u.forward.line, u) for u in undone if not u.done)
    by_line = _EarliestStarts((u.forward.line, u) for u in undone) if any(not u.begun for u in undone) else by_finish
    worst: tuple[int, int] | None = None
    pair: tuple[_Undone, _Undone] | None = None
    for later in undone:
        line = later.forward.line
        if later.begun:
            candidates = [
                by_finish.before(later.begun, other_than=later.finished),
                without_finish.before(line, other_than=later.finished),
            ]
        else:
            candidates = [by_line.before(line, other_than=later.finished)]
        for earlier in candidates:
            if earlier is not None and earlier.starts < later.finished:
                proof = (later.finished, earlier.starts)
                if worst is None or proof < worst:
                    worst, pair = proof, (earlier, later)
    if worst is None or pair is None:
        return None
    earlier, later = pair
    return Ruling(
        "out-of-order",
        (earlier.starts, later.finished),
        f"{earlier.forward.describe()} was done before {later.forward.describe()}, but undoing it began before the "
        f"later one was undone",
    )


def _forward_during_compensation(run: Run, undone: list[_Undone]) -> Ruling | None:
    beginnings = [found.finished for found in undone if not found.forward.claimed]
    if run.undo_began:
        beginnings.append(run.undo_began)
    if not beginnings:
        return None
    began = min(beginnings)
    rolled_back = run.end_line > 0 and run.end_status == "rolled_back"
    found = [f.line for f in run.forwards if f.position > began and (rolled_back or f.during_undoing)]
    if not found:
        return None
    first = min(found, key=lambda line: (max(line, began), min(line, began)))
    forward = next(f for f in run.forwards if f.line == first)
    return Ruling(
        "forward-during-compensation",
        (began, first),
        f"{forward.describe()} was started when the run had begun to undo",
    )
