"""Sharing with others: queueing above a limit, and taking turns between tenants."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from reports.mechanisms.attempts import Attempt
from reports.mechanisms.view import Observation, View


def concurrency_limit(view: View) -> Iterator[Observation]:
    """One message of the model wants more calls than may run at once; it acts by letting the rest wait."""
    total = view.limits.max_concurrency
    groups = view.limits.group_concurrency or {}
    if total is None and not groups:
        return
    turns: dict[int | None, list[tuple[int, str]]] = defaultdict(list)
    for line, call in view.of_type("model_tool_call"):
        if call.complete is not False:
            turns[call.step].append((line, call.tool or ""))
    starts = sorted({calls[0][0] for calls in turns.values()})
    for calls in turns.values():
        first = calls[0][0]
        until = next((other for other in starts if other > first), view.own[-1][0] + 1)
        mine = [a for a in view.attempts if first < a.line < until and not view.is_undo(a)]
        if total is not None and len(calls) > total:
            yield view.observe("concurrency_limit", _kept(view, mine, total, (first, until)), first)
            continue
        for group, limit in groups.items():
            wanted = [line for line, tool in calls if _group(view, tool) == group]
            if limit is not None and len(wanted) > limit:
                inside = [a for a in mine if (a.start.resource_group or _group(view, a.tool)) == group]
                yield view.observe("concurrency_limit", _kept(view, inside, limit, (first, until)), first)


def tenant_fairness(view: View) -> Iterator[Observation]:
    """A call waits while another tenant's call, queued later in the same group, could go first.

    It acts if the call starts within the declared bound, or, where none is declared, after at most one start of
    each other tenant that had queued later.
    """
    queued: dict[str, tuple[int, float, str, str | None]] = {}
    begun: dict[str, tuple[int, float]] = {}
    run_of: dict[str, str] = {}
    for line, record in view.world.records:
        if record.attempt_id is None:
            continue
        who = f"{record.run_id}\0{record.attempt_id}"
        if record.type == "tool_call_queued" and who not in queued:
            queued[who] = (line, record.t, view.world.tenant_of(record), record.resource_group)
            run_of[who] = record.run_id
        elif record.type in {"tool_call_started", "tool_call_refused"} and who in queued and who not in begun:
            begun[who] = (line, record.t)
    bound = view.limits.max_tenant_wait_s
    for who, (line, since, tenant, group) in queued.items():
        if run_of[who] != view.run_id:
            continue
        start = begun.get(who)
        others = [
            (other_tenant, begun.get(other))
            for other, (other_line, _, other_tenant, other_group) in queued.items()
            if other_tenant != tenant
            and other_group == group
            and other_line > line
            and (start is None or other_line < start[0])
        ]
        if not others:
            continue
        overtaken: dict[str, int] = defaultdict(int)
        for other_tenant, other_start in others:
            if other_start is not None and (start is None or other_start[0] < start[0]):
                overtaken[other_tenant] += 1
        if bound is not None:
            fair = not overtaken or (start is not None and start[1] - since <= bound)
        else:
            fair = start is not None and all(count <= 1 for count in overtaken.values())
        yield view.observe("tenant_fairness", fair and start is not None, line)


def _peak(attempts: list[Attempt]) -> int:
    """The most calls that were in flight at once."""
    return max(
        (sum(1 for b in attempts if b.line <= a.line and (b.end_line or a.line + 1) > a.line) for a in attempts),
        default=0,
    )


def _kept(view: View, attempts: list[Attempt], limit: float, between: tuple[int, int]) -> bool:
    """Whether calls kept to a limit by waiting: queued by the agent's own word, or in turns on the wire."""
    first, until = between
    said = any(first < line < until for line, _ in view.of_type("tool_call_queued"))
    peak = _peak(attempts)
    return bool(attempts) and peak <= limit and (said or len(attempts) > peak)


def _group(view: View, tool: str) -> str | None:
    declared = view.tool(tool)
    return declared.resource_group if declared else None
