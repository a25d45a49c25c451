"""Carrying the deadline along, and not starting what cannot end in time."""

from __future__ import annotations

from collections.abc import Iterator

from reports.mechanisms.attempts import DEADLINE_TOLERANCE_S, source_of
from reports.mechanisms.view import Observation, View
from traces.history import Record

_OTHER_BUDGETS = frozenset({"steps", "tokens", "cost", "retry"})


def deadline_propagation(view: View) -> Iterator[Observation]:
    """A tool call on the wire; it acts by carrying the time that is left, which only falls within its scope."""
    earliest: dict[str, float] = {}
    for attempt in view.attempts:
        start = attempt.start
        left = start.deadline_remaining_s
        falls = False
        if left is not None:
            scope = start.scope or "root"
            falls = start.t + left <= earliest.get(scope, float("inf")) + DEADLINE_TOLERANCE_S
            earliest[scope] = min(start.t + left, earliest.get(scope, float("inf")))
        if start.wire is not None or source_of(start) == "wire":
            yield view.observe("deadline_propagation", falls, attempt.line, tool=attempt.tool)


def deadline_stop(view: View) -> Iterator[Observation]:
    """Less time is left than a planned call needs (its declared p99); it acts by refusing for the budget."""
    for attempt in view.attempts:
        need, left = view.need_s(attempt.tool), view.left_s(attempt.start.t)
        if attempt.start.deadline_remaining_s is not None:
            left = min(left, attempt.start.deadline_remaining_s)
        if need is not None and left < need:
            yield view.observe("deadline_stop", False, attempt.line, tool=attempt.tool)
    for line, record in view.of_type("tool_call_refused"):
        if record.reason == "budget" and not _for_another_budget(view, line, record):
            yield view.observe("deadline_stop", True, line, tool=record.tool)


def _for_another_budget(view: View, line: int, refused: Record) -> bool:
    """Whether a refusal is explained by a budget other than time that ran out in the same step."""
    need = view.need_s(refused.tool)
    if need is not None and view.left_s(refused.t) < need:
        return False
    return any(
        record.budget in _OTHER_BUDGETS and (record.step == refused.step or record.step is None or at < line)
        for at, record in view.of_type("budget_exhausted")
    )
