"""Naive rules 3 and 6: `no-dangling-effect` and `reverse-compensation`."""

from __future__ import annotations

from tests.oracle.reading import Effect, History, Line
from tests.oracle.ruling import Opinion


def no_dangling_effect(history: History, run: str) -> Opinion:
    """3. `no-dangling-effect`."""
    own = [e for e in history.forward if e.run == run]
    # "Unobservable: an open call. Vacuous: no forward effect."
    opinion = Opinion(unobservable=bool(history.open_calls(run)), vacuous=not own)
    end = history.last_finish(run)
    for effect in own:
        # "Otherwise `unsettled` (proof: effect and end, broken by the later), or `unfinished` (broken by the
        # effect) where its run never finished."
        if not _settled(history, effect):
            if end is not None:
                opinion.told("unsettled", effect.at, end.number)
            else:
                opinion.told("unfinished", effect.at)
        # "`effect_settled: compensated` for a ground-truth effect that no compensating effect names:
        # `false-claim` (proof: effect and settlement, broken by the later)."
        if not effect.claimed and not history.undone_by(effect):
            for claim in _settlements(history, effect):
                if claim.record.disposition == "compensated":
                    opinion.told("false-claim", effect.at, claim.number)
    return opinion


def _settlements(history: History, effect: Effect) -> list[Line]:
    """The `effect_settled` "of its run and step"; "without step nothing matches by step"."""
    return [
        x
        for x in history.of(effect.run, "effect_settled")
        if effect.step is not None and x.record.step == effect.step
    ]


def _settled(history: History, effect: Effect) -> bool:
    """ "At the end every forward effect is settled"."""
    # "by a compensating effect for it, wherever it stands"
    if history.undone_by(effect):
        return True
    # "by an `effect_settled` of its run and step: `manual` and `uncompensatable` wherever they stand,
    # `compensated` and `kept` only after it (`kept` not in a run that ended `rolled_back`)"
    for line in _settlements(history, effect):
        how = line.record.disposition
        if how in ("manual", "uncompensatable"):
            return True
        if how == "compensated" and line.number > effect.at:
            return True
        if how == "kept" and line.number > effect.at and history.status(effect.run) != "rolled_back":
            return True
    # "for a claimed-only one also by a later `compensation_finished` `ok` of its step"
    if effect.claimed and _undoing_finishes(history, effect):
        return True
    # "or by its run's end, if the effect stands before it: `succeeded` keeps all, `partial_success` keeps
    # those whose step is among `completed`"
    end = history.last_finish(effect.run)
    if end is None or effect.at > end.number:
        return False
    if end.record.status == "succeeded":
        return True
    return (
        end.record.status == "partial_success"
        and effect.step is not None
        and effect.step in history.completed(effect.run)
    )


def _undoing_finishes(history: History, effect: Effect) -> list[Line]:
    """The later `compensation_finished` `ok` of a claimed-only effect's step."""
    return [
        x
        for x in history.of(effect.run, "compensation_finished")
        if x.number > effect.at
        and x.record.outcome == "ok"
        and effect.step is not None
        and x.record.step == effect.step
    ]


def _compensation(history: History, effect: Effect) -> tuple[int, int] | None:
    """Start and finish of the compensation of an effect; None where it was not compensated."""
    # "For ground truth the first compensating effect is start and finish"
    if not effect.claimed:
        undone = history.undone_by(effect)
        return (undone[0].number, undone[0].number) if undone else None
    # "for a claimed-only effect the first `compensation_finished` `ok` of its step after it is the finish, and
    # the last `compensation_started` of that step before that, else the finish itself, is the start"
    finishes = _undoing_finishes(history, effect)
    if not finishes:
        return None
    finish = finishes[0].number
    starts = [
        x.number
        for x in history.of(effect.run, "compensation_started")
        if x.number < finish and x.record.step == effect.step
    ]
    return (starts[-1] if starts else finish, finish)


def reverse_compensation(history: History, run: str) -> Opinion:
    """6. `reverse-compensation`."""
    own = [e for e in history.forward if e.run == run]
    undone = [(e, c) for e in own if (c := _compensation(history, e)) is not None]
    # "Vacuous: fewer than two compensated effects."
    opinion = Opinion(vacuous=len(undone) < 2)
    for a, (a_start, a_finish) in undone:
        for b, (_, b_finish) in undone:
            # "Then B's compensation is finished before A's starts: else `out-of-order` (proof: the start of A's
            # and the finish of B's compensation)"; "effects undone by the same compensation are not compared"
            if a is not b and _came_before(a, b) and a_finish != b_finish and not b_finish < a_start:
                opinion.told("out-of-order", a_start, b_finish)
    _forward_during_compensation(history, run, own, opinion)
    return opinion


def _came_before(a: Effect, b: Effect) -> bool:
    """ "Forward effect A of a run came before B when A's call was finished before B's was started (where A's
    finish or B's start is not on record: when A stands before B)."""
    if a.finished is None or b.started is None:
        return a.at < b.at
    return a.finished < b.started


def _forward_during_compensation(history: History, run: str, own: list[Effect], opinion: Opinion) -> None:
    """ "A forward effect whose call was started (without a start on record: that stands) after the run's first
    compensation began ..., if the run ended `rolled_back` or a `compensation_started` of the run before that
    start has no later `compensation_finished` of its step before that start"."""
    starts = list(history.of(run, "compensation_started"))
    # "its first `compensation_started`, or the first compensating effect, of whatever run, for a forward effect
    # of this run"
    beginnings = [x.number for x in starts] + [x.number for e in own for x in history.undone_by(e)]
    if not beginnings:
        return
    beginning = min(beginnings)
    for effect in own:
        begun = effect.start_or_stand
        unfinished = any(
            undo.number < begun
            and not any(
                # "In the windows ... of `forward-during-compensation` two records without step match"
                undo.number < done.number < begun and done.record.step == undo.record.step
                for done in history.of(run, "compensation_finished")
            )
            for undo in starts
        )
        if begun > beginning and (history.status(run) == "rolled_back" or unfinished):
            opinion.told("forward-during-compensation", beginning, effect.at)
