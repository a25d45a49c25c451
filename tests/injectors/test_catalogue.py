"""The catalogue: from a scenario's words to a fault, and what is said of each kind."""

from __future__ import annotations

from typing import Any

import pytest

from injectors.catalogue import KINDS, FaultError, described, fault_from
from injectors.network.latency import Latency
from injectors.site import Site

AT = {"tool": "charge"}


def refusals(**fields: Any) -> list[str]:
    """The messages that a fault is refused with."""
    with pytest.raises(FaultError) as caught:
        fault_from(**({"kind": "latency", "at": AT} | fields))
    return caught.value.messages


def test_a_fault_is_made_of_its_words() -> None:
    """Kind, site, times and parameters arrive where they belong."""
    made = fault_from(kind="latency", at=AT, times="always", parameters={"seconds": 2}, scenario="101", id="f1")
    assert made == Latency(at=Site(tool="charge"), times=None, scenario="101", id="f1", seconds=2)


def test_unknown_kinds_get_a_suggestion() -> None:
    """A misspelt kind is told with the nearest one."""
    assert refusals(kind="reply-list") == ["unknown kind `reply-list`, did you mean `reply-lost`?"]
    assert refusals(kind="qqq") == ["unknown kind `qqq`"]


def test_unknown_parameters_get_a_suggestion() -> None:
    """A misspelt parameter is told with the nearest one, else with all there are."""
    assert refusals(parameters={"second": 1}) == ["`latency` has no parameter `second`, did you mean `seconds`?"]
    assert refusals(parameters={"x": 1}) == ["`latency` has no parameter `x`; it knows seconds, when"]
    assert refusals(kind="executed-but-timeout", parameters={"x": 1}) == [
        "`executed-but-timeout` has no parameter `x`; it has none"
    ]


def test_all_mistakes_are_told_at_once() -> None:
    """Site, times, two parameters: four messages."""
    messages = refusals(at={"tool": "a", "call": 0}, times=0, parameters={"seconds": -1, "when": "later"})
    assert len(messages) == 4


@pytest.mark.parametrize("times", [0, -1, True, 1.5, "twice", None])
def test_times_is_a_number_or_always(times: Any) -> None:
    """Anything else is refused."""
    assert "`times`" in refusals(times=times)[0]


def test_kinds_strike_only_where_they_can() -> None:
    """A kind of the model is refused at a tool, a kind of tools at the model."""
    assert "cannot strike calls of tools" in refusals(kind="overloaded")[0]
    assert "cannot strike calls of the model" in refusals(kind="executed-but-failed", at={"model": True})[0]


def test_the_kinds_of_the_main_job_are_all_there() -> None:
    """At least these fourteen, over the four layers."""
    by_layer: dict[str, set[str]] = {}
    for kind in KINDS:
        by_layer.setdefault(kind.layer, set()).add(kind.kind)
    assert by_layer["network"] >= {"latency", "hang", "reset", "reply-lost", "truncated-body", "status"}
    assert by_layer["tool"] >= {"executed-but-failed", "executed-but-timeout", "rate-limited"}
    assert by_layer["model"] >= {"overloaded", "cut-stream", "truncated-output", "unknown-tool"}
    assert by_layer["crash"] >= {"kill"}


def test_a_kind_is_described_as_the_contract_says() -> None:
    """The fields of `scenarios kinds`, and bounds beside them."""
    data = described(Latency)
    assert list(data) == ["kind", "layer", "changes_server_state", "parameters", "agent_sees", "world_sees"]
    assert data["parameters"]["seconds"] == {"type": "number", "unit": "s", "default": 1.0, "least": 0, "most": 3600}
    assert data["parameters"]["when"]["choices"] == ["before", "after"]
