"""Surviving a crash: the record before the call, and going on where the run had stopped."""

from __future__ import annotations

from collections.abc import Iterator

from reports.mechanisms.attempts import Attempt, Line
from reports.mechanisms.view import Observation, View


def write_ahead(view: View) -> Iterator[Observation]:
    """An effectful call started; it acts if the agent had noted it in its ledger before.

    The ledger is the agent's own, so the wire cannot show it: a `mechanism_acted` of this name does, for the
    key, else the attempt, else the tool and step of the call.
    """
    notes = view.said("write_ahead")
    for attempt in view.attempts:
        if view.is_write(attempt):
            noted = any(note[0] < attempt.line and _is_about(note, attempt) for note in notes)
            yield view.observe("write_ahead", noted, attempt.line, tool=attempt.tool)


def resume(view: View) -> Iterator[Observation]:
    """A restart after an injected crash; it acts by going on with the same intent and skipping what is done."""
    killed: int | None = None
    for line, record in view.own:
        if record.type == "process_exited" and record.injected:
            killed = line
        elif record.type == "process_started" and killed is not None:
            yield view.observe("resume", _goes_on(view, line), line)
            killed = None


def _is_about(note: Line, attempt: Attempt) -> bool:
    record, start = note[1], attempt.start
    if record.idempotency_key is not None and start.idempotency_key is not None:
        return record.idempotency_key == start.idempotency_key
    if record.attempt_id is not None and record.attempt_id == start.attempt_id:
        return True
    same_step = record.step == start.step or record.step is None or start.step is None
    return record.tool == attempt.tool and same_step


def _goes_on(view: View, restart: int) -> bool:
    following = [record for line, record in view.own if line > restart]
    if not any(record.type in {"run_resumed", "tool_call_started", "run_finished"} for record in following):
        return False
    done = [a for a in view.attempts if a.ok and view.is_write(a) and a.end_line is not None and a.end_line < restart]
    later = [attempt for attempt in view.attempts if attempt.line > restart]
    return not any(_repeats(view, attempt, done) or _is_another_intent(view, attempt, restart) for attempt in later)


def _repeats(view: View, attempt: Attempt, done: list[Attempt]) -> bool:
    """Whether a call after the restart does again what was answered before it."""
    same = [other for other in done if other.intent == attempt.intent]
    if not same:
        return False
    if any(
        other.start.idempotency_key is not None and other.start.idempotency_key == attempt.start.idempotency_key
        for other in same
    ):
        return True
    return view.asked_for(attempt.tool, attempt.digest) <= len(same)


def _is_another_intent(view: View, attempt: Attempt, restart: int) -> bool:
    """Whether a call that was under way at the crash is taken up again under a new intent or key."""
    if not view.is_write(attempt) or view.asked_for(attempt.tool, attempt.digest) > 1:
        return False
    before = [other.start for other in view.by_intent[attempt.intent] if other.line < restart]
    return any(
        mine is not None and its is not None and mine != its
        for start in before
        for mine, its in (
            (attempt.start.intent_id, start.intent_id),
            (attempt.start.idempotency_key, start.idempotency_key),
        )
    )
