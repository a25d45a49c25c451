"""One stream out of four sources: wire, service, agent and harness (contract section 3, DESIGN section 5).

Pure: takes what each source saw of one run and returns the records of that run in the order of happening. Every
call is held once. The agent's own account of a call is folded into the wire's record of it: step, scope, deadline
and outcome are the agent's to tell; that the call happened is not.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from harness.pairing import OwnCall, own_calls, pair
from traces.history import Record

ANSWERS = frozenset({"ok", "error", "rejected", "deduplicated"})
"""Outcomes that are an answer: the agent cannot have read it before the wire carried it."""

CLOCK_TICK_S = 0.05
"""How far an agent's clock may lag behind what it has already seen: a coarse clock, not another order of events."""

_FROM_AGENT = ("step", "scope", "deadline_remaining_s", "outcome", "error")
_FROM_WIRE_TO_EFFECT = ("step", "attempt_id", "intent_id", "args_digest", "intent_digest", "args", "tool_version")
_RANK = {
    "run_started": 0,
    "process_started": 1,
    "tool_call_started": 3,
    "model_call_started": 3,
    "effect": 4,
    "tool_call_finished": 5,
    "model_call_finished": 5,
    "model_tool_call": 5,
    "run_finished": 8,
    "process_exited": 9,
}
"""What can have caused what, for records of different sources that bear one time. Within a source its own order
holds."""


def merge(
    *,
    harness: Sequence[Record],
    wire: Sequence[Record],
    effects: Sequence[Record],
    agent: Sequence[Record],
) -> list[Record]:
    """The records of one run in the order of happening; each source has to be in its own order already."""
    calls = own_calls(agent)
    paired = pair(calls, wire)
    agent_side, wire_side = _call_once(agent, wire, paired)
    starts = {r.wire: r for r in (*agent_side, *wire_side) if r.type == "tool_call_started" and r.wire}
    sources = (
        list(harness),
        _by_time(wire_side),
        _by_time(_joined(effect, starts) for effect in effects),
        _by_time(_within_its_life(_carried_on(agent_side), harness)),
    )
    merged = heapq.merge(*sources, key=lambda record: (record.t, _RANK.get(record.type, 6)))
    return _start_first(list(merged))


def _call_once(
    agent: Sequence[Record], wire: Sequence[Record], paired: dict[str, OwnCall]
) -> tuple[list[Record], list[Record]]:
    """The agent's records with its calls folded into what the wire saw of them, and the rest of the wire's."""
    folded: dict[int, Record] = {}
    states_steps = any(record.step is not None for record in agent if record.type == "tool_call_started")
    model_steps = [(r.t, r.step) for r in agent if r.type == "model_call_started" and r.step is not None]
    steps_of: dict[str | None, int | None] = {}
    last_step: int | None = None
    wire_side: list[Record] = []
    for record in wire:
        call = paired.get(record.wire or "") if record.type.startswith("tool_call") else None
        own = call.record(record.type) if call else None
        if call is not None and own is not None:
            folded[id(own)] = _fold(record, own, attempt_id=call.attempt_id)
            continue
        if call is not None:
            # The agent told of the start and died, or was killed, before it could tell of the end.
            record = msgspec.structs.replace(record, attempt_id=call.attempt_id or record.attempt_id)
        elif record.type.startswith("tool_call") and states_steps and record.attempt_id == record.wire:
            # A step that the wire made up would be one more beside those that the agent counts.
            record = msgspec.structs.replace(record, step=None)
        elif record.type.startswith("model_") and (states_steps or model_steps):
            if record.type == "model_call_started":
                last_step = steps_of[record.wire] = _latest_step(model_steps, record.t)
            record = msgspec.structs.replace(record, step=steps_of.get(record.wire, last_step))
        wire_side.append(record)
    wire_saw_models = any(record.type.startswith("model_call") for record in wire)
    agent_side = [
        folded.get(id(record), record)
        for record in agent
        if not (wire_saw_models and record.type.startswith("model_call"))
    ]
    return agent_side, wire_side


def _fold(wire: Record, own: Record, *, attempt_id: str | None) -> Record:
    changes: dict[str, Any] = {field: value for field in _FROM_AGENT if (value := getattr(own, field)) is not None}
    outcome = changes.get("outcome", wire.outcome)
    # When the call began and ended for the agent is what concurrency, order and deadlines are about. Its clock may
    # be coarse, so causality bounds it: it read after the wire's answer, but left before the wire noticed that it
    # had gone. It sent before the wire saw the request; by less than a tick, the wire's clock is the better one.
    if wire.type == "tool_call_started":
        changes["t"] = own.t if wire.t - own.t > CLOCK_TICK_S else wire.t
    else:
        changes["t"] = max(wire.t, own.t) if outcome in ANSWERS else min(wire.t, own.t)
    changes["attempt_id"] = attempt_id or wire.attempt_id
    return msgspec.structs.replace(wire, **changes)


def _latest_step(steps: Sequence[tuple[float, int]], t: float) -> int | None:
    # An agent sends before the wire sees it; its clock may round the instant up.
    known = [step for started, step in steps if started <= t + 0.002]
    return known[-1] if known else None


def _joined(effect: Record, starts: dict[str, Record]) -> Record:
    start = starts.get(effect.wire or "")
    if start is None:
        return effect
    missing = {field: getattr(start, field) for field in _FROM_WIRE_TO_EFFECT if getattr(effect, field) is None}
    # An effect cannot stand before the request that caused it was sent.
    return msgspec.structs.replace(effect, **missing, t=max(effect.t, start.t))


def _carried_on(records: Iterable[Record]) -> Iterable[Record]:
    """The agent's records with what it wrote later never a clock's tick earlier.

    An answer is read no sooner than the wire carried it; what the agent wrote after reading it was after that, too.
    A record that lags by more than a tick was written late by another thread, and keeps its time; the end of the
    run stands after everything the agent told of before.
    """
    latest = float("-inf")
    for record in records:
        lags = record.t < latest
        if lags and (latest - record.t <= CLOCK_TICK_S or record.type == "run_finished"):
            record = msgspec.structs.replace(record, t=latest)
        latest = max(latest, record.t)
        yield record


def _within_its_life(records: Iterable[Record], harness: Sequence[Record]) -> Iterable[Record]:
    """Times that an agent cannot mean: before its run began, or after its last process had ended."""
    begin = next((r.t for r in harness if r.type == "run_started"), float("-inf"))
    ends = [r.t for r in harness if r.type == "process_exited"]
    end = max(ends, default=float("inf"))
    for record in records:
        bounded = min(max(record.t, begin), max(end, begin))
        yield record if bounded == record.t else msgspec.structs.replace(record, t=bounded)


def _by_time(records: Iterable[Record]) -> list[Record]:
    return sorted(records, key=lambda record: record.t)


def _start_first(records: list[Record]) -> list[Record]:
    first = next((index for index, record in enumerate(records) if record.type == "run_started"), None)
    if not first:
        return records
    start = records[first]
    early = [msgspec.structs.replace(record, t=start.t) for record in records[:first]]
    return [start, *early, *records[first + 1 :]]
