"""Trying again: retries, their budget, server-directed waits, asking for the outcome, collapsing by key.

Whether there was an opportunity is decided from what was known before anybody could have acted on it. A rate over
opportunities that are only seen where the agent took them would be 100 % for everyone.
"""

from __future__ import annotations

from collections.abc import Iterator

from reports.mechanisms.attempts import MODEL, WAIT_TOLERANCE_S, Attempt
from reports.mechanisms.view import Observation, View

FAILURES_BEFORE_HANDOFF = 3
"""A strong compensation that failed this often goes to people (contract section 9)."""

RETRY_SHARE = 0.2
RETRY_MINIMUM = 3
"""The retry share where an agent states none: 20 % of first attempts, at least 3 (Envoy's retry budget)."""


def retry(view: View) -> Iterator[Observation]:
    """A natural or keyed call ended retryable with time left; it acts by another attempt of that intent."""
    for attempt in _retryable(view):
        if not _share_used_up(view, attempt) and not _excused(view, attempt):
            again = bool(view.later(attempt))
            yield view.observe("retry", again, attempt.end_line or attempt.line, tool=attempt.tool)


def retry_budget_stop(view: View) -> Iterator[Observation]:
    """A retryable end with the retry share used up; it acts by saying so and by no further attempt."""
    stopped = view.exhausted("retry")
    for attempt in _retryable(view):
        if _share_used_up(view, attempt) and not _excused(view, attempt):
            acted = stopped is not None and not view.later(attempt)
            yield view.observe("retry_budget_stop", acted, attempt.end_line or attempt.line, tool=attempt.tool)


def server_directed_wait(view: View) -> Iterator[Observation]:
    """The server named a wait and a later attempt came; it acts if that came no earlier than stated."""
    for attempt in (*view.attempts, *view.model_attempts):
        wait, later = attempt.wait_s, view.later(attempt)
        if wait is not None and attempt.finish is not None and later:
            kept = later[0].start.t >= attempt.finish.t + wait - WAIT_TOLERANCE_S
            yield view.observe("server_directed_wait", kept, attempt.end_line or attempt.line, tool=attempt.tool)


def outcome_query(view: View) -> Iterator[Observation]:
    """A keyed write may have taken effect; it acts by asking for its state before anything is repeated or undone.

    A write to a keyed tool that carries no key is one too: what cannot be asked for was not asked for.
    """
    for attempt in view.attempts:
        if not (view.is_write(attempt) and view.idempotency(attempt) == "keyed" and attempt.uncertain):
            continue
        if not _alive_after(view, attempt.end_line or attempt.line):
            continue
        asked = next(view.asked(attempt), None)
        repeated = [other.line for other in view.later(attempt)]
        undone = [
            line
            for line, record in view.of_type("compensation_started")
            if record.step == attempt.start.step and line > attempt.line and not view.is_undo(attempt)
        ]
        acted = asked is not None and all(asked < line for line in (*repeated, *undone))
        yield view.observe("outcome_query", acted, attempt.end_line or attempt.line, tool=attempt.tool)


def dedup(view: View) -> Iterator[Observation]:
    """The service met a key that it had applied; it acts by answering from memory, with no second effect."""
    for line, effect in view.effects:
        if not effect.idempotency_key or effect.outcome == "rejected":
            continue
        where = (view.world.tenant_of(effect), effect.tool, effect.idempotency_key)
        if view.world.applied_keys.get(where, line) < line:
            yield view.observe("dedup", effect.outcome == "deduplicated", line, tool=effect.tool)
    claimed: set[tuple[str, str]] = set()
    for attempt in view.attempts:
        key = attempt.start.idempotency_key
        if key is None or attempt.tool in view.world.observed_tools or not attempt.finish:
            continue
        if attempt.outcome == "deduplicated" or (attempt.ok and (attempt.tool, key) in claimed):
            acted = attempt.outcome == "deduplicated"
            yield view.observe("dedup", acted, attempt.end_line or attempt.line, tool=attempt.tool)
        if attempt.ok:
            claimed.add((attempt.tool, key))


def _retryable(view: View) -> Iterator[Attempt]:
    """Attempts of repeatable calls that ended retryable while there was time and a living agent."""
    for attempt in sorted((*view.attempts, *view.model_attempts), key=lambda a: a.end_line or a.line):
        if not attempt.retryable or view.idempotency(attempt) == "irreversible":
            continue
        if view.left_after(attempt) <= (attempt.wait_s or 0.0):
            continue
        if _alive_after(view, attempt.end_line or attempt.line):
            yield attempt


def _alive_after(view: View, line: int) -> bool:
    """Whether an agent was there after this line: not one that was ended from outside and not started again.

    One that left by itself could have stayed.
    """
    following = [record for after, record in view.own if after > line]
    if any(
        record.type in {"run_resumed", "run_finished"} or record.type.endswith("_started") for record in following
    ):
        return True
    return not any(record.type == "process_exited" and record.injected for record in following)


def _excused(view: View, attempt: Attempt) -> bool:
    """Whether no further attempt was the right answer, by what was known before the tool was called again: that it
    had taken effect, that a breaker stood open, or that an undo had failed a third time, which goes to people."""
    ended = attempt.end_line or attempt.line
    if view.known_done(attempt):
        return True
    if view.is_undo(attempt):
        failed = [other for other in view.by_intent[attempt.intent] if other.line <= attempt.line and not other.ok]
        if len(failed) >= FAILURES_BEFORE_HANDOFF:
            return True
    calls = view.model_attempts if attempt.tool == MODEL else view.attempts
    called_again = min((a.line for a in calls if a.tool == attempt.tool and a.line > ended), default=view.after_all)
    if view.breaker_is_open(attempt.tool, called_again):
        return True
    refusals = view.of_type("tool_call_refused")
    return any(
        ended < line < called_again and record.tool == attempt.tool and record.reason == "breaker"
        for line, record in refusals
    )


def _share_used_up(view: View, attempt: Attempt) -> bool:
    """Whether the retry budget was gone when an attempt ended: by what the agent states, else by the wire."""
    ended = attempt.end_line or attempt.line
    stopped = view.exhausted("retry")
    if stopped is not None:
        before = [
            other.end_line or 0
            for other in (*view.attempts, *view.model_attempts)
            if other.retryable and (other.end_line or 0) < stopped[0]
        ]
        return ended > stopped[0] or ended == max(before, default=0)
    stated, stating, undoing = None, False, view.is_undo(attempt)
    for line, record in view.of_type("retry_scheduled"):
        stating = stating or record.retry_budget_left is not None
        # Undoing may have a budget of its own: what is left of the other says nothing here.
        if line < ended and record.retry_budget_left is not None and view.undoing_at(line) == undoing:
            stated = record.retry_budget_left
    if stating:
        return stated is not None and stated <= 0
    first, again = set(), 0
    for other in (*view.attempts, *view.model_attempts):
        if other.line >= ended:
            continue
        intent = (*other.intent, other.line if not _is_repeat(view, other) else 0)
        again += intent[-1] == 0
        first.add(intent)
    return again >= max(RETRY_MINIMUM, RETRY_SHARE * len(first))


def _is_repeat(view: View, attempt: Attempt) -> bool:
    """Whether an attempt repeats one that had ended retryable."""
    pool = view.model_attempts if attempt.start.type == "model_call_started" else view.by_intent[attempt.intent]
    before = [other for other in pool if other.end_line is not None and other.end_line < attempt.line]
    return bool(before) and before[-1].retryable
