"""Waiting above a limit, and taking turns between tenants."""

from __future__ import annotations

from reports.mechanisms.attempts import Line
from tests.reports.builders import Story, seen


def fan_out(at_once: int, total: int = 4) -> Story:
    """The model wants `total` calls in one message; the agent sends them `at_once` at a time; two are allowed."""
    story = Story(max_concurrency=2)
    for n in range(total):
        story.asks("lookup", f"d{n}", step=1)
    for first in range(0, total, at_once):
        calls = [story.start("lookup", digest=f"d{n}") for n in range(first, min(total, first + at_once))]
        for call in calls:
            story.end(call, "lookup")
    return story.done()


def test_concurrency_limit_lets_the_rest_wait() -> None:
    """Four wanted, two at once, the rest in turn."""
    assert seen(fan_out(2), "concurrency_limit") == [True]


def test_concurrency_limit_is_missed_by_sending_all() -> None:
    """Four wanted, four at once."""
    assert seen(fan_out(4), "concurrency_limit") == [False]


def test_concurrency_limit_has_no_opportunity_within_the_limit() -> None:
    """Two wanted, two allowed; and without a limit nothing has to wait."""
    assert seen(fan_out(2, total=2), "concurrency_limit") == []
    story = Story().asks("lookup").asks("lookup", "d2").call("lookup").done()
    assert seen(story, "concurrency_limit") == []


def test_concurrency_limit_of_a_group_counts_its_own_calls() -> None:
    """One payment at a time, however many lookups run beside it."""
    story = Story(group_concurrency={"payments": 1}).asks("charge").asks("charge", "d2").asks("lookup", "d3")
    story.call("charge", key="k1", resource_group="payments")
    story.call("charge", key="k2", digest="d2", resource_group="payments").done()
    assert seen(story, "concurrency_limit") == [True]


def two_tenants(order: str, **limits: float) -> list[Line]:
    """Tenant a queues one call, tenant b three after it; `order` says who starts when (a, b)."""
    a, b = Story("ra", tenant="a", **limits), Story("rb", tenant="b")
    records = [*a.records, *b.records]
    a.records.clear()
    b.records.clear()
    a.add("tool_call_queued", attempt_id="qa", resource_group="g")
    b.t = a.t
    for n in range(3):
        b.add("tool_call_queued", attempt_id=f"qb{n}", resource_group="g", after=0.01)
    records += [*a.records, *b.records]
    now, next_b = b.t, 0
    for who in order:
        now += 0.5
        story = a if who == "a" else b
        story.records.clear()
        story.t = now
        story.add("tool_call_started", after=0, tool="lookup", attempt_id="qa" if who == "a" else f"qb{next_b}")
        next_b += who == "b"
        records += story.records
    return list(enumerate(records, start=1))


def test_tenant_fairness_takes_turns() -> None:
    """The earlier tenant goes first, or after one call of the other."""
    assert seen(two_tenants("abbb"), "tenant_fairness", run_id="ra") == [True]
    assert seen(two_tenants("babb"), "tenant_fairness", run_id="ra") == [True]


def test_tenant_fairness_is_missed_by_serving_one_first() -> None:
    """Two later calls of the other tenant go before, or the waiting one never starts."""
    assert seen(two_tenants("bbab"), "tenant_fairness", run_id="ra") == [False]
    assert seen(two_tenants("bbb"), "tenant_fairness", run_id="ra") == [False]


def test_tenant_fairness_is_measured_against_the_declared_wait() -> None:
    """With a bound the waiting time decides, not the number of calls before."""
    assert seen(two_tenants("bbab", max_tenant_wait_s=2), "tenant_fairness", run_id="ra") == [True]
    assert seen(two_tenants("bbab", max_tenant_wait_s=1), "tenant_fairness", run_id="ra") == [False]


def test_tenant_fairness_has_no_opportunity_for_one_tenant_alone() -> None:
    """Nobody later of another tenant: nothing to be fair about."""
    assert seen(two_tenants("abbb"), "tenant_fairness", run_id="rb") == []
