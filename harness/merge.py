"""One stream out of four sources: wire, service, agent and harness (contract section 3, DESIGN section 5).

Pure: takes what each source saw of one run and returns the records of that run in the order of happening. Every
call is held once. The agent's own account of a call is folded into the wire's record of it: step, scope, deadline
and outcome are the agent's to tell; that the call happened is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from traces.history import Record

ANSWERS = frozenset({"ok", "error", "rejected", "deduplicated"})
"""Outcomes that are an answer: the agent cannot have read it before the wire carried it."""

COARSE_CLOCK_S = 0.002
"""An agent's clock may tick in milliseconds only."""

_FROM_AGENT = ("step", "scope", "deadline_remaining_s", "outcome")
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
"""Ties of `t` are broken by what can have caused what; everything else keeps the order of its source."""


@dataclass(slots=True)
class _Stamped:
    record: Record
    t: float
    order: int


def merge(
    *,
    harness: Sequence[Record],
    wire: Sequence[Record],
    effects: Sequence[Record],
    agent: Sequence[Record],
) -> list[Record]:
    """The records of one run in the order of happening; each source has to be in its own order already."""
    agent_calls = _by_attempt(agent)
    states_steps = any(record.step is not None for record in agent if record.type == "tool_call_started")
    merged_ids: set[int] = set()
    stream: list[Record] = list(harness)
    wire_starts: dict[str, Record] = {}
    last_step: int | None = None
    steps_of: dict[str | None, int | None] = {}
    model_steps = [(r.t, r.step) for r in agent if r.type == "model_call_started" and r.step is not None]
    for record in wire:
        if record.type in ("tool_call_started", "tool_call_finished"):
            own = agent_calls.get((record.type, record.attempt_id or ""))
            if own is not None:
                merged_ids.add(id(own))
                record = _fold(record, own)
            elif states_steps and record.attempt_id == record.wire:
                record = msgspec.structs.replace(record, step=None)
            if record.type == "tool_call_started" and record.wire:
                wire_starts[record.wire] = record
        elif record.type.startswith("model_") and (states_steps or model_steps):
            if record.type == "model_call_started":
                last_step = steps_of[record.wire] = _latest_step(model_steps, record.t)
            record = msgspec.structs.replace(record, step=steps_of.get(record.wire, last_step))
        stream.append(record)
    wire_saw_models = any(record.type.startswith("model_call") for record in wire)
    stream += [_joined(effect, wire_starts) for effect in effects]
    stream += [
        record
        for record in agent
        if id(record) not in merged_ids and not (wire_saw_models and record.type.startswith("model_call"))
    ]
    return _in_order(stream)


def _by_attempt(agent: Iterable[Record]) -> dict[tuple[str, str], Record]:
    calls: dict[tuple[str, str], Record] = {}
    for record in agent:
        if record.attempt_id and record.type in ("tool_call_started", "tool_call_finished"):
            calls.setdefault((record.type, record.attempt_id), record)
    return calls


def _fold(wire: Record, own: Record) -> Record:
    changes: dict[str, Any] = {field: value for field in _FROM_AGENT if (value := getattr(own, field)) is not None}
    if own.error is not None:
        changes["error"] = own.error
    outcome = changes.get("outcome", wire.outcome)
    # When the call began and ended for the agent is what concurrency, order and deadlines are about. Its clock may
    # be coarse, so causality bounds it: it sent before the wire saw the request, it read after the wire's answer,
    # but it left before the wire noticed that it had gone.
    if wire.type == "tool_call_started" or outcome not in ANSWERS:
        changes["t"] = min(wire.t, own.t)
    else:
        changes["t"] = max(wire.t, own.t)
    return msgspec.structs.replace(wire, **changes)


def _latest_step(steps: Sequence[tuple[float, int]], t: float) -> int | None:
    known = [step for started, step in steps if started <= t + COARSE_CLOCK_S]
    return known[-1] if known else None


def _joined(effect: Record, starts: dict[str, Record]) -> Record:
    start = starts.get(effect.wire or "")
    if start is None:
        return effect
    missing = {field: getattr(start, field) for field in _FROM_WIRE_TO_EFFECT if getattr(effect, field) is None}
    # An effect cannot stand before the request that caused it was sent.
    return msgspec.structs.replace(effect, **missing, t=max(effect.t, start.t))


def _in_order(stream: Sequence[Record]) -> list[Record]:
    stamped = [_Stamped(record, record.t, index) for index, record in enumerate(stream)]
    stamped.sort(key=lambda item: (item.t, _RANK.get(item.record.type, 6), item.order))
    return [item.record for item in _start_first(stamped)]


def _start_first(stamped: Sequence[_Stamped]) -> list[_Stamped]:
    first = next((item for item in stamped if item.record.type == "run_started"), None)
    if first is None:
        return list(stamped)
    rest = [
        # A record of an agent whose clock lags cannot have happened before its run began.
        item if item.t >= first.t else replace(item, record=msgspec.structs.replace(item.record, t=first.t))
        for item in stamped
        if item is not first
    ]
    return [first, *rest]
