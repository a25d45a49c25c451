"""Breakers that open after their threshold and probe after their cool-down."""

from __future__ import annotations

from typing import Any

from tests.reports.builders import Story, seen


def failing(times: int, **limits: Any) -> Story:
    """A tool that times out so often in a row."""
    story = Story(**limits)
    for _ in range(times):
        story.call("lookup", "timeout")
    return story


def test_breaker_opens_at_its_threshold() -> None:
    """As many failures as its threshold says, then `open`."""
    story = failing(3)
    story.breaker("closed", "open", failures=3, threshold=3)
    assert seen(story.done("failed"), "breaker_open") == [True]


def test_breaker_stays_closed_past_the_usual_threshold() -> None:
    """An agent that never states a threshold should have opened after five failures."""
    assert seen(failing(6).done("failed"), "breaker_open") == [False]


def test_breaker_has_no_opportunity_before_the_threshold_or_between_successes() -> None:
    """Scattered failures open nothing."""
    assert seen(failing(4).done("failed"), "breaker_open") == []
    story = Story()
    for _ in range(4):
        story.call("lookup", "timeout").call("lookup", "timeout").call("lookup")
    assert seen(story.done(), "breaker_open") == []


def test_breaker_that_opened_before_its_threshold_is_no_opportunity() -> None:
    """Opening by a rule of its own counts no more than staying closed would have."""
    story = failing(2)
    story.breaker("closed", "open", failures=2, threshold=5)
    assert seen(story.done("failed"), "breaker_open") == []


def test_breaker_that_opened_by_failures_of_other_runs() -> None:
    """A breaker that several runs share opens by what all of them met."""
    other = failing(3).done("failed")
    story = Story("r2")
    story.call("lookup", "timeout").call("lookup", "timeout").breaker("closed", "open", failures=5, threshold=5)
    lines = list(enumerate([*other.records, *story.records], 1))
    assert seen(lines, "breaker_open", run_id="r2") == [True]


def opened(to: str, probes: int, **limits: Any) -> Story:
    """A breaker that opened, changed on, and let so many calls through."""
    story = Story(**limits).breaker("closed", "open")
    story.breaker("open", to)
    for _ in range(probes):
        story.call("lookup")
    return story.breaker(to, "closed").done()


def test_breaker_probe_lets_one_call_through() -> None:
    """Half open, one call, then closed again."""
    assert seen(opened("half_open", 1), "breaker_probe") == [True]
    assert seen(opened("half_open", 2, half_open_probes=2), "breaker_probe") == [True]


def test_breaker_probe_is_missed_by_a_crowd_or_by_closing_at_once() -> None:
    """More calls than allowed, or no half-open state at all, is no probing."""
    assert seen(opened("half_open", 3), "breaker_probe") == [False]
    assert seen(opened("closed", 1), "breaker_probe") == [False]


def test_breaker_probe_has_no_opportunity_while_open() -> None:
    """A breaker that stays open asks for nothing."""
    story = Story().breaker("closed", "open").done("failed")
    assert seen(story, "breaker_probe") == []
