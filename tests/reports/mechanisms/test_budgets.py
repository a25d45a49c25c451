"""Stopping before a budget is passed, once per run and budget."""

from __future__ import annotations

from tests.reports.builders import Story, seen


def test_steps_are_stopped_with_a_word_and_an_end() -> None:
    """The model wants more, the steps are used up, the agent says so and ends."""
    story = Story(steps=1).call("lookup", step=1).asks("lookup", "d2")
    story.add("budget_exhausted", budget="steps").done("failed", error={"kind": "budget"})
    assert seen(story, "budget_stop_steps") == [True]


def test_steps_are_passed_in_silence() -> None:
    """A step beyond the limit is an opportunity not taken."""
    assert seen(Story(steps=1).call("lookup", step=1).call("lookup", step=2).done(), "budget_stop_steps") == [False]


def test_steps_that_suffice_are_no_opportunity() -> None:
    """A run that ends at its limit because it was done had nothing to stop."""
    assert seen(Story(steps=1).asks("lookup").call("lookup", step=1).done(), "budget_stop_steps") == []


def test_wall_clock_is_stopped() -> None:
    """Less is left than the next call needs, and the agent ends explicitly."""
    story = Story(wall_clock_s=1.5).call("lookup").asks("lookup", "d2", after=1.0)
    story.add("budget_exhausted", budget="wall_clock").done("failed", error={"kind": "budget"})
    assert seen(story, "budget_stop_wall_clock") == [True]


def test_wall_clock_is_overrun() -> None:
    """Acting past the end of the time is an opportunity not taken."""
    story = Story(wall_clock_s=0.5).call("charge", after=0.9).done("failed")
    assert seen(story, "budget_stop_wall_clock") == [False]


def test_wall_clock_that_suffices_is_no_opportunity() -> None:
    """A quick run had nothing to stop, and without a limit there is nothing to pass."""
    assert seen(Story(wall_clock_s=30).call("lookup").done(), "budget_stop_wall_clock") == []
    assert seen(Story().call("lookup").done(), "budget_stop_wall_clock") == []


def test_tokens_are_stopped() -> None:
    """One more inference of the size of the last would pass the limit."""
    story = Story(tokens=150).model(tokens=100).asks("lookup")
    story.add("budget_exhausted", budget="tokens").done("failed", error={"kind": "budget"})
    assert seen(story, "budget_stop_tokens") == [True]


def test_tokens_are_overrun() -> None:
    """The next inference is made although it passes the limit."""
    assert seen(Story(tokens=150).model(tokens=100).model(tokens=100).done(), "budget_stop_tokens") == [False]


def test_tokens_that_are_up_are_not_spoken_of() -> None:
    """The calls of the last message ask for one more inference: ending without a word is an opportunity not taken."""
    story = Story(tokens=150).model(tokens=100).asks("lookup").call("lookup")
    assert seen(story.done("failed", error={"kind": "x"}), "budget_stop_tokens") == [False]


def test_tokens_that_suffice_are_no_opportunity() -> None:
    """The last inference ended the task: none was to follow."""
    assert seen(Story(tokens=150).model(tokens=100).done(), "budget_stop_tokens") == []


def test_cost_is_stopped_or_overrun() -> None:
    """Dollars are a budget of their own."""
    kept = (
        Story(cost_usd=0.15).model(cost_usd=0.1).asks("lookup").add("budget_exhausted", budget="cost").done("failed")
    )
    assert seen(kept, "budget_stop_cost") == [True]
    passed = Story(cost_usd=0.15).model(cost_usd=0.1).model(cost_usd=0.1).done()
    assert seen(passed, "budget_stop_cost") == [False]
    assert seen(Story(cost_usd=0.5).model(cost_usd=0.1).done(), "budget_stop_cost") == []


def test_a_word_without_an_explicit_end_is_no_stop() -> None:
    """Saying that the budget is gone and then claiming success is not stopping."""
    story = Story(tokens=150).model(tokens=100).asks("lookup").add("budget_exhausted", budget="tokens").done()
    assert seen(story, "budget_stop_tokens") == [False]
