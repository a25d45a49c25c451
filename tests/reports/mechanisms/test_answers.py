"""Answers that say what they lack."""

from __future__ import annotations

from tests.reports.builders import Story, seen


def test_degraded_answer_says_which_source_is_gone() -> None:
    """A reading tool never answered and the outcome says so."""
    story = Story().call("lookup", "timeout").done("partial_success", degraded=[{"what": "stock", "why": "down"}])
    assert seen(story, "degraded_answer") == [True]


def test_degraded_answer_is_missed_by_keeping_silent() -> None:
    """The source is gone and the run claims a full answer."""
    assert seen(Story().call("lookup", "timeout").done(), "degraded_answer") == [False]


def test_degraded_answer_is_due_when_the_next_inference_cannot_be_paid() -> None:
    """Less than one inference is left while the model still wants to go on."""
    story = Story(tokens=150).model(tokens=100).asks("lookup", args={"id": "x"}).call("lookup")
    assert seen(story.done("partial_success"), "degraded_answer") == [False]


def test_degraded_answer_has_no_opportunity_where_sources_answer() -> None:
    """A retry that got its answer, and a write that failed, leave no source missing."""
    assert seen(Story().call("lookup", "timeout").call("lookup").done(), "degraded_answer") == []
    assert seen(Story().call("charge", "timeout", key="k").done("failed"), "degraded_answer") == []
