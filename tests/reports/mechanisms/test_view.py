"""One run's history, arranged for questions."""

from __future__ import annotations

from reports.mechanisms.view import View, World
from tests.reports.builders import Story, registry


def view(story: Story) -> View:
    """The view of a story."""
    return View("r1", World(story.lines()), registry())


def test_forward_effects_are_the_services_word_else_claims() -> None:
    """An observed tool counts by its effects, a claimed-only one by its answers; undoing and faults are none."""
    story = Story().call("charge", key="k", effect="e1").call("charge", key="k2", digest="d2")
    story.effect("charge", "f", caused_by="fault").call("mail").call("mail", "timeout", digest="m2")
    found = [(effect.type, effect.tool) for _, effect in view(story).forward_effects]
    assert found == [("effect", "charge"), ("tool_call_started", "mail")]


def test_what_is_undone_is_told_by_the_service_else_by_the_agent() -> None:
    """A compensating effect for ground truth, `compensation_finished` for claims."""
    story = Story().call("charge", key="k", effect="e1").call("mail", step=2)
    story.add("compensation_finished", step=1, outcome="ok").add("compensation_finished", step=2, outcome="ok")
    charge, mail = (effect for _, effect in view(story).forward_effects)
    assert not view(story).is_undone(charge)
    assert view(story).is_undone(mail)
    story.effect("refund", "c1", compensates="e1")
    assert view(story).is_undone(charge)


def test_the_last_end_gives_the_status_and_all_partial_successes_the_steps() -> None:
    """Contract section 4: if a run finishes more than once, the last counts; completed steps are joined."""
    story = (
        Story()
        .add("partial_success_returned", completed=[1, 2])
        .done("failed")
        .done("partial_success", completed=[3])
    )
    assert view(story).status == "partial_success"
    assert view(story).completed == {1, 2, 3}


def test_time_left_is_the_smaller_of_limit_and_carried_deadline() -> None:
    """A call that carries less than the run has left ends earlier."""
    story = Story(wall_clock_s=10).call("lookup", deadline_remaining_s=2).call("lookup", digest="d2")
    first, second = view(story).attempts
    assert round(view(story).left_after(first), 6) == 1.9
    assert round(view(story).left_after(second), 6) == 9.6
    assert view(Story().call("lookup")).left_after(view(Story().call("lookup")).attempts[0]) == float("inf")


def test_a_write_without_a_registry_is_keyed_by_its_key() -> None:
    """Without a declaration the key tells whether a write can be repeated."""
    story = Story().call("charge", key="k").call("charge", digest="d2").call("lookup", digest="d3")
    bare = View("r1", World(story.lines()))
    assert [bare.idempotency(attempt) for attempt in bare.attempts] == ["keyed", "irreversible", "natural"]
    assert [view(story).idempotency(attempt) for attempt in bare.attempts] == ["keyed", "keyed", "natural"]
