"""A fresh number in the body of every attempt."""

from __future__ import annotations

from pathlib import Path

from agents.known_bad.key_per_attempt_body import present
from agents.reference.tools import Tool
from tests.agents.fake_shop import ORDER
from tests.agents.fake_world import Fault, world
from tests.agents.known_bad.variant import play


def test_a_lost_reply_charges_twice(tmp_path: Path) -> None:
    """Two effects, no key, and bodies that differ in `request_id` alone."""
    with world(ORDER) as there:
        there.faults["charge"] = [Fault("drop")]
        play(there, tmp_path, present=present)
    one, two = (effect for effect in there.effects if effect.tool == "charge")
    assert (one.key, two.key) == (None, None)
    assert one.arguments.pop("request_id") != two.arguments.pop("request_id")
    assert one.arguments == two.arguments


def test_reads_are_left_alone() -> None:
    """What has no effect gets no number."""
    assert present(Tool("t", severity="none"), "k", {"a": 1}).body == {"a": 1}
