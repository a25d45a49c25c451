"""What the agent believes of its tools."""

from __future__ import annotations

from typing import Any

import pytest

from agents.reference.task import Offer
from agents.reference.tools import DEFAULT_P99_S, FACTOR, Tool, Toolbox


def tool(**data: Any) -> Tool:
    """One registered tool."""
    return Toolbox([], {"t": data}).any("t")


def test_nothing_known_is_the_worst() -> None:
    """A tool that no registry speaks of is irreversible, has an effect, and is as grave as money."""
    known = Toolbox([Offer("t", "", {"type": "object"})], {}).any("t")
    assert (known.idempotency, known.effectful, known.grave, known.repeatable) == ("irreversible", True, True, False)
    assert known.compensation is None


@pytest.mark.parametrize(
    ("data", "severity", "grave"),
    [
        ({"idempotency": "natural"}, "none", False),
        ({"idempotency": "keyed"}, "internal", False),
        ({"idempotency": "keyed", "severity": "visible"}, "visible", True),
        ({"idempotency": "irreversible", "severity": "visible"}, "visible", False),
        ({"idempotency": "irreversible", "severity": "money"}, "money", True),
        ({"idempotency": "keyed", "severity": "odd"}, "money", True),
    ],
)
def test_severity(data: dict[str, Any], severity: str, grave: bool) -> None:
    """Defaults of the contract; a notice past recall is minor, money never is, what is not understood is grave."""
    known = tool(**data)
    assert (known.severity, known.grave) == (severity, grave)


@pytest.mark.parametrize(
    ("latency", "p99"),
    [
        (None, DEFAULT_P99_S),
        ({"p99_s": 0.5}, 0.5),
        ({"p99_s": 0.5, "samples": 4000}, 0.5),
        ({"p99_s": 0.5, "samples": 3}, DEFAULT_P99_S),
        ({"p99_s": 9.0, "samples": 3}, 9.0),
    ],
)
def test_a_profile_of_few_samples_is_not_believed(latency: dict[str, float] | None, p99: float) -> None:
    """Below the sample floor the cautious value stands in."""
    known = tool(idempotency="keyed", latency=latency)
    assert (known.p99_s, known.need_s) == (p99, p99 * FACTOR)


def test_the_place_of_the_key() -> None:
    """Header by default; the registry may name another, or a field of the body instead."""
    assert tool().key_header == "Idempotency-Key"
    assert tool(key={"header": "X-Key"}).key_header == "X-Key"
    body = tool(key={"json": "$.request_id"})
    assert (body.key_header, body.key_path) == (None, "$.request_id")


def test_compensation() -> None:
    """The mapping `of` is read; a compensation without a tool is none."""
    way = tool(compensation={"tool": "u", "of": {"arg": "$.a", "result": "$.id"}, "strength": "strong"}).compensation
    assert way is not None
    assert (way.tool, way.argument, way.result, way.strength, way.until_s) == ("u", "$.a", "$.id", "strong", None)
    assert tool(compensation={"strength": "none"}).compensation is None


def test_the_model_may_call_what_it_is_offered() -> None:
    """A registered tool that was not offered is for undoing only; an unheard-of one exists for nobody."""
    box = Toolbox([Offer("a", "", {})], {"a": {"idempotency": "keyed"}, "undo_a": {"idempotency": "keyed"}})
    assert box.names == ("a",)
    assert box.offered("undo_a") is None
    assert box.any("undo_a").repeatable is True
    assert box.any("nobody").repeatable is False
