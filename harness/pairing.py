"""Which call of the agent's own account is which request on the wire.

The header `X-Attempt-Id` tells it where an agent sends it. It is optional, and so are the agent's events: without it
calls are paired by key, arguments and time, so that no call is held twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from traces.history import Record

SENT_BEFORE_SEEN_S = 0.05
"""An agent stamps a start before the wire sees it; a coarse clock may round the stamp up by so much."""


@dataclass(slots=True)
class OwnCall:
    """One call as the agent tells it; `attempt_id` is `None` where another call had the same id before."""

    start: Record
    finish: Record | None = None
    attempt_id: str | None = None

    def record(self, kind: str) -> Record | None:
        """Its `tool_call_started` or `tool_call_finished`."""
        return self.start if kind == "tool_call_started" else self.finish


def own_calls(agent: Iterable[Record]) -> list[OwnCall]:
    """The calls that an agent tells of, in the order of their starts. Starts and finishes without an attempt id are
    put together by tool, first come, first served."""
    calls: list[OwnCall] = []
    open_by_id: dict[str, OwnCall] = {}
    open_by_tool: dict[str | None, list[OwnCall]] = defaultdict(list)
    taken: set[str] = set()
    for record in agent:
        if record.type == "tool_call_started":
            call = OwnCall(record)
            calls.append(call)
            if record.attempt_id is None:
                open_by_tool[record.tool].append(call)
            elif record.attempt_id not in taken:
                taken.add(record.attempt_id)
                call.attempt_id = record.attempt_id
                open_by_id[record.attempt_id] = call
        elif record.type == "tool_call_finished":
            if record.attempt_id is not None:
                ended = open_by_id.pop(record.attempt_id, None)
            else:
                waiting = open_by_tool[record.tool]
                ended = waiting.pop(0) if waiting else None
            if ended is not None:
                ended.finish = record
    return calls


def pair(calls: Sequence[OwnCall], wire: Iterable[Record]) -> dict[str, OwnCall]:
    """The agent's account of each request that it tells of, by wire id."""
    by_id = {call.attempt_id: call for call in calls if call.attempt_id is not None}
    paired: dict[str, OwnCall] = {}
    used: set[int] = set()
    unnamed: list[Record] = []
    for record in wire:
        if record.type != "tool_call_started" or not record.wire:
            continue
        named = by_id.get(record.attempt_id or "") if record.attempt_id != record.wire else None
        if named is None:
            unnamed.append(record)
        else:
            paired[record.wire] = named
            used.add(id(named))
    for seen in sorted(unnamed, key=lambda record: record.t):
        fitting = [call for call in calls if id(call) not in used and _may_be(call.start, seen)]
        if fitting:
            # Equal arguments first (an agent may digest them by rules of its own); then the nearest before it: an
            # earlier one that fits as well was sent and never arrived.
            nearest = max(fitting, key=lambda call: (_same_arguments(call.start, seen), call.start.t))
            paired[seen.wire or ""] = nearest
            used.add(id(nearest))
    return paired


def _may_be(told: Record, seen: Record) -> bool:
    return (
        told.tool == seen.tool
        and told.t <= seen.t + SENT_BEFORE_SEEN_S
        and (None in (told.idempotency_key, seen.idempotency_key) or told.idempotency_key == seen.idempotency_key)
    )


def _same_arguments(told: Record, seen: Record) -> bool:
    return told.args_digest is not None and told.args_digest == seen.args_digest
