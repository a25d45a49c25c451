"""The digest that proves a repeat (DESIGN section 5).

Two runs of one scenario, trace and agent give the same digest: it is taken per logical call, so that the order in
which parallel calls happen to be served does not count, and leaves out what differs by nature (times, process ids,
ids given anew in each run, the agent's own numbers).
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable

import msgspec

from traces.history import Record

_IDS = ("intent_id", "attempt_id", "idempotency_key", "effect_id", "compensates", "wire", "ledger_id")
_LEFT_OUT = frozenset(
    {
        "t",
        "run_id",
        "world",
        "parent_run_id",
        "pid",
        "max_s",
        "deadline_remaining_s",
        "delay_s",
        "remaining_s",
        "allotted_s",
        "retry_budget_left",
        "retry_after_s",
        "args",
        "result",
        "message",
        "grounds",
        "model_message",
    }
)
_TYPES = frozenset(
    {
        "model_call_started",
        "model_call_finished",
        "model_tool_call",
        "tool_call_started",
        "tool_call_finished",
        "effect",
        "fault_injected",
        "process_started",
        "process_exited",
        "run_finished",
    }
)
"""What the wire, the service and the harness saw; the agent's own events are claims and not part of the proof."""


def history_digest(records: Iterable[Record]) -> str:
    """SHA-256 (hex) over the records of one run, grouped by logical call."""
    calls: dict[str, list[dict[str, object]]] = defaultdict(list)
    for record in records:
        if record.type in _TYPES:
            calls[_call_of(record)].append(_comparable(record))
    for lines in calls.values():
        _rename_ids(lines)
    encoded = sorted(
        msgspec.json.encode([_stable_name(call), lines], order="deterministic") for call, lines in calls.items()
    )
    return hashlib.sha256(b"\n".join(encoded)).hexdigest()


def _call_of(record: Record) -> str:
    if record.type == "fault_injected":
        # By place: parallel calls may be struck in any order.
        return f"fault\0{record.kind}\0{record.site}\0"
    if record.tool is not None:
        return f"tool\0{record.tool}\0{record.args_digest}\0{record.intent_id}"
    return record.type.partition("_")[0] if record.type.startswith("model") else record.type


def _stable_name(call: str) -> str:
    # The intent's own name may carry the run's id; equal calls are told apart by their lines.
    return call.rpartition("\0")[0] or call


def _comparable(record: Record) -> dict[str, object]:
    fields: dict[str, object] = msgspec.to_builtins(record)
    kept = {key: value for key, value in fields.items() if key not in _LEFT_OUT}
    if record.error is not None:
        kept["error"] = record.error.kind
    return kept


def _rename_ids(lines: list[dict[str, object]]) -> None:
    names: dict[object, str] = {}
    for line in lines:
        for field in _IDS:
            if (value := line.get(field)) is not None:
                line[field] = names.setdefault(value, f"#{len(names) + 1}")
