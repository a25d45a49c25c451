"""Continue or undo: pure functions of what was done and what failed.

Reads may fail and the work goes on, told so. After a failed write no further write starts silently: the model may
repair that very write while repairs are left, and anything else ends the forward way. What then becomes of the
effects that stand depends on how much what is missing matters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents.reference.errors import Failure
from agents.reference.ledger import Action
from agents.reference.paths import MISSING, find, put
from agents.reference.tools import Compensation, Tool

ToolOf = Callable[[str], Tool]

_FAILED = ("failed", "refused", "uncertain")
_DOUBTFUL = ("pending", "uncertain")


@dataclass(frozen=True, slots=True)
class Stop:
    """Why the run left the forward way. `step` is the write it was about to make, where that is what stopped it;
    otherwise the rest of the work is unknown. `budget` is the hard budget that ran out, if one did."""

    failure: Failure
    step: int | None = None
    budget: str | None = None


def strict_reverse(actions: Sequence[Action]) -> Sequence[Action]:
    """The last effect first."""
    return sorted(actions, key=lambda action: action.step, reverse=True)


def missing(actions: Sequence[Action], tool_of: ToolOf) -> list[Action]:
    """Writes that were asked for and did not come about; a later success of the same tool makes up for one."""
    left: list[Action] = []
    for action in actions:
        if action.state == "succeeded":
            made_up = next((other for other in left if other.tool == action.tool), None)
            if made_up is not None:
                left.remove(made_up)
        elif action.state in (*_FAILED, "skipped") and tool_of(action.tool).effectful and _known(action):
            left.append(action)
    return left


def may_start(action: Action, actions: Sequence[Action], tool_of: ToolOf) -> bool:
    """Whether a planned call may be made beside writes that failed before: reads, and the repair of that write."""
    if not tool_of(action.tool).effectful:
        return True
    earlier = [other for other in actions if other.step < action.step]
    if any(
        other.turn == action.turn and other.state in _FAILED and tool_of(other.tool).effectful for other in earlier
    ):
        return False
    return all(other.tool == action.tool for other in missing(earlier, tool_of) if other.state in _FAILED)


def held_up(actions: Sequence[Action], turn: int, tool_of: ToolOf) -> Stop | None:
    """A stop where the turn wanted a write beside one that had failed in an earlier turn and still has."""
    held = [action for action in actions if action.turn == turn and action.state == "skipped"]
    failed = [action for action in missing(actions, tool_of) if action.turn < turn and action.state in _FAILED]
    if not held or not failed or failed[0].failure is None:
        return None
    return Stop(failed[0].failure, held[0].step)


def ends_the_run(action: Action, tool: Tool, *, repairs_left: int) -> bool:
    """Whether a step that just ended leaves no way forward."""
    failure = action.failure
    if action.state not in _FAILED or failure is None:
        return False
    if failure.kind == "budget_exhausted":
        return True
    if failure.kind == "self_repair_exhausted":
        return tool.effectful
    if not tool.effectful or failure.kind == "confirmation_needed":
        return False
    if action.state == "uncertain":
        return True
    return tool.grave and not (failure.rejected and repairs_left > 0)


@dataclass(frozen=True, slots=True)
class Ending:
    """What becomes of the run: `succeed`, `keep_part`, `fail` (nothing stands) or `undo`, and why."""

    way: str
    failure: Failure | None = None


def conclude(actions: Sequence[Action], tool_of: ToolOf, stop: Stop | None) -> Ending:
    """Pure: what becomes of the effects that stand.

    A missing or doubtful grave write makes the others pointless: undo. A minor one does not: keep the rest, say so.
    Where the forward way broke off with the rest of the work unknown, undo as well, unless an effect stands that can
    neither be undone nor repeated: past that point the rest is kept and said to be unfinished.
    """
    lacking = missing(actions, tool_of)
    doubtful = in_doubt(actions, tool_of)
    standing = standing_effects(actions, tool_of)
    failure = stop.failure if stop else next((action.failure for action in lacking if action.failure), None)
    if not lacking and not doubtful and failure is None:
        return Ending("succeed")
    failure = failure or Failure("incomplete", "not all that was planned came about")
    if not standing:
        return Ending("undo" if doubtful else "fail", failure)
    if any(tool_of(action.tool).grave for action in [*lacking, *doubtful]):
        return Ending("undo", failure)
    past_return = any(_final(tool_of(action.tool)) for action in standing)
    if stop is not None and stop.step is None and not past_return:
        return Ending("undo", failure)
    return Ending("keep_part", failure)


def in_doubt(actions: Sequence[Action], tool_of: ToolOf) -> list[Action]:
    """Writes that may have taken effect."""
    return [action for action in actions if action.state in _DOUBTFUL and tool_of(action.tool).effectful]


def standing_effects(actions: Sequence[Action], tool_of: ToolOf) -> list[Action]:
    """Effects that were made and neither undone by the model's own calls nor themselves such an undoing."""
    undone = undone_by_plan(actions, tool_of)
    undoing = set(undone.values())
    return [
        action
        for action in actions
        if action.state == "succeeded"
        and tool_of(action.tool).effectful
        and action.step not in undone
        and action.step not in undoing
    ]


def undone_by_plan(
    actions: Sequence[Action], tool_of: ToolOf, *, states: Sequence[str] = ("succeeded",)
) -> dict[int, int]:
    """Steps that the model itself had undone, with the step that undid each: its arguments name the effect."""
    undone: dict[int, int] = {}
    for later in actions:
        if later.state not in states:
            continue
        for earlier in actions:
            way = tool_of(earlier.tool).compensation
            if (
                earlier.step < later.step
                and earlier.state == "succeeded"
                and earlier.step not in undone
                and way is not None
                and way.tool == later.tool
                and _names(later, way, earlier)
            ):
                undone[earlier.step] = later.step
                break
    return undone


def undoing_arguments(action: Action, way: Compensation, undoing: Tool) -> dict[str, Any] | None:
    """The arguments that undo an effect: its name, and whatever else the tool requires that the forward call had.

    `None` where something required is not to be had.
    """
    required = list((undoing.schema or {}).get("required") or ())
    arguments = {name: action.arguments[name] for name in required if name in action.arguments}
    if way.argument is not None and way.result is not None:
        named = find(action.result, way.result)
        if named is MISSING:
            return None
        arguments = put(arguments, way.argument, named)
    return arguments if all(name in arguments for name in required) else None


def undoing_tool(tool: Tool) -> Tool:
    """A call that undoes something always has an effect, and so a key, whatever the registry says of it alone."""
    return tool if tool.effectful else replace(tool, severity="internal")


def _names(later: Action, way: Compensation, earlier: Action) -> bool:
    if way.argument is None or way.result is None:
        return False
    named = find(earlier.result, way.result)
    return named is not MISSING and find(later.arguments, way.argument) == named


def _final(tool: Tool) -> bool:
    return tool.idempotency == "irreversible" and (tool.compensation is None or tool.compensation.strength == "none")


def _known(action: Action) -> bool:
    """A call of a tool that does not exist asked for nothing that could be missing."""
    return action.failure is None or action.failure.kind != "unknown_tool"
