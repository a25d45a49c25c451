"""Retries, their budget, server-directed waits, outcome queries and collapsing, each with and without acting."""

from __future__ import annotations

from typing import Any

from tests.reports.builders import Story, seen

FAILED: dict[str, Any] = {"http_status": 500, "error": {"kind": "downstream", "retryable": True}}


def test_retry_acts_by_another_attempt_of_the_intent() -> None:
    """A keyed write that failed retryable and was sent again is one opportunity, taken."""
    story = Story().call("charge", "error", key="k", finish=FAILED).call("charge", key="k", effect="e1").done()
    assert seen(story, "retry") == [True]


def test_retry_counts_also_under_a_new_key() -> None:
    """A key is a claim: another attempt of the intent is one whatever key it carries."""
    story = Story().call("charge", "error", key="k1", finish=FAILED).call("charge", key="k2").done()
    assert seen(story, "retry") == [True]


def test_retry_is_missed_where_the_agent_gives_up() -> None:
    """A retryable end with time left and no further attempt is an opportunity not taken."""
    story = Story(wall_clock_s=30).call("lookup", "timeout").done("failed", error={"kind": "timeout"})
    assert seen(story, "retry") == [False]


def test_retry_has_no_opportunity_for_irreversible_calls_or_without_time() -> None:
    """Neither an irreversible call nor a run out of time is asked to try again."""
    assert seen(Story().call("mail", "error", finish=FAILED).done("failed"), "retry") == []
    assert seen(Story(wall_clock_s=0.15).call("lookup", "timeout").done("failed"), "retry") == []
    assert seen(Story().call("charge", "rejected", key="k", finish={"http_status": 400}).done(), "retry") == []


def test_retry_sees_model_calls_too() -> None:
    """An overloaded gateway that is asked again is a retry of the model call."""
    story = Story().model("error", http_status=529).model().done()
    assert seen(story, "retry") == [True]


def test_retry_is_not_asked_of_a_process_that_died() -> None:
    """Nobody could try again after an exit without a restart."""
    story = Story().call("charge", "unknown", key="k").add("process_exited", source="harness", injected=True)
    assert seen(story, "retry") == []


def test_retry_is_not_asked_where_the_outcome_was_learnt() -> None:
    """A state query that answers makes a further attempt needless."""
    story = Story().call("charge", "timeout", key="k", effect="e1")
    story.add("mechanism_acted", source="wire", name="outcome_query", tool="charge", idempotency_key="k").done()
    assert seen(story, "retry") == []


def asks(story: Story, key: str = "k") -> Story:
    """The agent asks what became of a charge."""
    return story.add("mechanism_acted", source="wire", name="outcome_query", tool="charge", idempotency_key=key)


def test_what_excuses_from_a_retry_does_so_whether_it_comes_or_not() -> None:
    """A call known to be done asks for no further attempt, and one that is sent all the same is no credit."""
    story = asks(Story().call("charge", "timeout", key="k", effect="e1"))
    assert seen(story.call("charge", key="k", effect="=e1").done(), "retry") == []


def test_asking_excuses_only_from_what_had_been_done() -> None:
    """Where the answer is that nothing was done, another attempt is wanted: it comes, or it is missed."""
    again = asks(Story().call("charge", "timeout", key="k")).call("charge", key="k", effect="e1").done()
    assert seen(again, "retry") == [True]
    assert seen(asks(Story().call("charge", "timeout", key="k")).done("failed"), "retry") == [False]


def test_asking_is_taken_for_the_answer_where_nobody_watched() -> None:
    """By the agent's records alone the answer is not known; having asked excuses from another attempt."""
    story = Story()
    call = story.start("charge", idempotency_key="k", source="agent", wire=None)
    story.add("tool_call_finished", attempt_id=call, tool="charge", outcome="timeout")
    assert seen(asks(story).done("failed"), "retry") == []


def test_asking_after_the_retry_takes_nothing_back() -> None:
    """What became known when the next attempt was out says nothing of whether it was right to send it."""
    story = Story().call("charge", "timeout", key="k", effect="e1").call("charge", "timeout", key="k", effect="=e1")
    assert seen(asks(story).done(), "retry") == [True]


def test_an_open_breaker_excuses_also_from_a_retry_that_comes_later() -> None:
    """Waiting for the probe is right, and so the probe is no retry; a breaker that opens later excuses nothing."""
    story = Story().call("lookup", "timeout").breaker("closed", "open").breaker("open", "half_open")
    assert seen(story.call("lookup").done(), "retry") == [True], "half open again before the next call"
    story = Story().call("lookup", "timeout").breaker("closed", "open").call("lookup").done()
    assert seen(story, "retry") == []
    story = Story().call("lookup", "timeout").call("lookup", "timeout").breaker("closed", "open").done("failed")
    assert seen(story, "retry") == [True]


def test_retry_is_missed_by_a_process_that_left_by_itself() -> None:
    """An agent that exits instead of trying again had the chance to."""
    story = Story().call("lookup", "timeout").add("process_exited", source="harness", exit_code=0)
    assert seen(story, "retry") == [False]


def test_retry_budget_stop_is_not_asked_of_what_is_done() -> None:
    """Past the share, a call that is known to be done asks for no stop, said or not."""
    silent = asks(Story().call("charge", "timeout", key="k", effect="e1"))
    assert seen(silent.add("budget_exhausted", budget="retry").done(), "retry_budget_stop") == []


def test_a_second_equal_gift_is_no_retry_of_the_first() -> None:
    """Two equal actions that the model asked for are two intents."""
    story = Story().asks("charge").asks("charge")
    story.call("charge", "error", key="k1", finish=FAILED).call("charge", key="k2").done()
    assert seen(story, "retry") == [False]


def test_retry_budget_stop_acts_by_saying_so_and_stopping() -> None:
    """With the share used up the agent says so and sends nothing more."""
    story = Story().call("lookup", "timeout").add("budget_exhausted", budget="retry").done("failed")
    assert seen(story, "retry_budget_stop") == [True]
    assert seen(story, "retry") == []


def test_retry_budget_stop_is_missed_by_going_on() -> None:
    """An agent that goes on after its share is used up does not stop."""
    story = Story().call("lookup", "timeout").add("budget_exhausted", budget="retry").call("lookup").done()
    assert seen(story, "retry_budget_stop") == [False]


def test_retry_budget_stop_is_seen_on_the_wire_of_a_silent_agent() -> None:
    """Where nobody states a share, the fourth repeat of a failing call is past it."""
    story = Story()
    for _ in range(5):
        story.call("lookup", "timeout")
    story.done("failed")
    assert seen(story, "retry_budget_stop") == [False, False]
    assert seen(story, "retry") == [True, True, True]


def test_retry_budget_stop_has_no_opportunity_while_there_is_share_left() -> None:
    """A first failure is no reason to stop."""
    assert seen(Story().call("lookup", "timeout").call("lookup").done(), "retry_budget_stop") == []


def busy(wait: float) -> dict[str, Any]:
    """An answer that asks to wait."""
    return {"http_status": 429, "retry_after_s": wait, "error": {"kind": "rate_limited", "retryable": True}}


def test_server_directed_wait_is_kept() -> None:
    """The later attempt comes when the stated time has passed."""
    story = Story().call("lookup", "error", finish=busy(1.0)).call("lookup", after=1.0).done()
    assert seen(story, "server_directed_wait") == [True]


def test_server_directed_wait_is_ignored() -> None:
    """The later attempt comes too early."""
    story = Story().call("lookup", "error", finish=busy(1.0)).call("lookup", after=0.5).done()
    assert seen(story, "server_directed_wait") == [False]


def test_server_directed_wait_needs_a_later_attempt_and_a_valid_header() -> None:
    """Giving up is no wait, and an answer without Retry-After asks for none."""
    assert seen(Story().call("lookup", "error", finish=busy(1.0)).done("failed"), "server_directed_wait") == []
    plain = {"http_status": 429, "error": {"retryable": True}}
    assert seen(Story().call("lookup", "error", finish=plain).call("lookup").done(), "server_directed_wait") == []


def test_outcome_query_comes_before_the_repeat() -> None:
    """The state of a timed-out write is asked for before it is sent again."""
    story = Story().call("charge", "timeout", key="k")
    story.add("mechanism_acted", source="wire", name="outcome_query", tool="charge", idempotency_key="k")
    assert seen(story.call("charge", key="k").done(), "outcome_query") == [True]


def test_outcome_query_is_missed_by_repeating_or_undoing_first() -> None:
    """Asking after the repeat is too late, and so is not asking."""
    late = Story().call("charge", "timeout", key="k").call("charge", key="k")
    late.add("mechanism_acted", source="wire", name="outcome_query", tool="charge", idempotency_key="k").done()
    assert seen(late, "outcome_query") == [False]
    never = (
        Story().call("charge", "unknown", key="k").add("compensation_started", step=1, tool="refund").done("failed")
    )
    assert seen(never, "outcome_query") == [False]


def test_outcome_query_is_wanted_after_an_error_that_may_have_taken_effect() -> None:
    """An error that does not tell whether the write was done leaves the same question as a time-out."""
    doubtful = {"http_status": 500, "error": {"kind": "downstream", "may_have_taken_effect": True}}
    story = Story().call("charge", "error", key="k", effect="e1", finish=doubtful)
    assert seen(story.call("charge", key="k", effect="=e1").done(), "outcome_query") == [False]
    story = asks(Story().call("charge", "error", key="k", effect="e1", finish=doubtful))
    assert seen(story.done(), "outcome_query") == [True]


def test_outcome_query_is_missed_without_a_key() -> None:
    """A write to a keyed tool that carries no key leaves nothing to ask for."""
    assert seen(Story().call("charge", "timeout").call("charge").done(), "outcome_query") == [False]


def test_outcome_query_has_no_opportunity_for_known_ends_and_reads() -> None:
    """A known failure, and a read, leave nothing to ask."""
    assert seen(Story().call("charge", "error", key="k", finish=FAILED).done(), "outcome_query") == []
    assert seen(Story().call("lookup", "timeout").done(), "outcome_query") == []


def test_dedup_answers_from_memory() -> None:
    """The service met an applied key and did nothing more."""
    story = Story().call("charge", "timeout", key="k", effect="e1").call("charge", key="k", effect="=e1").done()
    assert seen(story, "dedup") == [True]


def test_dedup_is_missed_by_a_second_effect() -> None:
    """The service applied the same key again."""
    story = Story().call("charge", "timeout", key="k", effect="e1").call("charge", key="k", effect="e2").done()
    assert seen(story, "dedup") == [False]


def test_dedup_has_no_opportunity_under_new_keys_or_by_the_fault_itself() -> None:
    """A new key is nothing to collapse, and what the fault repeats takes part in nothing."""
    story = Story().call("charge", "timeout", key="k1", effect="e1").call("charge", key="k2", effect="e2").done()
    assert seen(story, "dedup") == []
    again = Story().call("charge", key="k", effect="e1").effect("charge", "e2", key="k", caused_by="fault").done()
    assert seen(again, "dedup") == []


def test_dedup_of_claims_is_told_by_the_answer() -> None:
    """Without a word of the service the answer `deduplicated` shows that it collapsed."""
    story = Story().call("charge", key="k").call("charge", "deduplicated", key="k").done()
    assert seen(story, "dedup") == [True]


def test_the_retry_budget_of_undoing_is_another_one() -> None:
    """A forward budget that is used up says nothing of the undo's own."""
    story = Story().asks("charge").call("charge", key="k", effect="e1").asks("mail")
    story.add("retry_scheduled", retry_budget_left=0.0).add("compensation_started", step=1, tool="refund")
    story.call("refund", "error", digest="r", key="u", finish=FAILED)
    story.call("refund", digest="r", key="u").add("compensation_finished", step=1, outcome="ok").done("rolled_back")
    assert seen(story, "retry_budget_stop") == []
    assert seen(story, "retry") == [True]


def test_retry_budget_stop_follows_what_the_agent_states() -> None:
    """Nothing left by its own word: it stops, and says so."""
    story = Story().call("lookup", "timeout").add("retry_scheduled", tool="lookup", retry_budget_left=0.0)
    story.call("lookup", "timeout")
    assert seen(story, "retry_budget_stop") == [False]
    story.add("budget_exhausted", budget="retry").done("failed")
    assert seen(story, "retry_budget_stop") == [True]
    assert seen(story, "retry") == [True]
