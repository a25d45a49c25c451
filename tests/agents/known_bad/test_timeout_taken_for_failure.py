"""A time-out taken for a failure."""

from __future__ import annotations

from pathlib import Path

from agents.known_bad.timeout_taken_for_failure import judge_loss
from tests.agents.fake_shop import ORDER
from tests.agents.fake_world import Fault, world
from tests.agents.known_bad.variant import play


def test_an_executed_step_is_forgotten(tmp_path: Path) -> None:
    """The shipment was made and never answered: the others are undone, the shipment stands and nobody says so."""
    with world(ORDER) as there:
        there.faults["ship"] = [Fault("drop")]
        outcome = play(there, tmp_path, judge_loss=judge_loss)
    assert outcome.status == "rolled_back"
    assert there.standing() == ["ship"]
    assert there.questions("ship") == []
