"""How a session of runs is played, the same for each of its runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.agents import AgentSpec
from traces.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How the runs are played. `max_time_s` in seconds; `parallel` is how many worlds go on at once."""

    out: Path
    agent: AgentSpec
    registry: Registry
    registry_data: Mapping[str, Any]
    parallel: int
    max_time_s: float | None = None
    replay_options: str = ""
