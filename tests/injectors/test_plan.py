"""The plan: which faults act, and which cannot stand together. No socket, no time."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from injectors.catalogue import fault_from
from injectors.core import Fault, Moment, Place, Point, Reply, Request
from injectors.plan import Plan, shadows

GROUPS = {"charge": "payments", "refund": "payments", "ship": "parcels"}


def fault(kind: str, at: Any = None, times: Any = 1, **parameters: Any) -> Fault:
    """A fault, by default on the first attempt of the first `charge`."""
    return fault_from(kind=kind, at=at or {"tool": "charge"}, times=times, parameters=parameters)


def moment(point: Point, call: int = 1, attempt: int = 1) -> Moment:
    """A crossing of a `charge`."""
    place = Place(channel="tool", tool="charge", call=call, attempt=attempt, group="payments", group_call=call)
    reply = None if point is Point.BEFORE_SEND else Reply(200, (("content-type", "application/json"),), b'{"id":"x"}')
    return Moment(point, place, Request("POST", "/tools/charge", b"{}", tool="charge"), reply)


def kinds(plan: Plan, at: Moment) -> list[str]:
    """The kinds that act."""
    return [decision.fault.kind for decision in plan.decide(at)]


def test_the_index_alone_decides() -> None:
    """Whatever the order in which attempts arrive, the same ones are struck."""
    plan = Plan((fault("reset", {"tool": "charge", "call": 2}, times=2),))
    places = [(call, attempt) for call in (1, 2) for attempt in (1, 2, 3)]
    for order in permutations(places):
        struck = {place for place in order if kinds(plan, moment(Point.BEFORE_SEND, *place))}
        assert struck == {(2, 1), (2, 2)}


def test_faults_act_at_their_own_point() -> None:
    """A fault before the send and one after the effect of another attempt do not meet."""
    plan = Plan((fault("rate-limited"), fault("reply-lost", {"tool": "charge", "attempt": 2})))
    assert kinds(plan, moment(Point.BEFORE_SEND)) == ["rate-limited"]
    assert kinds(plan, moment(Point.AFTER_EFFECT)) == []
    assert kinds(plan, moment(Point.AFTER_EFFECT, attempt=2)) == ["reply-lost"]


def test_latency_comes_first_and_shares_its_point() -> None:
    """The delay is served before the error, whatever their order in the file."""
    for order in permutations((fault("latency"), fault("status"))):
        assert kinds(Plan(order), moment(Point.BEFORE_SEND)) == ["latency", "status"]


def test_without_hold_nothing_fires() -> None:
    """A fault that finds nothing to take hold of is no decision."""
    place = Place(channel="model", call=1, attempt=1)
    plain = Reply(200, (("content-type", "application/json"),), b"{}")
    at = Moment(Point.AFTER_EFFECT, place, Request("POST", "/v1/messages", api="anthropic-messages"), plain)
    assert Plan((fault("unknown-tool", {"model": True}),)).decide(at) == ()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        # the same point
        (fault("reset"), fault("status")),
        (fault("reply-lost"), fault("executed-but-failed")),
        (fault("kill"), fault("executed-but-failed")),
        (fault("reset", {"tool": "charge", "call": "all"}), fault("hang", {"tool": "charge", "call": 3})),
        (fault("reset", times=3), fault("status", {"tool": "charge", "attempt": 3})),
        (fault("reset", times="always"), fault("status", {"tool": "charge", "attempt": 9})),
        (fault("overloaded", {"model": 2}), fault("status", {"model": True, "call": 2})),
        # a point that is never reached
        (fault("status"), fault("reply-lost")),
        (fault("rate-limited"), fault("latency", when="after")),
        (fault("hang"), fault("kill", point="after-reply")),
        (fault("reply-lost"), fault("kill", point="after-reply")),
        # a group and its tools
        (fault("reset", {"group": "payments", "call": "all"}), fault("status")),
        (fault("reset", {"group": "parcels", "call": 2}), fault("status", {"tool": "ship", "call": 2})),
    ],
)
def test_shadows_are_found_in_either_order(first: Fault, second: Fault) -> None:
    """One sentence for the pair, which names both."""
    for pair in ((first, second), (second, first)):
        (reason,) = shadows(pair, GROUPS)
        assert f"`{first.kind}`" in reason
        assert f"`{second.kind}`" in reason


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (fault("reset"), fault("status", {"tool": "charge", "attempt": 2})),
        (fault("reset"), fault("status", {"tool": "charge", "call": 2})),
        (fault("reset"), fault("status", {"tool": "refund"})),
        (fault("reset"), fault("overloaded", {"model": 1})),
        (fault("latency"), fault("status")),
        (fault("latency"), fault("latency", when="after")),
        (fault("latency"), fault("latency")),
        (fault("executed-but-failed"), fault("kill", point="after-reply")),
        (fault("rate-limited"), fault("kill", point="after-reply")),
        (fault("latency"), fault("kill", point="before-send")),
        (fault("reset", {"group": "payments", "call": 2}), fault("status")),
        (fault("reset", {"group": "parcels", "call": "all"}), fault("status")),
    ],
)
def test_what_goes_together_is_let_be(first: Fault, second: Fault) -> None:
    """Faults that do not hide each other are no shadow in either order."""
    assert shadows((first, second), GROUPS) == []
    assert shadows((second, first), GROUPS) == []
