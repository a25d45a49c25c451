"""Naive rules 2 and 7: `budgets` and `bounded-concurrency`."""

from __future__ import annotations

from itertools import accumulate

from tests.oracle.reading import IGNORED, Call, History, Line
from tests.oracle.ruling import TOLERANCE, Opinion, exceeds
from traces.history import Limits

DEADLINE_SLACK_S = 0.25
DEFAULT_GRACE_S = 0.5


def budgets(history: History, run: str) -> Opinion:
    """2. `budgets`."""
    opinion = Opinion()
    limits = history.limits(run)
    records = [x for x in history.of(run) if x.kind != IGNORED]
    carried = [x for x in history.of(run, "tool_call_started") if x.record.deadline_remaining_s is not None]
    # "Distinct `step` values in its records of source agent or wire > steps: `steps`."
    if limits.steps is not None:
        stepped = [x for x in records if x.source in ("agent", "wire") and x.record.step is not None]
        for i, line in enumerate(stepped):
            if len({x.record.step for x in stepped[: i + 1]}) > limits.steps:
                opinion.told("steps", line.number)
    # "Sum of input and output tokens > tokens: `tokens`. Sum of cost_usd > cost_usd: `cost`."
    for reason, limit, carriers in (
        ("tokens", limits.tokens, [(x, _tokens(x)) for x in records]),
        ("cost", limits.cost_usd, [(x, x.record.cost_usd) for x in records]),
    ):
        spent = [(x, amount) for x, amount in carriers if amount is not None]
        for (line, _), total in zip(spent, accumulate(amount for _, amount in spent), strict=True):
            if limit is not None and exceeds(total, limit):
                opinion.told(reason, line.number)
        # "Unobservable too: tokens (cost_usd) limited and no record of the run carries any tokens (cost_usd)."
        opinion.unobservable |= limit is not None and not spent
    _silent_truncation(history, run, opinion)
    # "With `harness_lag` max_s > 0.25 `wall-clock` and `deadline-reset` are not given, and a run with
    # wall_clock_s or a deadline carried is unobservable at best."
    if history.lagged(run):
        opinion.unobservable |= limits.wall_clock_s is not None or bool(carried)
    else:
        _wall_clock(history, run, opinion)
        _deadline_reset(history, run, carried, opinion)
    # "Vacuous: no limit of steps, wall clock, tokens, cost and no deadline carried."
    limited = (limits.steps, limits.wall_clock_s, limits.tokens, limits.cost_usd)
    opinion.vacuous = not carried and all(limit is None for limit in limited)
    return opinion


def _tokens(line: Line) -> float | None:
    parts = [x for x in (line.record.input_tokens, line.record.output_tokens) if x is not None]
    return sum(parts) if parts else None


def _end(history: History, run: str) -> Line | None:
    """ "End (`run_finished`, else the last `process_exited` or record of source agent or wire, whichever is
    later)"; an ignored `run_started` is no record of its run here."""
    spoken = [
        x
        for x in history.of(run)
        if x.kind != IGNORED and (x.kind == "process_exited" or x.source in ("agent", "wire"))
    ]
    return history.last_finish(run) or (spoken[-1] if spoken else None)


def _recovery(history: History, run: str) -> float:
    """ "recovery_s is added where the run has a `compensation_started`, a `run_resumed` or an injected
    `process_exited`"."""
    recovered = any(history.of(run, "compensation_started", "run_resumed")) or any(
        x.record.injected is True for x in history.of(run, "process_exited")
    )
    return (history.limits(run).recovery_s or 0) if recovered else 0


def _grace(limits: Limits) -> float:
    return DEFAULT_GRACE_S if limits.grace_s is None else limits.grace_s


def _wall_clock(history: History, run: str, opinion: Opinion) -> None:
    """ "End − `run_started` > wall_clock_s + grace_s: `wall-clock` (proof: both); recovery_s is added ..."."""
    limits, start, end = history.limits(run), history.start_of(run), _end(history, run)
    if start is None or end is None or limits.wall_clock_s is None:
        return
    allowed = limits.wall_clock_s + _grace(limits) + _recovery(history, run)
    if exceeds(end.record.t - start.record.t, allowed):
        opinion.told("wall-clock", start.number, end.number)


def _silent_truncation(history: History, run: str, opinion: Opinion) -> None:
    """`silent-truncation`, "(proof: the exhaustion, else the plan; and the end)"."""
    end = history.last_finish(run)
    if end is None or end.record.status != "succeeded":
        return
    # "Ended `succeeded` with an earlier `budget_exhausted` other than `retry`"
    exhausted = [
        x for x in history.of(run, "budget_exhausted") if x.number < end.number and x.record.budget != "retry"
    ]
    for line in exhausted:
        opinion.told("silent-truncation", line.number, end.number)
    # "or ended `succeeded` with a step (with a `tool`) of its last `plan_created` that was neither started nor
    # refused although a limit was used up"
    plans = list(history.of(run, "plan_created"))
    if plans and not exhausted and _used_up(history, run, end):
        planned = {a.step for a in plans[-1].record.actions or () if a.tool is not None}
        met = {x.record.step for x in history.of(run, "tool_call_started", "tool_call_refused")}
        if planned - met - {None}:
            opinion.told("silent-truncation", plans[-1].number, end.number)


def _used_up(history: History, run: str, end: Line) -> bool:
    """ "a limit was used up (steps, tokens, cost, or end − start ≥ its value)"."""
    limits, start = history.limits(run), history.start_of(run)
    records = [x for x in history.of(run) if x.kind != IGNORED]
    steps = {x.record.step for x in records if x.source in ("agent", "wire")} - {None}
    used: list[tuple[float, float | None]] = [
        (len(steps), limits.steps),
        (sum(_tokens(x) or 0 for x in records), limits.tokens),
        (sum(x.record.cost_usd or 0 for x in records), limits.cost_usd),
        (end.record.t - start.record.t if start is not None else 0, limits.wall_clock_s),
    ]
    return any(limit is not None and value >= limit - TOLERANCE for value, limit in used)


def _deadline_reset(history: History, run: str, carried: list[Line], opinion: Opinion) -> None:
    """ "The instant t + deadline_remaining_s of a start lies more than 0.25 s after the earliest such instant of
    an earlier start of its (run, scope), or more than grace_s after `run_started` + wall_clock_s (+ recovery_s
    as above): `deadline-reset` (proof: that start, or `run_started`, and this one)"."""
    limits, begun = history.limits(run), history.start_of(run)

    def instant(line: Line) -> float:
        return line.record.t + (line.record.deadline_remaining_s or 0)

    def scope(line: Line) -> str:
        return "root" if line.record.scope is None else line.record.scope

    for line in carried:
        earlier = [x for x in carried if x.number < line.number and scope(x) == scope(line)]
        for other in earlier:
            earliest = instant(other) == min(map(instant, earlier))
            if earliest and exceeds(instant(line) - instant(other), DEADLINE_SLACK_S):
                opinion.told("deadline-reset", other.number, line.number)
        if begun is not None and limits.wall_clock_s is not None:
            last = begun.record.t + limits.wall_clock_s + _recovery(history, run)
            if exceeds(instant(line) - last, _grace(limits)):
                opinion.told("deadline-reset", begun.number, line.number)


def bounded_concurrency(history: History, run: str) -> Opinion:
    """7. `bounded-concurrency`."""
    opinion = Opinion()
    limits = history.limits(run)
    world = history.world(run)
    # "calls without attempt_id are left aside"
    neighbours = [c for c in history.calls if history.world(c.run) == world and c.attempt is not None]
    own = [c for c in neighbours if c.run == run]
    group_limited = False
    for call in own:
        at = call.start.number
        flying = [c for c in neighbours if _in_flight(history, c, at)]
        # "calls of the run in flight > max_concurrency: `peak`"
        if limits.max_concurrency is not None and sum(c.run == run for c in flying) > limits.max_concurrency:
            opinion.told("peak", at)
        # "Calls in flight of the resource_group, over all runs of its world > the smallest group_concurrency
        # that its runs have declared so far: `group-peak`."
        declared = _declared(history, world, call.group, at)
        group_limited |= bool(declared)
        if declared and sum(c.group == call.group for c in flying) > min(declared):
            opinion.told("group-peak", at)
    queued = [x for x in history.of(run, "tool_call_queued") if x.record.attempt_id is not None]
    patience = limits.max_tenant_wait_s
    if patience is not None and queued:
        # "With `harness_lag` max_s > 0.25 `starved` is not given and a run with max_tenant_wait_s and a queued
        # call is unobservable at best."
        if history.lagged(run):
            opinion.unobservable = True
        else:
            for waiting in queued:
                _starved(history, waiting, patience, opinion)
    # "Vacuous unless the run has max_concurrency and a call, or a call whose group had a limit in its world by
    # then, or max_tenant_wait_s and a queued call."
    opinion.vacuous = not (
        (limits.max_concurrency is not None and own) or group_limited or (patience is not None and queued)
    )
    return opinion


def _declared(history: History, world: str, group: str | None, by: int) -> list[float]:
    declared: list[float] = []
    for run in history.run_ids:
        begun, groups = history.start_of(run), history.limits(run).group_concurrency
        if begun is None or groups is None or group is None or history.world(run) != world:
            continue
        limit = groups.get(group)
        if begun.number < by and limit is not None:
            declared.append(limit)
    return declared


def _ended_between(history: History, run: str, after: int, before: int) -> bool:
    """ "`run_finished` and `process_exited` end all calls of their run and cancel its queued ones"."""
    return any(after < x.number < before for x in history.of(run, "run_finished", "process_exited"))


def _in_flight(history: History, call: Call, at: int) -> bool:
    """ "A call is in flight from `tool_call_started` to `tool_call_finished` of its attempt_id"."""
    begun = call.start.number
    over = call.finish is not None and call.finish.number < at
    return begun <= at and not over and not _ended_between(history, call.run, begun, at)


def _still_queued(history: History, queued: Line, at: int) -> bool:
    """ "a `tool_call_refused` of its attempt_id ends the waiting; a refused or cancelled call is queued no more,
    even if it is started later"."""
    refused = any(
        queued.number < x.number < at and x.record.attempt_id == queued.record.attempt_id
        for x in history.of(queued.run, "tool_call_refused")
    )
    return not refused and not _ended_between(history, queued.run, queued.number, at)


def _starved(history: History, waiting: Line, patience: float, opinion: Opinion) -> None:
    """ "A queued call that has waited longer than its run's max_tenant_wait_s when a call of another tenant, of
    the same world and resource_group and queued later in the file, is started: `starved` (proof: the queueing
    and the start; tenants and groups of the two queue records, two without a group share one ...)"."""
    for call in history.calls:
        at, other = call.start.number, call.queue
        if (
            other is not None
            and other.number > waiting.number
            and history.world(call.run) == history.world(waiting.run)
            and history.tenant(other) != history.tenant(waiting)
            and other.record.resource_group == waiting.record.resource_group
            and _still_queued(history, other, at)
            and _still_queued(history, waiting, at)
            and not _started_before(history, waiting, at)
            and exceeds(call.start.record.t - waiting.record.t, patience)
        ):
            opinion.told("starved", waiting.number, at)


def _started_before(history: History, queued: Line, at: int) -> bool:
    return any(
        x.number < at and x.record.attempt_id == queued.record.attempt_id
        for x in history.of(queued.run, "tool_call_started")
    )
