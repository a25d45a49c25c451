"""The judge: one pass over a history, eight invariants, verdicts as soon as they are final."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from invariants.facts import Run, World
from invariants.fold import Fold
from invariants.invariant import Invariant
from invariants.registry import INVARIANTS
from invariants.verdict import Ruling, Standing, Verdict
from traces.codec import HistoryError, MalformedLine
from traces.history import CoreRecord, Limits


class Judge:
    """Judges a history that is fed to it record by record, in file order.

    Verdicts of a run are final once its world has finished, by its `world_finished` record or by `close()`; then
    everything about the world is forgotten, so that memory grows with keys and not with records. `default_limits`
    fills in, field by field, what the limits of a run leave open.

    `faults`: (line, what is wrong and what would be right) for records that stand where they must not; a history
    with faults is bad input and its verdicts are worth nothing. `errors`: invariants that raised, in words. That is
    an error of the harness and never a pass: the runs concerned get no verdict better than `unobservable`.
    """

    def __init__(
        self, *, default_limits: Limits | None = None, invariants: Sequence[type[Invariant]] = INVARIANTS
    ) -> None:
        self._invariants = [invariant(slot) for slot, invariant in enumerate(invariants)]
        self._named = [(invariant.name, invariant) for invariant in self._invariants]
        self._broken: dict[Invariant, str] = {}
        self.errors: list[str] = []
        self._in_order = True
        """Whether runs were ruled on by first appearance so far."""
        self._latest_ruled = -1
        self._fold = Fold(self._invariants, default_limits=default_limits, on_hook_error=self._hook_failed)

    @property
    def faults(self) -> list[tuple[int, str]]:
        """Records that stand where they must not: (line, what is wrong and what would be right)."""
        return self._fold.faults

    @property
    def order(self) -> dict[str, int]:
        """Every run met so far, with its place by first appearance (from 0)."""
        return self._fold.order

    def feed(self, line: int, record: CoreRecord) -> list[Verdict]:
        """Takes the record that stands on `line` (positions only ever rise).

        Gives the verdicts that this record made final: all those of a world on its `world_finished`, else none.
        """
        return self.feed_all(((line, record),))

    def feed_all(self, numbered: Iterable[tuple[int, CoreRecord]]) -> list[Verdict]:
        """Takes many records; gives the verdicts that they made final."""
        verdicts: list[Verdict] = []
        for world in self._fold.feed(numbered):
            verdicts += self._close_world(world)
        return verdicts

    def skip(self, malformed: MalformedLine) -> None:
        """A line could not be decoded: later records of its run are not held against its absence."""
        if malformed.run_id is not None and malformed.record_type == "run_started":
            self._fold.expect(malformed.run_id)

    def close(self) -> list[Verdict]:
        """The history is over: verdicts of every run whose world had not finished."""
        verdicts: list[Verdict] = []
        for world in self._fold.closing():
            verdicts += self._close_world(world)
        return verdicts

    def in_order(self, verdicts: Iterable[Verdict]) -> list[Verdict]:
        """The same verdicts by first appearance of their runs."""
        if self._in_order:
            return list(verdicts)
        order = self._fold.order
        return sorted(verdicts, key=lambda verdict: order[verdict.run_id])

    def _close_world(self, world: World) -> list[Verdict]:
        for invariant in self._invariants:
            if invariant not in self._broken:
                try:
                    invariant.world_closing(world)
                except Exception as error:  # noqa: BLE001 - a checker that raises is a harness error, never a pass
                    self._fail(invariant, f"at the end of world `{world.name}`", error=error)
        verdicts: list[Verdict] = []
        for run in world.runs:
            self._in_order &= run.order > self._latest_ruled
            self._latest_ruled = run.order
            self._rule(run, verdicts)
        world.runs = []  # runs and worlds point at each other: let go of both at once
        return verdicts

    def _rule(self, run: Run, verdicts: list[Verdict]) -> None:
        run_id = run.run_id
        for name, invariant in self._named:
            if self._broken and invariant in self._broken:
                message = f"this checker failed and could not judge the run: {self._broken[invariant]}"
                verdicts.append(Verdict(run_id, name, "unobservable", None, (), message))
                continue
            try:
                outcome = invariant.rule(run)
            except Exception as error:  # noqa: BLE001 - a checker that raises is a harness error, never a pass
                self._fail(invariant, f"ruling on run `{run_id}`", error=error)
                message = f"this checker failed and could not judge the run: {self._broken[invariant]}"
                verdicts.append(Verdict(run_id, name, "unobservable", None, (), message))
                continue
            if isinstance(outcome, Standing):
                verdicts.append(Verdict(run_id, name, outcome.verdict, None, (), outcome.message))
            elif outcome is not None:
                verdicts += _violations(run_id, name, outcome)

    def _hook_failed(self, invariant: Invariant, line: int, error: Exception) -> None:
        self._fail(invariant, f"on line {line}", error=error)

    def _fail(self, invariant: Invariant, where: str, *, error: Exception) -> None:
        if invariant not in self._broken:
            self._broken[invariant] = f"{type(error).__name__}: {error}"
            self.errors.append(f"invariant {invariant.name} failed {where}: {self._broken[invariant]}")
            self._fold.drop(invariant)


def _violations(run_id: str, name: str, rulings: list[Ruling]) -> list[Verdict]:
    found = [
        Verdict(run_id, name, "violated", ruling.reason, tuple(sorted(ruling.lines)), ruling.message)
        for ruling in rulings
    ]
    if len(found) > 1:
        found.sort(key=lambda verdict: (verdict.evidence[-1], verdict.reason))
    return found


def judge_records(records: Iterable[tuple[int, CoreRecord]]) -> list[Verdict]:
    """All verdicts of a whole history of (line, record), in file order: by first appearance of the runs.

    Raises HistoryError where a record stands where it must not (contract section 3) and RuntimeError where an
    invariant failed.
    """
    judge = Judge()
    verdicts = judge.feed_all(records)
    verdicts += judge.close()
    if judge.faults:
        raise HistoryError(judge.faults)
    if judge.errors:
        raise RuntimeError("; ".join(judge.errors))
    return judge.in_order(verdicts)
