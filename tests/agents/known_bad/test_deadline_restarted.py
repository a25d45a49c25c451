"""A deadline that starts anew."""

from __future__ import annotations

from pathlib import Path

from agents.known_bad.deadline_restarted import full_time_again
from tests.agents.fake_shop import ORDER
from tests.agents.fake_world import Fault, events, world
from tests.agents.known_bad.variant import play


def test_a_retry_carries_more_time_than_the_first_attempt(tmp_path: Path) -> None:
    """The instant that the second attempt carries lies later than that of the first."""
    with world(ORDER) as there:
        there.faults["charge"] = [Fault("hang_before")]
        play(there, tmp_path, attempt_scope=full_time_again)
    starts = [event for event in events(tmp_path) if event["type"] == "tool_call_started"][:2]
    first, second = (event["t"] + event["deadline_remaining_s"] for event in starts)
    assert second - first > 0.25
