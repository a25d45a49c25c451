"""Every retry gets the full time anew: three attempts may take three times the time of the run."""

from __future__ import annotations

from dataclasses import replace

from agents.reference.__main__ import main as run_agent
from agents.reference.budget import Scope
from agents.reference.decisions import REFERENCE


def full_time_again(scope: Scope, attempt: int, now: float) -> Scope:
    """The bad decision: a retry is a new beginning."""
    if attempt == 1:
        return scope
    end = now + scope.allotted_s
    return replace(scope, at=end, until=end)


def main() -> int:
    """Run the task of the environment."""
    return run_agent(replace(REFERENCE, attempt_scope=full_time_again))
