"""The agent's own account of the run."""

from __future__ import annotations

import json
from pathlib import Path

from agents.reference.events import Events
from tests.agents.fake_clock import FakeClock


def test_lines_have_the_common_fields_and_no_nulls(tmp_path: Path) -> None:
    """Every event says type, time and run; fields without a value are left out."""
    events = Events(tmp_path / "e", FakeClock(), {"run_id": "r"})
    events.emit("plan_created", step=None, actions=[])
    events.acted("resume", step=3, generation=2)
    events.close()
    first, second = (json.loads(line) for line in (tmp_path / "e").read_text().splitlines())
    assert first == {"type": "plan_created", "t": 1000.0, "run_id": "r", "source": "agent", "actions": []}
    assert (second["name"], second["step"], second["grounds"]) == ("resume", 3, {"generation": 2})


def test_a_torn_line_is_closed_first(tmp_path: Path) -> None:
    """The earlier process was killed inside a line: the next event stands on a line of its own."""
    (tmp_path / "e").write_text('{"type": "model_ca')
    events = Events(tmp_path / "e", FakeClock(), {"run_id": "r"})
    events.emit("run_resumed")
    events.close()
    lines = (tmp_path / "e").read_text().splitlines()
    assert (len(lines), json.loads(lines[1])["type"]) == (2, "run_resumed")


def test_times_never_go_back(tmp_path: Path) -> None:
    """A clock that steps back does not put an event before an earlier one."""
    clock = FakeClock()
    events = Events(tmp_path / "e", clock, {"run_id": "r"})
    events.emit("a")
    clock.time -= 5
    events.emit("b")
    events.close()
    times = [json.loads(line)["t"] for line in (tmp_path / "e").read_text().splitlines()]
    assert times == sorted(times)


def test_events_that_cannot_be_written_stop_nothing(tmp_path: Path) -> None:
    """No file, or none that can be opened: the business goes on."""
    for path in (None, tmp_path / "no" / "folder"):
        events = Events(path, FakeClock(), {})
        events.emit("a")
        events.close()
