"""Running an agent with one decision replaced."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from agents.reference.__main__ import run
from agents.reference.clock import SystemClock
from agents.reference.decisions import REFERENCE
from agents.reference.outcome import Outcome
from tests.agents.fake_world import World


def play(there: World, folder: Path, task: dict[str, Any] | None = None, **decision: Any) -> Outcome:
    """One run of the reference agent with another decision."""
    return run(there.environment(folder, **(task or {})), SystemClock(), replace(REFERENCE, **decision))
