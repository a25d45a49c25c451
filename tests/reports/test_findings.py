"""Findings: each code with a run that shows it, and one that looks like it and does not."""

from __future__ import annotations

from typing import Any

from reports.findings import find
from tests.reports.builders import Story, registry

FAILED: dict[str, Any] = {"http_status": 500, "error": {"kind": "downstream", "retryable": True}}


def codes(story: Story, **more: Any) -> list[str]:
    """The codes of a story's findings."""
    return [finding.code for finding in find(story.lines(), registry=registry(), **more)]


def test_retry_after_ignored() -> None:
    """A repeat before the stated time is named with its line; a patient one is not."""
    busy = {"http_status": 429, "retry_after_s": 2.0, "error": {"kind": "rate_limited", "retryable": True}}
    hasty = Story().call("lookup", "error", finish=busy).call("lookup", after=0.5).done()
    assert codes(hasty) == ["retry-after-ignored"]
    assert codes(Story().call("lookup", "error", finish=busy).call("lookup", after=2.5).done()) == []


def test_retry_amplification() -> None:
    """Six sendings of one call are; six that the model asked for are not."""
    story = Story()
    for _ in range(6):
        story.call("lookup", "timeout")
    assert "retry-amplification" in codes(story.done("failed"))
    wanted = Story()
    for _ in range(6):
        wanted.asks("lookup").call("lookup")
    assert codes(wanted.done()) == []


def test_keyless_write() -> None:
    """A keyed tool without a key is; an irreversible one has none to give."""
    assert codes(Story().call("charge").done()) == ["keyless-write"]
    assert codes(Story().call("mail").done()) == []


def test_status_dishonest() -> None:
    """Success although the planned charge never happened."""
    story = Story().asks("mail", "m").call("mail", digest="m", effect="m1").asks("charge")
    story.call("charge", "error", key="k", finish=FAILED)
    assert codes(story.done()) == ["status-dishonest"]


def test_status_dishonest_where_nothing_took_effect_at_all() -> None:
    """Success although the only write that was planned timed out: no effect is there to compare with."""
    assert codes(Story().asks("charge").call("charge", "timeout", key="k").done()) == ["status-dishonest"]
    assert codes(Story().asks("charge").done()) == ["status-dishonest"]
    assert codes(Story().asks("charge").asks("lookup", complete=False).done("failed")) == []
    assert codes(Story().asks("charge", complete=False).done()) == []


def test_status_is_honest_where_only_the_wire_was_watched() -> None:
    """Where no service told anything, an answer on the wire that says done has to do."""
    assert codes(Story().asks("charge").call("charge", key="k").done()) == []


def test_status_is_honest_where_the_service_declined_or_a_later_call_did_it() -> None:
    """A refusal on its merits was told to the model; a repaired call took effect; a failure says so."""
    begun = Story().asks("mail", "m").call("mail", digest="m", effect="m1").asks("charge")
    rejected = {"http_status": 422, "error": {"kind": "declined"}}
    assert codes(begun.call("charge", "rejected", key="k", finish=rejected).done()) == []
    repaired = Story().asks("charge", "bad").call("charge", "error", digest="bad", key="k", finish=FAILED)
    repaired.asks("charge", "good").call("charge", digest="good", key="k2", effect="e1").done()
    assert codes(repaired) == []
    failed = Story().asks("charge").call("charge", "error", key="k", finish=FAILED).done("failed")
    assert codes(failed) == []


def test_service_duplicate() -> None:
    """The fault made the service act again: not the agent's doing."""
    story = Story().call("charge", key="k", effect="e1").effect("charge", "e2", key="k", caused_by="fault").done()
    assert codes(story) == ["service-duplicate"]


def test_phantom_claim() -> None:
    """The agent holds a second charge for done of which the service knows nothing."""
    story = Story().call("charge", key="k1", effect="e1").call("charge", digest="d2", key="k2", step=2).done()
    assert codes(story) == ["phantom-claim"]
    collapsed = Story().call("charge", "timeout", key="k", effect="e1").call("charge", key="k", effect="=e1").done()
    assert codes(collapsed) == []


def test_two_effects_in_one_step() -> None:
    """Steps are how effects are settled; two in one cannot be told apart."""
    story = Story().call("charge", key="k1", effect="e1").call("charge", digest="d2", key="k2", effect="e2").done()
    assert codes(story) == ["two-effects-in-one-step"]
    duplicate = Story().call("charge", key="k1", effect="e1").call("charge", key="k2", effect="e2").done()
    assert codes(duplicate) == []


def test_deadline_untraceable() -> None:
    """A limited run whose calls carry no deadline; one header is enough to trace it."""
    assert codes(Story(wall_clock_s=30).call("lookup").done()) == ["deadline-untraceable"]
    assert codes(Story(wall_clock_s=30).call("lookup", deadline_remaining_s=29).done()) == []


def test_unstructured_tool_error() -> None:
    """A bare 500 is; one that an injected fault caused, or that names its kind, is not."""
    bare = Story().call("lookup", "error", finish={"http_status": 500}).done("failed")
    assert codes(bare) == ["unstructured-tool-error"]
    assert codes(Story().call("lookup", "error", finish=FAILED).done("failed")) == []
    struck = Story()
    call = struck.start("lookup")
    struck.add("fault_injected", source="harness", layer="network").end(call, "lookup", "error", http_status=502)
    assert codes(struck.done("failed")) == []


def test_what_only_the_harness_sees_is_handed_in() -> None:
    """Hosts that nobody declared and processes that were left."""
    found = find(
        Story().done().lines(),
        egress=["api.example.com", "api.example.com"],
        orphans=[{"pid": 7, "cmd": "sleep 100"}, {}],
    )
    assert [finding.code for finding in found] == ["egress", "orphan-process", "orphan-process"]
    assert "api.example.com (twice)" in found[0].fact
    assert "Process 7 (sleep 100)" in found[1].fact


def test_every_finding_says_what_to_do() -> None:
    """Code, fact and advice, each a sentence."""
    for finding in find(Story(wall_clock_s=9).call("charge").done().lines(), registry=registry()):
        assert finding.fact.endswith(".")
        assert finding.advice.endswith(".")
        assert finding.lines
