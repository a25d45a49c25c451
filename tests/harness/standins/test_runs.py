"""Open runs, found by id and forgotten with their world."""

from __future__ import annotations

from typing import Any

from harness.standins.recording import Recording, recording_of
from harness.standins.runs import Run, Runs
from tests.harness.standins.shop import REGISTRY, recorded
from traces.registry_reading import registry_from

RECORDING: Recording = recording_of(recorded(), registry_from(REGISTRY))


def a_run(run_id: str = "r", **fields: Any) -> Run:
    """A run with the usual fields."""
    given: dict[str, Any] = {
        "world": "w",
        "intent_id": "i",
        "tenant": "t",
        "policy": "continue",
        "recording": RECORDING,
    }
    return Run(run_id=run_id, **(given | fields))


def test_run_is_found_by_its_id_alone() -> None:
    """No id and an unknown id find nothing."""
    runs = Runs()
    runs.open(a_run())
    assert runs.get("r") is not None
    assert (runs.get("x"), runs.get(""), runs.get(None)) == (None, None, None)


def test_run_opened_again_keeps_its_traffic() -> None:
    """What was done before is still done: a drain after a restart of the agent must know it."""
    runs = Runs()
    first = a_run()
    runs.open(first)
    with first.traffic.request("w1"):
        pass
    runs.open(a_run(policy="repair"))
    again = runs.get("r")
    assert again is not None
    assert (again.policy, again.traffic.done) == ("repair", {"w1"})
    runs.open(a_run(world="other"))
    moved = runs.get("r")
    assert moved is not None
    assert moved.traffic.done == set()


def test_closed_world_takes_its_runs_along() -> None:
    """Runs of the world are over and gone; those of another stay."""
    runs = Runs()
    gone, stays = a_run(), a_run("s", world="x")
    runs.open(gone)
    runs.open(stays)
    runs.close_world("w")
    assert (gone.over, stays.over, len(runs)) == (True, False, 1)
    assert runs.get("r") is None
