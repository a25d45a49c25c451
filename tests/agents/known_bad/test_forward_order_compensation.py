"""Undoing from the wrong end."""

from __future__ import annotations

from pathlib import Path

from agents.known_bad.forward_order_compensation import oldest_first
from tests.agents.fake_shop import ORDER
from tests.agents.fake_world import Fault, world
from tests.agents.known_bad.variant import play


def test_the_charge_is_gone_before_the_reservation(tmp_path: Path) -> None:
    """Everything is undone, in the order in which it was made."""
    with world(ORDER) as there:
        there.faults["ship"] = [Fault("status", 500, error={"retryable": False, "may_have_taken_effect": False})]
        outcome = play(there, tmp_path, undo_order=oldest_first)
    assert (outcome.status, there.undone()) == ("rolled_back", ["charge", "reserve"])
