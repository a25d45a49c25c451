"""Undoing: compensation, trying it again, handing over to people, and saying what stayed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from reports.mechanisms.attempts import Line
from reports.mechanisms.retries import FAILURES_BEFORE_HANDOFF
from reports.mechanisms.view import Observation, View
from traces.history import Record


def compensation(view: View) -> Iterator[Observation]:
    """A run that may not keep an effect whose tool has a compensation; it acts by a compensating effect.

    Undoing what the run may keep (the customer changed their mind) is no compensation, however right.
    """
    for line, effect in view.forward_effects:
        if _has_compensation(view, effect) and not _may_keep(view, line, effect):
            yield view.observe("compensation", view.is_undone(effect), line, tool=effect.tool)


def compensation_retry(view: View) -> Iterator[Observation]:
    """A strong compensation failed (not yet for the third time); it acts by being tried again."""
    for failures in _failed_undos(view).values():
        for at, (line, record, strength) in enumerate(failures[: FAILURES_BEFORE_HANDOFF - 1]):
            if strength == "strong":
                again = at + 1 < len(failures) or _tried_after(view, line, record)
                yield view.observe("compensation_retry", again, line, tool=record.tool)


def manual_handoff(view: View) -> Iterator[Observation]:
    """An undo that cannot be done by machine; it acts by `manual` in the settlement and a hand-over."""
    handed = view.status == "handed_off" or any(True for _ in view.of_type("handed_off"))
    cases: dict[object, Line] = {}
    for failures in _failed_undos(view).values():
        for at, (line, record, strength) in enumerate(failures):
            done = _tried_after(view, line, record, ok=True)
            if done or not (record.outcome == "expired" or strength != "strong" or at + 1 >= FAILURES_BEFORE_HANDOFF):
                continue
            cases.setdefault(record.step, (line, record))
    for line, record in view.of_type("compensation_finished"):
        if record.outcome in {"expired", "manual"}:
            cases.setdefault(record.step, (line, record))
    for line, effect in view.forward_effects:
        declared = view.tool(effect.tool)
        lost = declared is not None and (declared.compensation is None or declared.compensation.tool is None)
        if lost and not _may_keep(view, line, effect) and not view.is_undone(effect):
            cases.setdefault(effect.step, (line, effect))
    for step, (line, record) in cases.items():
        yield view.observe("manual_handoff", handed and view.settled(record.step, "manual"), line, tool=record.tool)
        del step


def partial_success(view: View) -> Iterator[Observation]:
    """A write path failed and effects stay; it acts by `partial_success_returned`, or that status."""
    # What is in people's hands does not stay by the run's decision: that is `manual_handoff`.
    stays = [
        effect
        for _, effect in view.forward_effects
        if not view.is_undone(effect) and not view.settled(effect.step, "manual")
    ]
    if not stays or view.finished is None:
        return
    landed = {(effect.tool, effect.intent_digest or effect.args_digest) for _, effect in view.forward_effects}
    for attempts in view.by_intent.values():
        last = attempts[-1]
        if not view.is_write(last) or view.is_undo(last) or any(attempt.ok for attempt in attempts):
            continue
        refused = last.outcome == "rejected" and view.status == "succeeded"
        if refused or (last.tool, last.digest) in landed:
            continue
        said = any(True for _ in view.of_type("partial_success_returned")) or view.status == "partial_success"
        yield view.observe("partial_success", said, last.end_line or last.line, tool=last.tool)
        return


def _has_compensation(view: View, effect: Record) -> bool:
    declared = view.tool(effect.tool)
    if declared is not None:
        return declared.compensation is not None and bool(declared.compensation.tool)
    return effect.tool in view.world.undoable_tools


def _may_keep(view: View, line: int, effect: Record) -> bool:
    """Whether the run's end, or its own settlement, lets the effect stay (contract section 4.3)."""
    if view.finished is None or view.status == "rolled_back":
        return False
    if view.settled(effect.step, "kept"):
        return True
    if line > view.finished[0]:
        return False
    if view.status == "partial_success":
        return effect.step is not None and effect.step in view.completed
    return view.status == "succeeded"


def _failed_undos(view: View) -> dict[object, list[tuple[int, Record, str]]]:
    """Failed compensations by step: on the wire where their calls are seen, else by the agent's events.

    Each failure is (line, record, strength); strength comes from the event, else from the registry.
    """
    strengths = {
        record.step: record.strength for _, record in view.of_type("compensation_started") if record.strength
    }
    found: dict[object, list[tuple[int, Record, str]]] = defaultdict(list)
    seen_tools: set[str] = set()
    for attempt in view.attempts:
        if not view.is_undo(attempt):
            continue
        seen_tools.add(attempt.tool)
        failed = attempt.finish is not None and attempt.outcome in {"error", "timeout", "unknown", "rejected"}
        if failed and attempt.uncertain and view.known_done(attempt):
            continue  # its answer was lost, and it is known to be done: nothing failed
        if failed and attempt.finish is not None and attempt.end_line is not None:
            strength = strengths.get(attempt.start.step) or _declared_strength(view, attempt.tool)
            found[(attempt.tool, attempt.start.step)].append((attempt.end_line, attempt.start, strength))
    for line, record in view.of_type("compensation_finished"):
        if record.outcome == "error" and (record.tool or "") not in seen_tools:
            strength = record.strength or strengths.get(record.step) or _declared_strength(view, record.tool)
            found[(record.tool, record.step)].append((line, record, strength))
    return found


def _declared_strength(view: View, undo: str | None) -> str:
    if view.registry is None or undo is None:
        return "strong"
    declared = [tool.compensation for tool in view.registry.undoing(undo) if tool.compensation]
    return declared[0].strength if declared else "strong"


def _tried_after(view: View, line: int, record: Record, *, ok: bool = False) -> bool:
    """Whether the same undo was begun (or, with `ok`, brought to its end) after this line."""
    for attempt in view.attempts:
        same = attempt.tool == record.tool and attempt.start.step == record.step
        if same and attempt.line > line and (attempt.ok or not ok):
            return True
    kind = "compensation_finished" if ok else "compensation_started"
    return any(
        at > line and other.step == record.step and (not ok or other.outcome == "ok")
        for at, other in view.of_type(kind)
    )
