"""Starts joined with finishes, and what an end means."""

from __future__ import annotations

import pytest

from reports.mechanisms.attempts import Attempt, paired, source_of, with_digests
from tests.reports.builders import Story
from traces.history import ErrorInfo, Record


def finished(outcome: str, status: int | None = None, error: ErrorInfo | None = None) -> Attempt:
    """An attempt with this end."""
    start = Record(type="tool_call_started", t=1, run_id="r", tool="x")
    end = Record(type="tool_call_finished", t=2, run_id="r", outcome=outcome, http_status=status, error=error)
    return Attempt(1, start, 2, end)


@pytest.mark.parametrize(
    ("attempt", "retryable", "uncertain"),
    [
        (finished("ok"), False, False),
        (finished("deduplicated"), False, False),
        (finished("timeout"), True, True),
        (finished("unknown"), True, True),
        (finished("error", 503), True, False),
        (finished("error", 501), False, False),
        (finished("error"), True, False),
        (finished("rejected", 400), False, False),
        (finished("error", 503, ErrorInfo(retryable=False)), False, False),
        (finished("rejected", 409, ErrorInfo(retryable=True)), True, False),
        (finished("error", 500, ErrorInfo(may_have_taken_effect=True)), True, True),
        (Attempt(1, Record(type="tool_call_started", t=1, run_id="r")), False, True),
    ],
)
def test_what_an_end_means_for_the_caller(attempt: Attempt, retryable: bool, uncertain: bool) -> None:
    """The error's own word comes first, then outcome and status."""
    assert (attempt.retryable, attempt.uncertain) == (retryable, uncertain)


@pytest.mark.parametrize(
    ("status", "asked", "wait"),
    [(429, 2.0, 2.0), (503, 2.0, 2.0), (529, 2.0, 2.0), (500, 2.0, None), (429, None, None), (429, -1.0, None)],
)
def test_only_busy_answers_ask_to_wait(status: int, asked: float | None, wait: float | None) -> None:
    """429, 503 and 529 with a valid time."""
    assert finished("error", status, ErrorInfo(retry_after_s=asked)).wait_s == wait


def test_starts_and_finishes_are_joined_by_their_id() -> None:
    """Of several finishes the first after the start counts, a second start of an id is none."""
    story = Story()
    call = story.start("lookup")
    story.end(call, "lookup", "timeout").end(call, "lookup").add("tool_call_started", attempt_id=call, tool="lookup")
    (attempt,) = paired(story.lines(), "tool_call_started", "tool_call_finished")
    assert (attempt.line, attempt.end_line, attempt.outcome) == (2, 3, "timeout")


def test_calls_without_id_are_joined_by_tool_and_step() -> None:
    """Imported histories may carry none."""
    story = Story().add("tool_call_started", tool="lookup", step=1).add("tool_call_started", tool="lookup", step=1)
    story.add("tool_call_finished", tool="lookup", step=1, outcome="ok")
    attempts = paired(story.lines(), "tool_call_started", "tool_call_finished")
    assert [attempt.outcome for attempt in attempts] == ["never", "ok"]


def test_a_missing_intent_digest_is_taken_from_the_same_key_or_arguments() -> None:
    """The wire computes it; the agent's own record need not."""
    story = Story()
    story.call("charge", key="k", digest="d", intent_digest="i").call("charge", key="k", digest="d")
    story.call("charge", key="k2", digest="d").call("charge", key="k3", digest="other")
    attempts = with_digests(paired(story.lines(), "tool_call_started", "tool_call_finished"))
    assert [attempt.digest for attempt in attempts] == ["i", "i", "i", "other"]


@pytest.mark.parametrize(
    ("record", "source"),
    [
        ({"type": "effect"}, "service"),
        ({"type": "fault_injected"}, "harness"),
        ({"type": "model_tool_call"}, "wire"),
        ({"type": "tool_call_started"}, "agent"),
        ({"type": "tool_call_started", "source": "wire"}, "wire"),
    ],
)
def test_sources_have_the_defaults_of_the_contract(record: dict[str, str], source: str) -> None:
    """Service for effects, harness and wire for their own types, else the agent."""
    assert source_of(Record(t=1, run_id="r", **record)) == source  # type: ignore[arg-type]
