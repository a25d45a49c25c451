"""Noting before calling, and going on after a crash."""

from __future__ import annotations

from tests.reports.builders import Story, seen


def test_write_ahead_notes_before_the_call() -> None:
    """The ledger's record stood before the effectful call, also for its retry."""
    story = Story().add("mechanism_acted", name="write_ahead", tool="charge", step=1, idempotency_key="k")
    story.call("charge", "timeout", key="k").call("charge", key="k").done()
    assert seen(story, "write_ahead") == [True, True]


def test_write_ahead_is_missed_by_noting_afterwards() -> None:
    """A record that comes after the start, or belongs to another call, is none."""
    story = Story().call("charge", key="k")
    story.add("mechanism_acted", name="write_ahead", tool="charge", step=1, idempotency_key="k")
    assert seen(story.call("charge", key="k2", digest="d2", step=2).done(), "write_ahead") == [False, False]


def test_write_ahead_has_no_opportunity_for_reads() -> None:
    """Reading needs no ledger."""
    assert seen(Story().call("lookup").done(), "write_ahead") == []


def crashed(story: Story) -> Story:
    """The harness kills the agent and starts it again."""
    story.add("process_exited", source="harness", pid=1, generation=1, signal="SIGKILL", injected=True)
    return story.add("process_started", source="harness", pid=2, generation=2)


def test_resume_skips_what_is_done() -> None:
    """The finished charge is not sent again, the interrupted one goes on under its key and intent."""
    story = Story().asks("charge").asks("charge", "d2").call("charge", key="k1", effect="e1", intent_id="i:1")
    story.start("charge", digest="d2", idempotency_key="k2", intent_id="i:2", step=2)
    crashed(story).add("run_resumed", from_step=2, skipped=[1])
    story.call("charge", digest="d2", key="k2", intent_id="i:2", step=2, effect="e2").done()
    assert seen(story, "resume") == [True]


def test_resume_is_missed_by_starting_over() -> None:
    """What was answered before the crash is sent again, even under its old key."""
    story = crashed(Story().asks("charge").call("charge", key="k1", effect="e1"))
    assert seen(story.call("charge", key="k1", effect="=e1").done(), "resume") == [False]


def test_resume_is_missed_under_a_new_intent() -> None:
    """The interrupted call comes back as if it were another one."""
    story = Story().asks("charge")
    story.start("charge", idempotency_key="k1", intent_id="i:1")
    assert seen(crashed(story).call("charge", key="k9", intent_id="j:1").done(), "resume") == [False]


def test_resume_is_missed_by_a_process_that_does_nothing() -> None:
    """A restarted process that neither acts nor ends did not resume."""
    assert seen(crashed(Story().call("lookup")), "resume") == [False]


def test_a_second_equal_gift_after_the_crash_is_no_repeat() -> None:
    """The model asked twice, one was done: the other is still due."""
    story = Story().asks("charge").asks("charge").call("charge", key="k1", effect="e1")
    assert seen(crashed(story).call("charge", key="k2", effect="e2").done(), "resume") == [True]


def test_resume_has_no_opportunity_without_an_injected_crash() -> None:
    """A quiet run, and a process that fell by itself, are not asked to resume."""
    assert seen(Story().call("charge", key="k").done(), "resume") == []
    fell = Story().add("process_exited", source="harness", exit_code=1).add("process_started", source="harness")
    assert seen(fell.done("failed"), "resume") == []
