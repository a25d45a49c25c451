"""Circuit breakers: opening after the threshold, probing after the cool-down."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from reports.mechanisms.view import Observation, View

DEFAULT_THRESHOLD = 5
"""Failures in a row after which a breaker should open where the agent never states its threshold."""


def breaker_open(view: View) -> Iterator[Observation]:
    """One tool failed as often in a row as the threshold says; it acts by a change to `open`.

    A breaker may also open by what other runs of the world met: an opportunity where so many failures are on record.
    One that opened earlier, by a rule of its own, says nothing of whether it opens when it has to.
    """
    opened: dict[str | None, list[int]] = defaultdict(list)
    threshold: dict[str | None, float] = {}
    for line, record in view.of_type("breaker_state_changed"):
        if record.to == "open":
            opened[record.tool].append(line)
        if record.threshold is not None:
            threshold.setdefault(record.tool, record.threshold)
    stated = min(threshold.values(), default=float(DEFAULT_THRESHOLD))
    taken: set[int] = set()
    for tool in {attempt.tool for attempt in view.attempts}:
        needed, row = threshold.get(tool, stated), 0
        for attempt in sorted(view.attempts, key=lambda a: a.end_line or 0):
            if attempt.tool != tool or attempt.finish is None or attempt.end_line is None:
                continue
            end = attempt.end_line
            failed = attempt.retryable or attempt.outcome in {"error", "timeout", "unknown"}
            row = row + 1 if failed else 0
            if row >= needed:
                following = min((a.line for a in view.attempts if a.tool == tool and a.line > end), default=None)
                fit = [at for at in opened[tool] if at > end and (following is None or at < following)]
                taken.update(fit)
                # Late failures of old calls are innocent.
                if fit or not view.breaker_is_open(tool, end):
                    yield view.observe("breaker_open", bool(fit), end, tool=tool)
                row = 0
    for opened_tool, lines in opened.items():
        needed = threshold.get(opened_tool, stated)
        for line in lines:
            if line not in taken and _failures_of_all(view, opened_tool, line) >= needed:
                yield view.observe("breaker_open", True, line, tool=opened_tool)


def breaker_probe(view: View) -> Iterator[Observation]:
    """An open breaker let calls through again; it acts by `half_open` and no more calls than are allowed."""
    allowed = max(1, int(view.limits.half_open_probes or 0))
    changes = list(view.of_type("breaker_state_changed"))
    for at, (line, change) in enumerate(changes):
        if change.from_ != "open" or change.to not in {"half_open", "closed"}:
            continue
        following = (n for n, other in changes[at + 1 :] if other.tool == change.tool)
        until = next(following, view.own[-1][0] + 1)
        probes = sum(1 for a in view.attempts if a.tool == change.tool and line < a.line < until)
        acted = change.to == "half_open" and probes <= allowed
        yield view.observe("breaker_probe", acted, line, tool=change.tool)


def _failures_of_all(view: View, tool: str | None, line: int) -> int:
    """How many calls of a tool have failed before this line in all runs of the world."""
    finished = (r for at, r in view.world.records if at < line and r.type == "tool_call_finished" and r.tool == tool)
    return sum(record.outcome in {"error", "timeout", "unknown"} for record in finished)
