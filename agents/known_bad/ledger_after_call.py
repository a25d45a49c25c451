"""The ledger is written when the call has come back: a crash in between leaves no trace of it."""

from __future__ import annotations

from dataclasses import replace

from agents.reference.__main__ import main as run_agent
from agents.reference.decisions import REFERENCE
from agents.reference.ledger import Ledger


class LateLedger(Ledger):
    """Keeps plans and beginnings in memory until the step has ended."""

    def _durable(self, moment: str, *, nested: bool) -> bool:
        """The bad decision: what is planned or begun need not be on disk yet."""
        return moment in ("settled", "decided") or (moment == "noted" and not nested)


def main() -> int:
    """Run the task of the environment."""
    return run_agent(replace(REFERENCE, ledger=LateLedger))
