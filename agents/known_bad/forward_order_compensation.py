"""Effects are undone in the order in which they were made: the first is gone while later ones still rest on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agents.reference.__main__ import main as run_agent
from agents.reference.decisions import REFERENCE
from agents.reference.ledger import Action


def oldest_first(actions: Sequence[Action]) -> Sequence[Action]:
    """The bad decision."""
    return sorted(actions, key=lambda action: action.step)


def main() -> int:
    """Run the task of the environment."""
    return run_agent(replace(REFERENCE, undo_order=oldest_first))
