"""bounded-concurrency: no more at once than allowed, and nobody waits for ever (contract section 4.7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from invariants.facts import TOLERANCE, Run, World
from invariants.invariant import Hook, Invariant
from invariants.verdict import Outcome, Ruling, Standing
from traces.history import CoreRecord

_HELD = Standing("held", "calls in flight and waiting times stayed within their limits")
_VACUOUS = Standing("vacuous", "no limit of concurrency or waiting applied to any call of the run")
_LATE_CLOCK = Standing("unobservable", "the harness's own clock ran late in this run, so waiting cannot be judged")


class _Queued(msgspec.Struct, eq=False, gc=False):
    """A counted queue record, and whether its call is still queued."""

    line: int
    t: float
    tenant: str
    group: str | None
    waiting: bool = True


class _Services(msgspec.Struct, eq=False):
    """Of one world: per resource group the limit so far, the calls in flight and the queues that may starve."""

    limits: dict[str, float] = {}
    in_flight: dict[str, int] = {}
    queues: dict[str | None, dict[_Queued, Run]] = {}


class _Notes(msgspec.Struct, eq=False):
    """Of one run: its calls in flight with their groups, its queue records, its findings."""

    services: _Services
    in_flight: dict[str, str | None] = {}
    queued: dict[str, _Queued] | None = None
    limited: bool = False
    """A limit applied to one of its calls."""
    starved: bool = False
    rulings: dict[str, Ruling] | None = None


class BoundedConcurrency(Invariant):
    """Counts calls in flight by run and by group, and watches queued calls being overtaken."""

    name: ClassVar[str] = "bounded-concurrency"

    def hooks(self) -> Mapping[str, Hook]:
        return {
            "tool_call_queued": self._queued,
            "tool_call_refused": self._refused,
            "tool_call_started": self._started,
            "tool_call_finished": self._finished,
            "run_finished": self._ended,
            "process_exited": self._ended,
        }

    def run_opened(self, run: Run, line: int) -> None:
        declared = run.limits.group_concurrency
        if declared:
            limits = self._services(run.world).limits
            for group, limit in declared.items():
                if limit is not None:
                    limits[group] = min(limit, limits.get(group, limit))

    def rule(self, run: Run) -> Outcome:
        notes: _Notes | None = run.notes[self._slot]
        if notes is None:
            return _VACUOUS
        waiting_judged = bool(notes.queued) and run.limits.max_tenant_wait_s is not None
        rulings = notes.rulings
        if rulings and run.lagged:
            rulings.pop("starved", None)
        if rulings:
            return list(rulings.values())
        if run.lagged and waiting_judged:
            return _LATE_CLOCK
        return _HELD if notes.limited or waiting_judged else _VACUOUS

    def _services(self, world: World) -> _Services:
        services: _Services | None = world.notes[self._slot]
        if services is None:
            services = world.notes[self._slot] = _Services()
        return services

    def _notes(self, run: Run) -> _Notes:
        notes: _Notes | None = run.notes[self._slot]
        if notes is None:
            notes = run.notes[self._slot] = _Notes(self._services(run.world))
        return notes

    def _queued(self, run: Run, line: int, record: CoreRecord) -> None:
        attempt = record.attempt_id
        if attempt is None or attempt in run.calls:
            return
        notes = self._notes(run)
        if notes.queued is None:
            notes.queued = {}
        elif attempt in notes.queued:
            return
        tenant = record.tenant if record.tenant is not None else run.tenant
        queued = notes.queued[attempt] = _Queued(line, record.t, tenant, record.resource_group)
        if run.limits.max_tenant_wait_s is not None and not notes.starved:
            self._services(run.world).queues.setdefault(queued.group, {})[queued] = run

    def _refused(self, run: Run, line: int, record: CoreRecord) -> None:
        notes: _Notes | None = run.notes[self._slot]
        if notes is not None and notes.queued is not None and record.attempt_id is not None:
            queued = notes.queued.get(record.attempt_id)
            if queued is not None:
                self._leave_queue(run, queued)

    def _leave_queue(self, run: Run, queued: _Queued) -> None:
        queued.waiting = False
        queue = self._services(run.world).queues.get(queued.group)
        if queue is not None:
            queue.pop(queued, None)

    def _started(self, run: Run, line: int, record: CoreRecord) -> None:
        attempt = record.attempt_id
        if attempt is None:
            return
        notes: _Notes | None = run.notes[self._slot]
        group = record.resource_group
        if notes is not None and notes.queued is not None and (queued := notes.queued.get(attempt)) is not None:
            if queued.group is not None:
                group = queued.group
            if queued.waiting:
                self._leave_queue(run, queued)
                self._overtaking(run, line, record, queued=queued)
        most = run.limits.max_concurrency
        if most is None and group is None:
            return
        if notes is None:
            notes = self._notes(run)
        notes.in_flight[attempt] = group
        if most is not None:
            notes.limited = True
            if len(notes.in_flight) > most + TOLERANCE:
                _break(notes, "peak", line, f"{len(notes.in_flight)} calls of the run in flight, {most:g} allowed")
        if group is not None:
            services = notes.services
            count = services.in_flight[group] = services.in_flight.get(group, 0) + 1
            limit = services.limits.get(group)
            if limit is not None:
                notes.limited = True
                if count > limit + TOLERANCE:
                    message = (
                        f"{count} calls of group `{group}` in flight over all runs of the world, {limit:g} allowed"
                    )
                    _break(notes, "group-peak", line, message)

    def _overtaking(self, run: Run, line: int, record: CoreRecord, *, queued: _Queued) -> None:
        """A queued call is started: whoever was queued before it by another tenant may have waited too long."""
        services = self._services(run.world)
        starved: dict[Run, Ruling] = {}
        for other, waiter in services.queues.get(queued.group, {}).items():
            if other.line > queued.line:
                break
            most = waiter.limits.max_tenant_wait_s or 0.0
            waited = record.t - other.t
            if other.tenant == queued.tenant or waited <= most + TOLERANCE or waiter in starved:
                continue
            message = (
                f"a call of tenant `{other.tenant}` had waited {waited:.3f} s (allowed: {most:g} s) when a later one "
                f"of tenant `{queued.tenant}` was started"
            )
            starved[waiter] = Ruling("starved", (other.line, line), message)
        for waiter, ruling in starved.items():
            notes = self._notes(waiter)
            notes.starved = True
            notes.rulings = {**(notes.rulings or {}), "starved": ruling}
            for other in (notes.queued or {}).values():  # only the first starving is told: no need to watch the run
                if (queue := services.queues.get(other.group)) is not None:
                    queue.pop(other, None)

    def _finished(self, run: Run, line: int, record: CoreRecord) -> None:
        notes: _Notes | None = run.notes[self._slot]
        if notes is not None and record.attempt_id is not None:
            group = notes.in_flight.pop(record.attempt_id, None)
            if group is not None:
                notes.services.in_flight[group] -= 1

    def _ended(self, run: Run, line: int, record: CoreRecord) -> None:
        notes: _Notes | None = run.notes[self._slot]
        if notes is None:
            return
        if notes.in_flight:
            for group in notes.in_flight.values():
                if group is not None:
                    notes.services.in_flight[group] -= 1
            notes.in_flight.clear()
        for queued in (notes.queued or {}).values():
            if queued.waiting:
                self._leave_queue(run, queued)


def _break(notes: _Notes, reason: str, line: int, message: str) -> None:
    if notes.rulings is None:
        notes.rulings = {}
    notes.rulings.setdefault(reason, Ruling(reason, (line,), message))
