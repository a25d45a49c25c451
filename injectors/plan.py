"""The plan of a run: which faults act at a moment. Pure; the execution index in the moment is all that counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from injectors.core import Action, Aftermath, Fault, Moment, Place, Point, Site


@dataclass(frozen=True, slots=True)
class Decision:
    """One fault and what it wants done."""

    fault: Fault
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The faults of a run. Order counts only between faults that may share a point."""

    faults: tuple[Fault, ...] = ()

    def armed(self, place: Place) -> tuple[Fault, ...]:
        """The faults whose range this attempt is in, at whatever point."""
        return tuple(fault for fault in self.faults if fault.covers(place))

    def decide(self, moment: Moment) -> tuple[Decision, ...]:
        """What happens at this moment: first the faults that let the attempt go on, then at most one other.

        A fault that finds no hold in the moment is left out; it has not fired then.
        """
        decisions = [Decision(fault, actions) for fault in self.armed(moment.place) if (actions := fault.act(moment))]
        sharing = [decision for decision in decisions if decision.fault.shares_its_point]
        alone = [decision for decision in decisions if not decision.fault.shares_its_point]
        return (*sharing, *alone[:1])


def shadows(faults: Sequence[Fault], groups: Mapping[str, str] | None = None) -> list[str]:
    """Why faults of one scenario cannot stand together: one sentence for each pair of which one hides the other.

    `groups` maps tools to their resource groups; with it a fault on a group is compared with faults on its tools
    where the numbers of their calls are sure to meet.
    """
    found = []
    for position, first in enumerate(faults):
        for second in faults[position + 1 :]:
            if not _meet(first, second, groups or {}):
                continue
            if reason := _hidden(first, second) or _hidden(second, first):
                found.append(reason)
    return found


def _hidden(first: Fault, second: Fault) -> str | None:
    pair = f"`{first.kind}` at {first.at} and `{second.kind}` at {second.at}"
    if first.strikes_at is second.strikes_at:
        if first.shares_its_point or second.shares_its_point:
            return None
        return f"{pair} strike at the same point ({first.strikes_at.word}) of the same attempt; only one can act"
    if second.strikes_at not in _unreached(first):
        return None
    return (
        f"{pair} shadow each other: after `{first.kind}` the attempt never gets to "
        f"{second.strikes_at.word}, where `{second.kind}` would act"
    )


def _unreached(fault: Fault) -> frozenset[Point]:
    if fault.aftermath is Aftermath.GOES_ON:
        return frozenset()
    if fault.aftermath is Aftermath.IS_ANSWERED:
        return frozenset({Point.AFTER_EFFECT})
    return frozenset(point for point in Point if point > fault.strikes_at)


def _meet(first: Fault, second: Fault, groups: Mapping[str, str]) -> bool:
    return _same_calls(first.at, second.at, groups) and _same_attempts(first, second)


def _same_attempts(first: Fault, second: Fault) -> bool:
    early, late = sorted((first, second), key=lambda fault: fault.at.attempt)
    return early.times is None or late.at.attempt < early.at.attempt + early.times


def _same_calls(first: Site, second: Site, groups: Mapping[str, str]) -> bool:
    if first.channel != second.channel:
        return False
    if (first.tool, first.group) != (second.tool, second.group):
        tool, group = (first.tool, second.group) if first.tool else (second.tool, first.group)
        if not tool or not group or groups.get(tool) != group:
            return False
        alone = [name for name in groups if groups[name] == group] == [tool]
        # In a group of several tools a number means another call than it means for one of them.
        return None in (first.call, second.call) or (alone and first.call == second.call)
    return None in (first.call, second.call) or first.call == second.call
