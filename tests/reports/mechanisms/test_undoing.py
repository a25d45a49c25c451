"""Compensation, its retries, the hand-over, and saying what stayed."""

from __future__ import annotations

from typing import Any

from reports.mechanisms.attempts import Line
from reports.mechanisms.catalogue import detect
from tests.reports.builders import Story, seen

FAILED: dict[str, Any] = {"http_status": 500, "error": {"kind": "downstream", "retryable": True}}


def charged() -> Story:
    """A run that has charged once, as the model asked."""
    return Story().asks("charge").call("charge", key="k", effect="e1")


def undo(story: Story, outcome: str = "ok", *, strength: str = "strong", effect: str | None = "c1") -> Story:
    """One attempt to give the money back, on the wire and in the agent's own words."""
    story.add("compensation_started", step=1, tool="refund", strength=strength)
    if effect is not None and outcome == "ok":
        call = story.start("refund", digest="r1", idempotency_key="undo-k")
        story.effect("refund", effect, digest="r1", key="undo-k", compensates="e1").end(call, "refund")
    else:
        story.call("refund", outcome, digest="r1", key="undo-k", finish=FAILED)
    return story.add(
        "compensation_finished",
        step=1,
        tool="refund",
        strength=strength,
        outcome="ok" if outcome == "ok" else "error",
    )


def test_compensation_undoes_what_may_not_stay() -> None:
    """A run that rolls back gives the money back."""
    assert seen(undo(charged()).done("rolled_back"), "compensation") == [True]


def test_compensation_is_missed_where_the_effect_stays() -> None:
    """A run that failed and left the charge standing did not compensate."""
    assert seen(charged().done("failed", error={"kind": "x"}), "compensation") == [False]
    assert seen(charged().done("partial_success", completed=[2]), "compensation") == [False]


def test_compensation_has_no_opportunity_where_the_effect_may_stay() -> None:
    """Success keeps all, a partial success keeps what it names, and an effect can be settled as kept."""
    assert seen(charged().done(), "compensation") == []
    assert seen(charged().done("partial_success", completed=[1]), "compensation") == []
    kept = charged().add("effect_settled", step=1, disposition="kept").done("failed", error={"kind": "x"})
    assert seen(kept, "compensation") == []


def test_undoing_what_may_stay_is_no_compensation() -> None:
    """A run that succeeds may keep its effects; giving one back at the customer's wish counts neither way."""
    assert seen(undo(charged()).done(), "compensation") == []


def test_compensation_is_known_from_the_history_where_there_is_no_registry() -> None:
    """A tool whose effect was undone in one run of the world has a compensation in all of them."""
    first = undo(charged()).done("rolled_back")
    second = Story("r2").call("charge", digest="d2", key="k2", effect="e2").done("failed", error={"kind": "x"})
    lines = list(enumerate([*first.records, *second.records], 1))

    def acted(run_id: str, lines: list[Line]) -> list[bool]:
        return [o.acted for o in detect(lines, run_id=run_id) if o.mechanism == "compensation"]

    assert acted("r1", lines) == [True]
    assert acted("r2", lines) == [False]
    assert acted("r2", second.lines()) == []
    claimed = Story().call("charge", key="k").add("compensation_started", step=1, tool="refund").done("failed")
    assert acted("r1", claimed.lines()) == [False]


def test_compensation_retry_tries_again() -> None:
    """A strong undo that failed once is tried again."""
    story = undo(undo(charged(), "error")).done("rolled_back")
    assert seen(story, "compensation_retry") == [True]


def test_compensation_retry_is_missed_by_giving_up() -> None:
    """One failure and no second attempt."""
    assert seen(undo(charged(), "error").done("failed"), "compensation_retry") == [False]


def test_compensation_retry_has_no_opportunity_for_weak_or_smooth_undoing() -> None:
    """A weak undo goes to people, and one that worked needs nothing."""
    assert seen(undo(charged(), "error", strength="weak").done("failed"), "compensation_retry") == []
    assert seen(undo(charged()).done("rolled_back"), "compensation_retry") == []


def test_a_refund_that_the_model_asked_for_is_no_compensation() -> None:
    """The same tool in the plan is a forward call, whose failure is no failed undo."""
    story = Story().asks("refund", "r1").call("refund", "error", digest="r1", key="k", finish=FAILED).done("failed")
    assert seen(story, "compensation_retry") == []


def handed(story: Story) -> Story:
    """The agent settles the step as manual and hands over."""
    story.add("effect_settled", step=1, disposition="manual").add("handed_off", certain=["charge"])
    return story.done("handed_off")


def test_manual_handoff_after_a_weak_failure_or_three_strong_ones() -> None:
    """What a machine cannot undo goes to people, settled as manual."""
    assert seen(handed(undo(charged(), "error", strength="weak")), "manual_handoff") == [True]
    three = undo(undo(undo(charged(), "error"), "error"), "error")
    assert seen(handed(three), "manual_handoff") == [True]


def test_manual_handoff_is_missed_in_silence() -> None:
    """A weak failure, or an effect without any undo, that nobody hears of."""
    assert seen(undo(charged(), "error", strength="weak").done("failed"), "manual_handoff") == [False]
    story = Story().asks("mail").call("mail", effect="m1").done("failed", error={"kind": "x"})
    assert seen(story, "manual_handoff") == [False]


def test_manual_handoff_has_no_opportunity_where_undoing_works() -> None:
    """One failure that the second attempt heals needs nobody."""
    assert seen(undo(undo(charged(), "error")).done("rolled_back"), "manual_handoff") == []


def half_done() -> Story:
    """A charge stands and the second write failed for good."""
    return charged().asks("mail", "m").call("mail", "error", digest="m", step=2, finish=FAILED)


def test_partial_success_says_what_stayed() -> None:
    """The run returns what was completed and what failed."""
    story = half_done().add("partial_success_returned", completed=[1], failed=[{"step": 2, "reason": "down"}])
    assert seen(story.done("partial_success", completed=[1]), "partial_success") == [True]


def test_partial_success_is_missed_by_claiming_all_or_nothing() -> None:
    """Neither success nor plain failure is what happened."""
    assert seen(half_done().done(), "partial_success") == [False]
    assert seen(half_done().done("failed", error={"kind": "x"}), "partial_success") == [False]


def test_partial_success_has_no_opportunity_where_all_or_nothing_is_true() -> None:
    """All writes took effect, or all that did were undone, or the service refused one on its merits."""
    assert seen(charged().done(), "partial_success") == []
    story = undo(half_done()).done("rolled_back")
    assert seen(story, "partial_success") == []
    declined = charged().call("mail", "rejected", digest="m", step=2, finish={"http_status": 422}).done()
    assert seen(declined, "partial_success") == []


def test_an_attempt_that_never_reached_the_wire_belongs_to_its_intent() -> None:
    """The agent's own start knows no intent digest; its key tells that the later attempt is the same write."""
    story = charged().asks("mail", "m")
    story.start("charge", digest="d2", idempotency_key="k2", step=2, source="agent", wire=None)
    story.call("charge", digest="d2", key="k2", step=2, intent_digest="i2", effect="e2").done()
    assert seen(story, "partial_success") == []
    assert seen(story, "compensation") == []


def test_an_undo_whose_lost_answer_was_asked_for_did_not_fail() -> None:
    """The refund timed out, its state says applied: neither a retry nor people are needed."""
    story = charged().add("compensation_started", step=1, tool="refund", strength="strong")
    call = story.start("refund", digest="r1", idempotency_key="undo-k")
    story.effect("refund", "c1", digest="r1", key="undo-k", compensates="e1").end(call, "refund", "timeout")
    story.add("mechanism_acted", source="wire", name="outcome_query", tool="refund", idempotency_key="undo-k")
    story.add("compensation_finished", step=1, tool="refund", outcome="ok").done("rolled_back")
    assert seen(story, "compensation_retry") == []
    assert seen(story, "manual_handoff") == []
    assert seen(story, "outcome_query") == [True]
    assert seen(story, "retry") == []


def test_an_undo_that_is_known_to_be_done_did_not_fail_though_it_is_sent_again() -> None:
    """Whether the refund that was done is repeated changes nothing of what was known of it."""
    story = charged().add("compensation_started", step=1, tool="refund", strength="strong")
    call = story.start("refund", digest="r1", idempotency_key="undo-k")
    story.effect("refund", "c1", digest="r1", key="undo-k", compensates="e1").end(call, "refund", "timeout")
    story.add("mechanism_acted", source="wire", name="outcome_query", tool="refund", idempotency_key="undo-k")
    story.call("refund", digest="r1", key="undo-k")
    story.add("compensation_finished", step=1, tool="refund", outcome="ok").done("rolled_back")
    assert seen(story, "compensation_retry") == []


def test_what_is_in_peoples_hands_is_no_partial_success() -> None:
    """A handed-over effect stays by nobody's decision."""
    story = undo(undo(undo(half_done(), "error"), "error"), "error")
    assert seen(handed(story), "partial_success") == []


def test_the_third_failure_of_an_undo_asks_for_no_retry() -> None:
    """Two failures are tried again, the third goes to people."""
    story = handed(undo(undo(undo(charged(), "error"), "error"), "error"))
    assert seen(story, "compensation_retry") == [True, True]
    assert seen(story, "retry") == [True, True]
