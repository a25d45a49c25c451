"""One record in a few words, and the lane of the time line in which it stands.

Works on the record as it stands in the file, not on its typed form: what is shown is what was written, unknown
fields and all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reports.text import counted, plain

Raw = Mapping[str, Any]

LANES: tuple[str, ...] = ("agent", "model", "tools", "service", "harness")
"""Columns of a time line: the agent's words, model calls and tool calls on the wire, the service, the harness."""

_HARNESS = frozenset({"fault_injected", "harness_lag", "process_started", "process_exited", "world_finished"})
_MODEL = frozenset({"model_call_started", "model_call_finished", "model_tool_call"})
VALUE_LIMIT = 160


def lane(record: Raw) -> str:
    """The lane of a record: by what it is about where that is plain, else by who wrote it."""
    kind, source = record.get("type"), record.get("source")
    if kind in _MODEL:
        return "model"
    if kind == "effect" or source == "service":
        return "service"
    if kind in _HARNESS or source == "harness":
        return "harness"
    return "tools" if source == "wire" else "agent"


def sentence(record: Raw) -> str:
    """What a record says, short: `charge → try again in 0.4 s`. Never more than one line."""
    kind = str(record.get("type", "?"))
    teller = _TELLERS.get(kind)
    told = teller(record) if teller else ""
    return plain(told or kind.replace("_", " "), limit=VALUE_LIMIT)


def short(value: Any, limit: int = 14) -> str:
    """An id cut to its end that tells: digests and keys differ early."""
    return plain(value, limit=limit)


def _get(record: Raw, name: str, default: str = "") -> str:
    value = record.get(name)
    return default if value is None else plain(value, limit=60)


def _part(record: Raw, name: str, form: str = "{}") -> str:
    value = record.get(name)
    if value is None:
        return ""
    if isinstance(value, float):
        value = f"{value:.3g}"
    return form.format(plain(value, limit=60))


def _said(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _error(record: Raw) -> str:
    error = record.get("error")
    return _get(error, "kind") if isinstance(error, Mapping) else ""


def _tool_started(record: Raw) -> str:
    key = record.get("idempotency_key")
    return _said(
        f"{_get(record, 'tool', 'a tool')} →",
        f"key {short(key)}" if key is not None else "",
        _part(record, "deadline_remaining_s", "{} s left"),
    )


def _tool_finished(record: Raw) -> str:
    return _said(
        f"{_get(record, 'tool', 'a tool')} ←",
        _part(record, "http_status"),
        _get(record, "outcome"),
        _error(record),
        _part(record, "retry_after_s", "retry after {} s"),
    )


def _model_finished(record: Raw) -> str:
    tokens = [record.get("input_tokens"), record.get("output_tokens")]
    known = [int(count) for count in tokens if isinstance(count, int | float)]
    return _said(
        "model ←",
        _part(record, "http_status"),
        _get(record, "outcome"),
        counted(sum(known), "token") if known else "",
    )


def _effect(record: Raw) -> str:
    return _said(
        _get(record, "tool", "a tool"),
        _get(record, "outcome"),
        _get(record, "effect_id"),
        _part(record, "compensates", "undoes {}"),
        "(made by the fault)" if record.get("caused_by") else "",
    )


def _exited(record: Raw) -> str:
    how = _part(record, "signal", "by {}") or _part(record, "exit_code", "with {}")
    return _said("process exited", how, "(injected)" if record.get("injected") else "")


_TELLERS: Mapping[str, Callable[[Raw], str]] = {
    "run_started": lambda r: _said("run starts", _part(r, "task_type", "({})")),
    "run_resumed": lambda r: _said("resumes", _part(r, "from_step", "from step {}"), _part(r, "skipped", "skips {}")),
    "run_finished": lambda r: _said("ends", _get(r, "status", "without a status"), _error(r)),
    "plan_created": lambda r: (
        f"plans {counted(len(r['actions']) if isinstance(r.get('actions'), list) else 0, 'action')}"
    ),
    "budget_allocated": lambda r: _said("budget", _get(r, "scope"), _part(r, "allotted_s", "{} s")),
    "budget_exhausted": lambda r: _said("budget used up:", _get(r, "budget")),
    "model_call_started": lambda r: "model →",
    "model_call_finished": _model_finished,
    "model_tool_call": lambda r: _said(
        "wants", _get(r, "tool", "a tool"), "" if r.get("complete") is not False else "(cut off)"
    ),
    "tool_call_queued": lambda r: _said(_get(r, "tool", "a call"), "waits", _part(r, "resource_group", "for {}")),
    "tool_call_refused": lambda r: _said(_get(r, "tool", "a call"), "refused:", _get(r, "reason")),
    "tool_call_started": _tool_started,
    "tool_call_finished": _tool_finished,
    "retry_scheduled": lambda r: _said(
        "tries again",
        _part(r, "delay_s", "in {} s"),
        "as the server said" if r.get("server_directed") else "",
        _part(r, "reason", "({})"),
    ),
    "breaker_state_changed": lambda r: _said("breaker of", _get(r, "tool"), _get(r, "from"), "→", _get(r, "to")),
    "effect": _effect,
    "effect_settled": lambda r: _said(_part(r, "step", "step {}"), "settled:", _get(r, "disposition")),
    "compensation_started": lambda r: _said(_part(r, "step", "undoes step {}"), _part(r, "tool", "by {}")),
    "compensation_finished": lambda r: _said(_part(r, "step", "undoing step {}:"), _get(r, "outcome")),
    "partial_success_returned": lambda r: _said("returns a partial success", _part(r, "completed", "completed {}")),
    "mechanism_acted": lambda r: _said("acted:", _get(r, "name"), _part(r, "tool", "for {}")),
    "exception": lambda r: _said(
        _get(r, "name", "exception"), "handled" if r.get("handled") else "not handled", _part(r, "message", "({})")
    ),
    "handed_off": lambda r: "handed over to people",
    "fault_injected": lambda r: _said("fault:", _get(r, "kind"), _part(r, "site", "at {}")),
    "harness_lag": lambda r: _part(r, "max_s", "the harness was up to {} s late"),
    "process_started": lambda r: _said("process starts", _part(r, "generation", "(generation {})")),
    "process_exited": _exited,
}
