"""Taking the model's words with care: bad calls, cut messages, asking again without end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from reports.mechanisms.schema import mismatch
from reports.mechanisms.view import Observation, View
from traces.history import Record

_NORMAL_ENDS = frozenset({"ok", "end_turn", "tool_use", "stop", "stop_sequence", "tool_calls", None})


def preflight_validation(view: View) -> Iterator[Observation]:
    """The model named an unknown tool, bad or invented arguments; it acts by refusing before the wire."""
    refusals = [item for item in view.of_type("tool_call_refused") if item[1].reason == "preflight"]
    used: set[int] = set()
    for line, call in view.of_type("model_tool_call"):
        if call.complete is False or not _is_bad(view, line, call):
            continue
        refusal = next((r for r in refusals if r[0] > line and r[0] not in used and r[1].tool == call.tool), None)
        if refusal:
            used.add(refusal[0])
        sent = any(a.line > line and a.tool == call.tool and _same(a.start, call) for a in view.attempts)
        yield view.observe("preflight_validation", refusal is not None and not sent, line, tool=call.tool)
    heard = {call.tool for _, call in view.of_type("model_tool_call")}
    for line, record in refusals:
        # Where the model's words are on record they tell whether there was anything to refuse.
        if line not in used and (view.registry is None or record.tool not in heard):
            yield view.observe("preflight_validation", True, line, tool=record.tool)


def truncation_rescue(view: View) -> Iterator[Observation]:
    """A model message without a normal end; it acts by executing nothing of it and asking on."""
    whole = [call for _, call in view.of_type("model_tool_call") if call.complete is not False]
    cut = [(line, call) for line, call in view.of_type("model_tool_call") if call.complete is False]
    for at, attempt in enumerate(view.model_attempts):
        if attempt.finish is None or attempt.end_line is None:
            continue
        until = view.model_attempts[at + 1].line if at + 1 < len(view.model_attempts) else view.own[-1][0] + 1
        mine = [(line, call) for line, call in cut if attempt.line < line < until]
        answered = attempt.finish.http_status is None or attempt.finish.http_status < 400
        broken = answered and attempt.outcome not in _NORMAL_ENDS and attempt.outcome not in {"rejected", "timeout"}
        if not mine and not (broken and attempt.finish.http_status is not None):
            continue
        executed = any(_is_executed(view, line, call, whole) for line, call in mine)
        asked_on = at + 1 < len(view.model_attempts) or bool(view.said("truncation_rescue"))
        yield view.observe("truncation_rescue", asked_on and not executed, attempt.end_line)
    if not view.model_attempts:
        for line, call in cut:
            acted = bool(view.said("truncation_rescue")) and not _is_executed(view, line, call, whole)
            yield view.observe("truncation_rescue", acted, line, tool=call.tool)


def self_repair_limit(view: View) -> Iterator[Observation]:
    """The model asked again past what the registry allows after failures of a tool; it acts by refusing."""
    asked_again: dict[str, int] = defaultdict(int)
    failing: set[str] = set()
    refusals = list(view.of_type("tool_call_refused"))
    used: set[int] = set()
    ends = {a.end_line: a for a in view.attempts if a.end_line is not None}
    for line, record in view.own:
        if line in ends and not view.is_undo(ends[line]):
            attempt = ends[line]
            if attempt.ok:
                failing.discard(attempt.tool)
                asked_again[attempt.tool] = 0
            else:
                failing.add(attempt.tool)
        declared = view.tool(record.tool)
        if record.type != "model_tool_call" or record.complete is False or declared is None:
            continue
        if declared.name not in failing:
            continue
        asked_again[declared.name] += 1
        if asked_again[declared.name] <= declared.self_repair:
            continue
        refusal = next((r for r in refusals if r[0] > line and r[0] not in used and r[1].tool == declared.name), None)
        if refusal:
            used.add(refusal[0])
        yield view.observe("self_repair_limit", refusal is not None, line, tool=declared.name)


def _is_bad(view: View, line: int, call: Record) -> bool:
    if view.registry is None or not call.tool:
        return False
    declared = view.tool(call.tool)
    if declared is None:
        return True
    if not isinstance(call.args, dict):
        return False
    if declared.args and mismatch(call.args, declared.args) is not None:
        return True
    returned = [r.result for at, r in view.of_type("tool_call_finished") if at < line and r.result is not None]
    return bool(returned) and any(
        name in call.args and not any(_contains(result, call.args[name]) for result in returned)
        for name in declared.from_results
    )


def _contains(value: Any, wanted: Any) -> bool:
    if value == wanted:
        return True
    if isinstance(value, dict):
        return any(_contains(item, wanted) for item in value.values())
    return isinstance(value, list) and any(_contains(item, wanted) for item in value)


def _same(start: Record, call: Record) -> bool:
    return start.args_digest is None or call.args_digest is None or start.args_digest == call.args_digest


def _is_executed(view: View, line: int, call: Record, whole: list[Record]) -> bool:
    """Whether a call went out after a cut message that no whole message had asked for."""
    if any(other.tool == call.tool and _same(call, other) for other in whole):
        return False
    return any(a.line > line and a.tool == call.tool and _same(a.start, call) for a in view.attempts)
