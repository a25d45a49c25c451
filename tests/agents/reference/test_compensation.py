"""Undoing, against a small world with real sockets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.agents.fake_shop import ORDER, REGISTRY
from tests.agents.fake_world import Fault, world
from tests.agents.reference.test_loop import kinds, play

NO = Fault("status", 500, error={"retryable": False, "may_have_taken_effect": False})
BUSY = Fault("status", 503, error={"retryable": True, "may_have_taken_effect": False})


def registry(tool: str, **compensation: Any) -> dict[str, Any]:
    """The registry with another compensation of one tool."""
    way = {**REGISTRY[tool]["compensation"], **compensation}
    return {**REGISTRY, tool: {**REGISTRY[tool], "compensation": way}}


def dispositions(folder: Path) -> dict[int, str]:
    """How each step was settled."""
    return {event["step"]: event["disposition"] for event in kinds(folder, "effect_settled")}


def test_a_strong_compensation_is_tried_three_times(tmp_path: Path) -> None:
    """Twice busy, then done: compensated, under one key."""
    with world(ORDER) as there:
        there.faults["ship"], there.faults["refund"] = [NO], [BUSY, BUSY]
        outcome = play(there, tmp_path)
    assert (outcome.status, there.undone()) == ("rolled_back", ["reserve", "charge"])
    assert len({seen.headers["idempotency-key"] for seen in there.calls("refund")}) == 1


def test_the_third_failure_goes_to_a_person(tmp_path: Path) -> None:
    """Busy for ever: three tries, manual, handed off; what came before is undone all the same."""
    with world(ORDER) as there:
        there.faults["ship"], there.faults["release"] = [NO], [BUSY] * 9
        outcome = play(there, tmp_path)
    assert (outcome.status, there.undone()) == ("handed_off", ["charge"])
    assert len(there.calls("release")) == 3
    assert dispositions(tmp_path) == {2: "manual", 1: "compensated"}
    assert [event["outcome"] for event in kinds(tmp_path, "compensation_finished")] == ["error", "ok"]
    assert kinds(tmp_path, "handed_off")[0]["untried"] == [{"step": 2, "why": "undoing failed: http_503"}]


def test_a_weak_compensation_is_tried_once(tmp_path: Path) -> None:
    """The model is lost after the shipment: its cancellation fails once, and a person has it."""
    with world(ORDER) as there:
        there.model_faults = [None, None, None, Fault("status", 400)]
        there.faults["cancel_shipment"] = [BUSY] * 9
        outcome = play(there, tmp_path)
    assert (outcome.status, there.undone()) == ("handed_off", ["reserve", "charge"])
    assert len(there.calls("cancel_shipment")) == 1
    assert dispositions(tmp_path)[3] == "manual"


def test_a_lost_reply_of_an_undoing_is_asked_for(tmp_path: Path) -> None:
    """The refund was made, its reply lost: asked for by key, not made again."""
    with world(ORDER) as there:
        there.faults["ship"], there.faults["refund"] = [NO], [Fault("drop")]
        outcome = play(there, tmp_path)
    assert (outcome.status, there.undone()) == ("rolled_back", ["reserve", "charge"])
    assert (len(there.calls("refund")), len(there.questions("refund"))) == (1, 1)


def test_what_has_expired_goes_to_a_person(tmp_path: Path) -> None:
    """The time in which a charge can be refunded is over: nothing is sent, and it is said."""
    with world(ORDER) as there:
        there.faults["ship"] = [NO]
        outcome = play(there, tmp_path, registry=registry("charge", until_s=0.1))
    assert (outcome.status, there.calls("refund")) == ("handed_off", [])
    assert kinds(tmp_path, "compensation_finished")[-1]["outcome"] == "expired"
    assert dispositions(tmp_path)[1] == "manual"


@pytest.mark.parametrize("way", [{"strength": "none"}, {"of": {"arg": "$.charge_id", "result": "$.nowhere"}}])
def test_what_has_no_way_back_goes_to_a_person(tmp_path: Path, way: dict[str, Any]) -> None:
    """No compensation, or one whose arguments are not to be had: manual, and the others are undone."""
    with world(ORDER) as there:
        there.faults["ship"] = [NO]
        outcome = play(there, tmp_path, registry=registry("charge", **way))
    assert (outcome.status, there.undone()) == ("handed_off", ["reserve"])
    assert dispositions(tmp_path) == {2: "compensated", 1: "manual"}


def test_undoing_that_breaks_down_leaves_nothing_unsaid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug in the middle of undoing: every effect that was not undone is handed to a person."""
    from agents.reference import saga

    def broken(*args: Any) -> Any:
        raise KeyError("bug")

    monkeypatch.setattr(saga, "undoing_arguments", broken)
    with world(ORDER) as there:
        there.faults["ship"] = [NO]
        outcome = play(there, tmp_path)
    assert outcome.status == "handed_off"
    assert dispositions(tmp_path) == {2: "manual", 1: "manual"}
    assert kinds(tmp_path, "exception")[0]["handled"] is True
