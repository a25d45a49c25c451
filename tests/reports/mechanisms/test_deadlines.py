"""Carrying the deadline, and refusing what cannot end in time."""

from __future__ import annotations

from tests.reports.builders import Story, seen


def test_deadline_propagation_falls_from_call_to_call() -> None:
    """Each call carries what is left, and it falls with the clock."""
    story = Story(wall_clock_s=30).call("lookup", deadline_remaining_s=29.9)
    assert seen(story.call("lookup", deadline_remaining_s=29.6).done(), "deadline_propagation") == [True, True]


def test_deadline_propagation_is_missed_without_a_header_or_by_starting_again() -> None:
    """A call without the header, and one with a fresh deadline, do not propagate it."""
    story = Story(wall_clock_s=30).call("lookup", deadline_remaining_s=10).call("lookup")
    story.add("tool_call_refused", tool="lookup", after=5).call("lookup", deadline_remaining_s=10).done()
    assert seen(story, "deadline_propagation") == [True, False, False]


def test_deadline_propagation_asks_nothing_of_calls_that_never_reached_the_wire() -> None:
    """An agent's own call without a wire record is no opportunity."""
    story = Story()
    story.call("lookup", source="agent", wire=None)
    assert seen(story.done(), "deadline_propagation") == []


def test_deadline_stop_refuses_for_the_budget() -> None:
    """Less is left than the tool's p99, and the call is refused before it is sent."""
    story = Story(wall_clock_s=0.5).add("tool_call_refused", tool="lookup", reason="budget").done("failed")
    assert seen(story, "deadline_stop") == [True]


def test_deadline_stop_is_missed_by_starting_anyway() -> None:
    """A call is started although less is left than its p99."""
    assert seen(Story(wall_clock_s=0.5).call("lookup").done(), "deadline_stop") == [False]
    assert seen(Story().call("lookup", deadline_remaining_s=0.4).done(), "deadline_stop") == [False]


def test_deadline_stop_has_no_opportunity_with_time_left_or_for_tokens() -> None:
    """Enough time is no reason to stop, and a refusal for tokens is another mechanism."""
    assert seen(Story(wall_clock_s=30).call("lookup").done(), "deadline_stop") == []
    story = Story(wall_clock_s=30).add("budget_exhausted", budget="tokens")
    assert seen(story.add("tool_call_refused", tool="lookup", reason="budget").done("failed"), "deadline_stop") == []
