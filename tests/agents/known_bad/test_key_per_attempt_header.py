"""A fresh key with every attempt."""

from __future__ import annotations

from pathlib import Path

from agents.known_bad.key_per_attempt_header import present
from tests.agents.fake_shop import ORDER
from tests.agents.fake_world import Fault, world
from tests.agents.known_bad.variant import play


def test_a_lost_reply_charges_twice(tmp_path: Path) -> None:
    """The reply of the charge is lost: two effects under two keys, where the reference agent has one."""
    with world(ORDER) as there:
        there.faults["charge"] = [Fault("drop")]
        outcome = play(there, tmp_path, present=present)
    charges = [effect for effect in there.effects if effect.tool == "charge"]
    assert outcome.status == "succeeded"
    assert len({effect.key for effect in charges}) == 2


def test_without_faults_it_looks_well(tmp_path: Path) -> None:
    """In good weather nothing can be seen."""
    with world(ORDER) as there:
        assert play(there, tmp_path, present=present).status == "succeeded"
    assert len(there.effects) == 4
